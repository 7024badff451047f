// Package rewrite understands INSERT and REPLACE statements of MySQL and
// MariaDB as far as filling their key column needs, and writes the keys in.
//
// It is pure: text in, [Plan] out ([Parse]); plan and keys in, text out
// ([Plan.BindText], [Plan.LiteralText]). There is no input or output, no clock,
// no pool. A plan is made once for a text and serves every execution.
//
// # How a text is read
//
// [Classify] looks at the first word and lets nearly everything pass within
// nanoseconds. What may insert is read by a lexer that agrees with the server
// on where strings, names, comments and brackets end, in every sql_mode, and by
// a small grammar of the forms that INSERT has. Rows of values are scanned, not
// parsed into trees: of each row only the key's own value is looked at. Time is
// linear in the length, and planning 16 MB of literal rows and writing the keys into
// them allocates less than twice that.
//
// Package internal/tidb is the second parser: it compares plans with TiDB's grammar, in
// the driver for each new statement and in the tests here. It is no substitute: that
// grammar lacks row aliases, RETURNING and the additions of newer servers, and is many
// times slower on long statements.
//
// Whether an executable comment (/*!80000 … */) is part of a statement depends on
// the server and its version, and where a string ends depends on the character
// set: an INSERT into a sharded table that has such a comment, or bytes above 0x7F in
// a character set other than utf8mb4, utf8mb3, latin1 and ascii, is refused, and
// so is a text that may hide such an INSERT.
//
// What is not in the text is not seen: INSERTs in stored programs and triggers
// or their definitions, strings given to PREPARE and EXECUTE IMMEDIATE, CREATE
// TABLE … SELECT.
//
// A statement that inserts into a sharded table and is not understood is a
// [*StatementError]. One that the server is certain to refuse (a row with the
// wrong number of values) is sent for the server's own words, in a form that no
// server takes, however it counts.
//
// # How a text is changed
//
// By splicing. Everything outside the splices stays, byte for byte: comments,
// hints, spelling. The key column is appended last to the column list and to
// each row; a given NULL, DEFAULT or 0 is replaced where it stands.
//
//	INSERT INTO t_order (user_id) VALUES (?), (?)
//	INSERT INTO t_order (user_id, `order_id`) VALUES (?, LAST_INSERT_ID(?)), (?, ?)
//
// LAST_INSERT_ID(expr) makes the server report the first key as an
// AUTO_INCREMENT column would (MySQL manual, "Information Functions"), and the
// key of a row that ON DUPLICATE KEY UPDATE finds; see [Plan.Report].
package rewrite
