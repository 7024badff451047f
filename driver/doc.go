// Package driver is a database/sql driver that generates the keys of INSERTs into sharded tables.
// It wraps go-sql-driver/mysql, or any other driver of a MySQL-compatible server.
//
// # Opening
//
// Importing the package registers "shardkey". Its data source name is go-sql-driver's, with the
// rule added:
//
//	import _ "github.com/shardkey/shardkey/driver"
//
//	db, err := sql.Open("shardkey", "user:pass@tcp(127.0.0.1:3306)/app?shardkeyRule=conf/rule.yaml")
//
// shardkeyRule is the path of a rule's file, a name given to [RegisterRule], for example of a rule
// that is embedded in the program, or env: and the name of an environment variable that has the
// rule's text. Percent-encode an '&' in a path, and a '%' that two hexadecimal digits follow.
// sql.Open itself returns an error of the DSN or the rule; it doesn't talk to the server.
//
// [Open] does the same, takes options, and also returns the [Connector], which has figures
// ([Connector.Stats]), a readiness probe ([Connector.Ready]) and [Connector.SetRule].
// [ConnectorOf] finds the connector of a sql.DB or sql.Conn:
//
//	db, connector, err := driver.Open(dsn, driver.WithLogger(logger))
//
// Over another connector or driver, use [NewConnector] with sql.OpenDB, or [Wrap] with
// sql.Register:
//
//	connector, err := driver.NewConnector(base, rule)
//	db := sql.OpenDB(connector)
//
// The other parameters of the DSN are the fields of [Config], which is an option too:
// shardkeyServer=mysql is Config{Server: "mysql"}. docs/reference/configuration.md has the table.
//
// Closing the sql.DB closes the generators that were opened with it. All sql.DBs of one process
// that open one rule share them, and so one worker ID: the last one closes them
// ([rule.Rule.Open]). For several databases a rule's stores (SQL worker IDs, LEAF_SEGMENT, TICKET)
// need one dsn for all. With a store in each database the keys would repeat, which is refused
// ([rule.ErrOwnDatabase]).
//
// # Keys
//
// An INSERT or REPLACE into a sharded table gets a key for each row whose key column is absent,
// NULL, DEFAULT, 0 (of an integer column) or an empty string (of a string column), written or
// bound. The program sees the column as one with AUTO_INCREMENT: any other value is kept. All
// keys of a statement come from one call of the generator, once per execution. The statement is
// spliced, never printed again: keys are bound where it has arguments, and written where it has
// none.
//
// LastInsertId is the first generated key that was inserted; otherwise the last row's key,
// explicit or (ON DUPLICATE KEY UPDATE) existing; 0 if nothing was inserted or changed, and
// without error for keys that are no integers. LAST_INSERT_ID() on the same connection returns
// what it would with AUTO_INCREMENT. docs/reference/sql.md shows each form of statement, and
// docs/reference/differences.md lists every difference from AUTO_INCREMENT.
//
// Keys of any type, one for each row, are returned through the context:
//
//	var keys driver.Keys
//	_, err := db.ExecContext(driver.WithKeys(ctx, &keys), "INSERT INTO t_order (user_id) VALUES (?), (?)", 7, 8)
//
// [NextKeys] returns keys before their INSERT, from the same generator: for children that are
// inserted with their parent, for an outbox, or to choose the shard by the key. An INSERT keeps
// such a key.
//
//	keys, err := driver.NextKeys(ctx, db, "t_order", 2)
//
// ORMs that count from LastInsertId rely on consecutive keys. A generator makes the keys of one
// statement consecutive as far as it can: SNOWFLAKE up to its sequence's size, TICKET only with an
// increment of 1. With batchKeys: consecutive in the rule, a statement whose keys are not is an
// [ErrNotConsecutive] before it is sent; without, they are logged once per table. [WithKeys] takes
// any.
//
// # Actual tables
//
// An INSERT may name an actual table of a sharded one, such as t_order_3. Its keys then belong to
// that table if the key is a sharding column, and a row that doesn't belong to it is refused
// ([ErrWrongShard]) before anything is sent, if the statement or its arguments have the sharding
// values. The same holds for an ON DUPLICATE KEY UPDATE that sets a sharding column to a value
// that belongs elsewhere, or to an expression. Keys can also carry the shard bits of another
// column ([rule.Gene]). The rule's shardGuard changes this; INSERT … SELECT isn't checked.
// See docs/reference/sharding.md.
//
// # INSERT … SELECT
//
// The driver reads the query to its end, generates the keys, and inserts the rows as values, at
// most 5,000 rows and 1 MiB at once. All of it is one transaction, or stands behind a savepoint
// (shardkey_rows) of the current one, also in XA and under LOCK TABLES. If anything fails, no row
// of it stays in a transactional table. Rows take at most 4 MiB of memory; the rest goes to a file
// without a name in [os.TempDir], which only this process can read. More than 50,000,000 rows or
// 4 GiB are refused.
//
// The query locks what it reads with LOCK IN SHARE MODE, in READ COMMITTED too, but not where
// that can't be written, for example with UNION, and not on TiDB and other engines.
//
// # Servers
//
// The server's version and comment show its kind; shardkeyServer specifies it.
// [Connector.Describe] shows what was found, and docs/guides/failover.md what each kind gets. A wrong
// guess costs an error, or the key of a row that an upsert matched, and stores nothing wrong.
//
// The driver asks the server on the same connection, before the first statement that needs the
// answer: once per connector for the server's kind, and for each table which keys its column
// holds; once per session for sql_mode and the character set; for the columns of a table where an
// INSERT doesn't list them, at most every ten seconds. Which rows of an IGNORE or an upsert were
// inserted is asked afterwards, only if the rows affected don't show it. A question changes
// ROW_COUNT() and FOUND_ROWS(): an INSERT that calls one of them is refused if a question is due.
//
// # What is refused, and what isn't covered
//
// An INSERT into a sharded table that can't be given its keys is not sent. The error has
// [ErrUnsupportedStatement] in its chain, and is a [*StatementError] with the place if it's known.
// docs/reference/refusals.md lists each form and what to write instead.
//
// Warning: the driver doesn't see stored programs and triggers, statements that SQL prepares from
// a string (PREPARE … FROM, then EXECUTE), NULL or 0 in a file of LOAD DATA that has the key
// column, and views of another name over a sharded table. These get no keys.
//
// Before the plan of a statement is cached, a second parser, TiDB's, reads the statement and the
// one that will be sent. If the two parsers disagree, the statement is refused. TiDB's grammar
// lacks some forms (row aliases, RETURNING); these are read by one parser. [Connector.Stats]
// counts the outcomes, shardkeyVerify=off switches the second parser off, and the build tag
// shardkey_noparser leaves it out of the program.
//
// # What passes through
//
// A statement that doesn't insert into a sharded table reaches the underlying driver as it is
// written, by the same method with the same arguments. Its rows, results and errors come back as
// the same values. Transactions are the underlying driver's own. Only the rows of INSERT …
// RETURNING are wrapped: their keys are known once the rows are closed. Connections and
// statements have every optional interface of database/sql/driver; where the underlying driver
// lacks one, they do what database/sql does.
//
// Errors of the underlying driver and the server come back unchanged: errors.As finds a
// *mysql.MySQLError. driver.ErrBadConn never comes from a generator.
//
// (*sql.Conn).Raw passes this package's connection, whose Unwrap method returns the underlying
// driver's. The driver doesn't see what a program sends on that one: follow a SET or USE there
// with one here, or set shardkeyStatements=off.
package driver
