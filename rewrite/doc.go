// Package rewrite parses INSERT and REPLACE statements of MySQL and MariaDB and adds keys to them.
//
// [Parse] returns a [Plan] for a statement. [Plan.Rewrite] and [Plan.Bind] return the statement with keys.
// [Split] returns the statements of a string one by one. A plan can be used for any number of
// executions.
//
// The package performs no I/O and has no state. [Options] are facts about the session, the server and
// the tables. If a plan depends on one that the caller doesn't know yet, Parse returns [*Needs]: find
// the fact out, and parse the statement again.
//
// # Parsing
//
// Package internal/sqltoken has the lexer. It finds the ends of strings, names, comments and brackets
// as the server does in each sql_mode. Its Classify checks the first word and excludes most
// statements in nanoseconds. A small grammar here covers the forms of INSERT. Rows of values are
// scanned without building trees, and only the key's value is examined. Time is linear in the
// length. Planning 16 MB of literal rows and writing their keys allocates less than twice that.
//
// Package internal/tidb is a second parser. The driver compares each new plan with TiDB's grammar,
// and so do the tests here. It can't replace this package: it lacks row aliases, RETURNING and
// newer syntax, and it is many times slower for long statements.
//
// The meaning of an executable comment (/*!80000 … */) depends on the server's version, and the end
// of a string depends on the character set. An INSERT into a sharded table is therefore refused if
// it contains such a comment. It is also refused for bytes above 0x7F in a character set other than
// utf8mb4, utf8mb3, latin1 and ascii. The same holds for a string that may hide such an INSERT.
//
// The package doesn't see INSERTs outside of the string: in stored programs and triggers, in
// strings for PREPARE and EXECUTE IMMEDIATE, and in CREATE TABLE … SELECT.
//
// If a statement inserts into a sharded table and can't be parsed, the error is a
// [*StatementError]. If the server is certain to refuse it (a row with the wrong number of values),
// it is sent for the server's error, in a form that every server refuses.
//
// # Rewriting
//
// A plan splices keys into the statement. All other bytes stay unchanged, including comments and
// hints. The key column is appended to the column list and to each row. An explicit NULL, DEFAULT
// or 0 is replaced.
//
//	INSERT INTO t_order (user_id) VALUES (?), (?)
//	INSERT INTO t_order (user_id, `order_id`) VALUES (?, LAST_INSERT_ID(?)), (?, ?)
//
// LAST_INSERT_ID(expr) makes the server report the first key as it reports a value of
// AUTO_INCREMENT (MySQL manual, "Information Functions"). In ON DUPLICATE KEY UPDATE it reports the
// key of an existing row; see [Insert].ReportsExistingKey.
package rewrite
