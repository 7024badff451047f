// Package driver is a database/sql driver that fills the keys of sharded
// INSERTs, around go-sql-driver/mysql or any other driver of a MySQL-compatible
// server.
//
// # Opening
//
// Importing the package registers "shardkey". Its data source name is
// go-sql-driver's, with the rule added:
//
//	import _ "github.com/shardkey/shardkey/driver"
//
//	db, err := sql.Open("shardkey", "user:pass@tcp(127.0.0.1:3306)/app?shardkeyRule=conf/rule.yaml")
//
// shardkeyRule is the path of a rule's file, a name given to [RegisterRule] (as for
// a rule that is embedded in the program), or env: and the name of an environment
// variable that has the rule's text: shardkeyRule=env:SHARDKEY_RULE.
// A path may be percent-encoded, and has to be where it holds '&' or a '%' that
// two hexadecimal digits follow. sql.Open itself returns what is wrong with the
// DSN or the rule; it does not talk to the server.
//
// [Open] does the same, takes options, and returns the [Connector] beside the
// sql.DB:
//
//	db, connector, err := driver.Open(dsn, driver.WithLogger(logger))
//
// Over a connector of one's own, there are [NewConnector] for sql.OpenDB and
// [Wrap] for sql.Register:
//
//	connector, err := driver.NewConnector(base, rule)
//	db := sql.OpenDB(connector)
//
// Closing the sql.DB closes the generators that were opened with it. All sql.DBs of
// one process that open one rule share them, and so one worker id: the last one
// closes them ([rule.Rule.Open] says what is shared). For several databases a
// rule's stores (SQL worker ids, LEAF_SEGMENT, TICKET) need a dsn of one for all;
// with one in each the keys would repeat, which is refused ([rule.ErrOwnDatabase]).
//
// The other parameters of the DSN are the fields of [Config], which [Open],
// [NewConnector] and [Wrap] accept as an option: shardkeyServer=mysql is
// Config{Server: "mysql"}. docs/configuration.md has the table.
//
// # What is filled
//
// An INSERT or REPLACE into a ruled table gets a key for each row whose key
// column is absent, NULL, DEFAULT, 0 (of an integer column) or an empty text (of
// a text column), written or bound. To its client the column is as one with
// AUTO_INCREMENT: any other value is kept, LastInsertId is the first generated
// key, and LAST_INSERT_ID() says the same on that connection. All keys of a
// statement come from one call of the generator, once per execution.
//
// Keys of any type, one for each row, are given through the context:
//
//	var keys driver.Keys
//	_, err := db.ExecContext(driver.WithKeys(ctx, &keys), "INSERT INTO t_order (user_id) VALUES (?), (?)", 7, 8)
//
// [NextKeys] gives keys before their INSERT, from the same generator: for children that
// are inserted with their parent, for an outbox, to choose the shard by the key. An
// INSERT that gives such a key keeps it.
//
//	keys, err := driver.NextKeys(ctx, db, "t_order", 2)
//
// The text is spliced, never printed again; keys are bound where the statement has
// arguments, and written where it has none.
//
// # Actual tables
//
// An INSERT that names an actual table of a sharded one, t_order_3, gets keys that
// belong to it where the key is a sharding column, and a row that does not belong
// to it is refused ([ErrWrongShard]) before anything is sent, when the text or the
// arguments have its sharding values. So is an ON DUPLICATE KEY UPDATE that sets a
// sharding column to a value that belongs elsewhere, or to an expression.
// The rule's shardGuard changes that; docs/sharding.md has the details.
// Where keys carry the shard of another column, its gene ([rule.Gene]), each row's key
// has its own, and a row that does not have it is refused. No INSERT … SELECT is
// held against its table.
//
// # LastInsertId and LAST_INSERT_ID()
//
// LastInsertId is what AUTO_INCREMENT would give: the first generated key that
// was inserted; else the last row's key, given or (ON DUPLICATE KEY UPDATE)
// existing; 0 when nothing was inserted or changed. For keys that are no integers
// it is 0 without error. Which rows of an IGNORE or of an upsert were inserted is
// asked on the same connection, and only when the rows affected do not show it.
//
// LAST_INSERT_ID() on that connection says the same, whether the key column has
// AUTO_INCREMENT or not, and after a statement that failed it says what it said
// before. Mostly the server is told in the statement itself, by
// LAST_INSERT_ID(key), and an upsert learns so the key of a row that exists. Where
// what the server then says is not right (the row was dropped, or existed, or the
// statement failed) it is told right before the next statement that reads it,
// which is known by its text: LAST_INSERT_ID, @@last_insert_id or @@identity is
// written in it, or it is a CALL, an EXECUTE, DDL, or several statements. A table with
// a trigger that reads LAST_INSERT_ID() is not told the key in the statement. An
// upsert that the server does not let assign the key to itself (a view, a user
// without UPDATE on that column) goes without, and one of a row that exists then
// reports 0; so it does on servers of other kinds, see Servers.
//
// Counting on from LastInsertId, as ORMs do, relies on consecutive keys. A
// generator makes those of one statement consecutive as far as it can: SNOWFLAKE
// up to its sequence's size, TICKET only with an increment of 1. With batchKeys:
// consecutive in the rule a statement whose keys are not is an
// [ErrNotConsecutive], before it is sent; without, they are logged once a table.
// [WithKeys] takes any.
//
// Where another column of the table has AUTO_INCREMENT, LastInsertId and
// LAST_INSERT_ID() are that column's, as without a rule; [WithKeys] has the keys.
// Where a trigger before INSERT names the key column, the table is asked which
// keys the rows got: one that the trigger gave is not reported.
//
// The keys of a statement that returns rows (RETURNING) are known, and
// LAST_INSERT_ID() is right, once the rows are closed.
//
// # INSERT … SELECT
//
// The query is read to its end, a key is generated for each row that needs one, and the rows
// are inserted as values, at most 5,000 rows and 1 MiB at once. All of it is one transaction, or
// stands behind a savepoint (shardkey_rows) of the transaction that there is, also in XA and
// under LOCK TABLES. It is one where a single INSERT takes all rows, too: the rows that the query
// reads stay locked until theirs are inserted, as with one statement. If anything fails, no row of
// it stays in a transactional table. Rows are kept in 4 MiB of memory and beyond that in a file
// without a name in [os.TempDir], which only this process can read. More than 50,000,000 rows or
// 4 GiB are refused.
//
// Values are read and written in the binary protocol, as numbers, text and bytes with all their
// digits; dates too, with parseTime. The session may have any character set. These differ from
// the server's own INSERT … SELECT: the query is a SELECT, which locks what it reads with LOCK IN
// SHARE MODE, in READ COMMITTED too, but not where that can't be written, for example with UNION,
// and not on TiDB and other engines. A FLOAT in a text column has the digits of a DOUBLE. An ENUM
// isn't a number. A TIMESTAMP in the hour that the session's time_zone repeats is the first one.
// Types within JSON are those of its text. Text travels in Unicode.
//
// Whether a key that the query returns is one, or asks for one, is decided as for VALUES.
// ROW_COUNT(), FOUND_ROWS() and SHOW WARNINGS afterwards are those of the statement that ended the
// transaction, or, behind a savepoint, of the last INSERT. The result has the rows affected.
//
// RETURNING works for as many rows as one INSERT takes, and outside of the transaction that other
// forms start.
//
// # Servers
//
// What the server is shows in its version and comment, in whatever case; one that shows
// nothing known is asked for its shards, as vtgate may have been given any version. [Connector.Describe]
// shows what was found. What differs here:
//
//	               mysql   mariadb  vitess   tidb   other
//	LAST_INSERT_ID(key) in an INSERT tells the key
//	               yes     yes      no       no     no
//	an upsert of a row that exists tells its key
//	               yes     yes      of one   no     no
//	INSERT … SELECT with LOCK IN SHARE MODE
//	               yes     yes      yes      no     no
//	RETURNING      no      yes      no       no     no
//	prepared statements are kept
//	               yes     yes      yes      yes    yes
//
// A wrong guess costs an error or the key of an upsert's row, and stores nothing
// wrong. On Vitess an upsert tells the key of its only row where the key is no
// sharding column, which Vitess does not let be assigned; else it reports 0. A connection that
// Vitess answers with VT15001 or VT09032, its transaction having failed, leaves the pool:
// it would refuse everything until a ROLLBACK.
//
// # Questions
//
// What must be known of the server is asked on the connection, before the first
// statement that needs it: once in a connector what the server is, and of each
// table which keys its column holds; once in a session sql_mode and the character
// set, where a text depends on them; the columns of a table where an INSERT does
// not list them, at most every ten seconds, and again after DDL on a connection
// of the same connector or when the server refuses them. Such an INSERT is sent
// with the list of columns that it was held against: another process may have
// altered the table in these ten seconds, but the key is in its column.
//
// A question changes ROW_COUNT() and FOUND_ROWS(). An INSERT that itself calls
// one of them is refused when a question is due before it; verifying the rows of
// an IGNORE or an upsert comes after it, and so changes both, and SHOW WARNINGS,
// for the statement that follows.
//
// A generated key that the column cannot hold, a SNOWFLAKE's in an INT, is
// refused in every sql_mode, before anything is sent. A given one of
// which IGNORE or a lax sql_mode stores what is left is not reported.
//
// # What is refused, and what is not covered
//
// An INSERT into a ruled table that cannot be filled is not sent: the error has
// [ErrUnsupportedStatement] in its chain and is a [*StatementError], which has the
// place where it's known. So are refused: what does not parse; an INSERT within a
// compound statement (BEGIN NOT ATOMIC, IF) and after ANALYZE; a string of several
// statements that holds an INSERT, unless each statement is an INSERT … VALUES
// with a column list or transaction control; INSERT … SELECT with an ON DUPLICATE
// KEY UPDATE that uses the query's own columns; an executable comment (/*! or /*M!)
// in an INSERT or around it; LOAD DATA and LOAD XML without the key column; bytes
// above 0x7F in a session whose character set isn't utf8mb4, utf8mb3, latin1 or
// ascii, and in the latter two outside of quotes; 0 or an
// argument as the key where the statement sets sql_mode for itself. What mentions
// INSERT or REPLACE before a ruled table and is not understood as anything is
// refused too. More placeholders with the keys than the server takes are an
// [ErrTooManyPlaceholders].
//
// An expression as the key of an integer column must be an integer or a decimal for
// certain: arithmetic with numbers, CAST to SIGNED or UNSIGNED, LAST_INSERT_ID(),
// UUID_SHORT(). It is evaluated once; where it comes to NULL or 0 the row gets a
// generated key. It costs one question to the table afterwards; a key that the
// expression gave is not reported. On Vitess expressions are sent unchanged.
//
// A string that the server converts to 0 in an integer column, such as an empty one
// and "abc", asks for a key where AUTO_INCREMENT generates one: with IGNORE and in a
// sql_mode that isn't strict. In a strict one the server refuses it in the
// first row, and this package in the others.
//
// Not covered, because the driver does not see them: stored programs and triggers,
// statements that SQL prepares from a text (PREPARE … FROM, then EXECUTE), and
// NULL or 0 in a file of LOAD DATA that gives the key column. Views and stored functions that read LAST_INSERT_ID()
// see it late, as their callers' texts do not mention it; so do triggers. Nor
// is a view of another name over a ruled table, or a key column that another
// process makes narrower while its connector lives. An upsert that itself reads
// LAST_INSERT_ID() without argument reports 0 for a row that existed.
//
// # The second reader
//
// A text is read by the scanner of internal/rewrite. Before its plan is kept for
// further executions, TiDB's parser, a full grammar, reads the text and the one
// that will be sent as well (internal/tidb): once a text, never when it is
// executed. When the two disagree the statement is not sent; the error has
// [ErrUnsupportedStatement] in its chain and says where. What TiDB's grammar does
// not know (row aliases, RETURNING) the scanner reads alone.
// [Connector.Stats] counts these outcomes. shardkeyVerify=off switches it off. The
// build tag shardkey_noparser leaves TiDB's parser out, and 12 MB of the program.
//
// # Prepared statements that are kept
//
// go-sql-driver prepares a statement with arguments, executes it and closes it
// again, which takes two round trips. A filled one is kept on its connection
// instead, so that the same text with arguments of the same types takes one from
// then on: it is twice as fast, with keys or without. shardkeyStatements specifies
// which are cached: auto, the default, filled statements that the base prepares;
// always, also where the base would execute the text directly (interpolateParams);
// off, none. Statements that the program prepares itself are its own.
//
// INSERT … SELECT prepares in any case. Its query and an INSERT of a single row are cached, unless
// shardkeyStatements is off.
//
// A connection keeps 16, of at most 16 KiB of text each. What may change how the
// server reads a text (SET, USE, CALL, EXECUTE, several statements in one text, DDL
// of a database) closes them; DDL of tables, transactions and INSERTs do not, as the
// server looks at its tables with each execution. Texts with an @ are not kept: MySQL
// fixes the types of user variables when it prepares. A statement that the server no
// longer has (error 1243) or cannot make fit (1615) is prepared anew once; after any
// other error it is closed. What the program changes by Raw or Unwrap is not seen: a
// SET or USE there must be followed by one here, or shardkeyStatements be off.
//
// Each takes 16 to 26 kB of the server's memory, more where its text is long, and
// counts for max_prepared_stmt_count, of which the connections of a connector keep an
// eighth together, and 2,048 at most. That is asked once, before the second INSERT
// that would be kept. When the server has no room (error 1461), the connection that
// finds out closes what it keeps and prepares again, the others close theirs before
// what they do next, and none is kept from then on. [Connector.Describe] has their
// number.
//
// # What passes through
//
// A statement that does not insert into a ruled table reaches the base as it is
// written, by the same method with the same arguments, and its rows, results and
// errors come back as the same values. Transactions are the base's own.
// Connections and statements have every optional interface of
// database/sql/driver, and do where the base lacks one what database/sql does.
//
// Rows are the base's own with one exception: those of a filled statement that
// returns rows (INSERT … RETURNING) are wrapped, with every optional interface
// that rows can have, to find out what came of it once they are closed.
//
// On such a statement, and on every other, what goes wrong in the base or the
// server is the base's own error: errors.As finds a *mysql.MySQLError, and
// driver.ErrBadConn comes from the base only: one that a generator returns is hidden.
//
// # Raw connections
//
// (*sql.Conn).Raw passes our connection, whose Unwrap() driver.Conn returns the
// base's.
//
// [ConnectorOf] returns the [Connector] of a sql.DB, a sql.Conn or such a connection. It
// takes another rule while the database is open:
//
//	err := driver.ConnectorOf(db).SetRule(newRule)
//
// [Connector.Stats] has what it did in figures, and how each generator is, in a form
// that marshals to JSON, and [Connector.Ready] is for a readiness probe: whether keys
// can be made now, and why not. None of them needs a connection: they are there while
// the database is away.
package driver
