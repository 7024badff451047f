// Package driver is a database/sql driver that generates primary keys for INSERTs into sharded
// MySQL tables. It wraps go-sql-driver/mysql or another driver of a MySQL-compatible server.
//
// # Opening a database
//
// Importing the package registers the driver "shardkey". Its data source name is go-sql-driver's
// plus the sharding rule:
//
//	import _ "github.com/shardkey/shardkey/driver"
//
//	db, err := sql.Open("shardkey", "user:pass@tcp(127.0.0.1:3306)/app?shardkeyRule=conf%2Frule.yaml")
//
// shardkeyRule is a file's path, or a name given to [RegisterRule]. Write '&' in a path as %26.
// sql.Open returns an error for a mistake in the DSN or the rule. It doesn't contact the server.
//
// [Open] also takes options and returns the [Connector], with [Connector.Stats],
// [Connector.Ready] and [Connector.SetRule]. [ConnectorOf] returns the Connector of an open sql.DB.
// To wrap another connector or driver, use [NewConnector] with sql.OpenDB, or [Wrap] with
// sql.Register. The other DSN parameters are the fields of [Config].
//
// Closing the sql.DB closes its generators. All sql.DBs of a process that open the same rule share
// generators and one worker ID ([rule.Rule.Open]).
//
// # Keys
//
// The driver generates a key for each row of an INSERT or REPLACE whose key column is missing, NULL
// or DEFAULT. It also does so for 0 in an integer column and an empty string in a string column, as
// AUTO_INCREMENT does. Rows with other values keep them. All keys of a statement come from one call
// of the generator. The driver adds placeholders or literals to the statement, and leaves the rest
// unchanged.
//
// LastInsertId returns the first generated key that was inserted. Without one it returns the last
// row's key, or 0 if no row was inserted or changed, or if keys aren't integers. LAST_INSERT_ID()
// on the same connection returns the same value as with AUTO_INCREMENT.
//
// [WithKeys] returns the key of each row, of any type. [NextKeys] returns keys before their INSERT,
// for example for child rows, or to choose the shard by the key.
//
// ORMs that add to LastInsertId need consecutive keys. A SNOWFLAKE generates consecutive keys up to
// the size of its sequence. With batchKeys: consecutive in the rule, other keys are an error,
// [ErrNotConsecutive]; by default the driver logs a warning.
//
// # Actual tables
//
// A statement may name an actual table of a logical one, for example t_order_3. If the key is the
// sharding column, generated keys belong in that table. If a row belongs in another table, the
// driver refuses the statement with [ErrWrongShard] before it sends anything. The rule's shardGuard
// configures this check. Keys can also contain shard bits of another column ([rule.ShardBits]).
//
// # INSERT … SELECT
//
// The server runs the statement. If the query may return several rows, the driver counts them first
// and generates their keys. An expression in the select list, which counts with LAST_INSERT_ID(expr),
// hands out the keys in the order of the rows.
//
// # Queries to the server
//
// The driver needs facts about the server and the tables, such as the version, sql_mode and column
// types. It queries them once per connector or session, and every 10 seconds for each table, on the
// same connection and before a statement that depends on them. The field [Config.Server] replaces the query for the
// version.
//
// # Errors
//
// The driver refuses an INSERT into a sharded table if it can't add keys to it. The error is a
// [*StatementError] and wraps [ErrUnsupportedStatement]. Errors of the underlying driver and the
// server are returned unchanged, so errors.As finds a *mysql.MySQLError. Before a statement is
// cached, TiDB's parser checks it too; the statement is refused if both parsers disagree.
//
// Warning: stored programs, triggers, PREPARE … FROM, files of LOAD DATA with a key column, and
// views with another name get no keys.
//
// # Other statements
//
// All other statements are passed through unchanged, with their arguments, rows, results and
// errors. (*sql.Conn).Raw receives this package's connection, and its Unwrap method returns the
// underlying one. After a SET or USE on the underlying connection, repeat it on this one.
//
// See also the pages [SQL behaviour], [configuration] and [errors].
//
// [SQL behaviour]: https://github.com/shardkey/shardkey/blob/main/docs/reference/sql.md
// [configuration]: https://github.com/shardkey/shardkey/blob/main/docs/reference/configuration.md
// [errors]: https://github.com/shardkey/shardkey/blob/main/docs/reference/errors.md
package driver
