// Package tidb is the second parser. It compares the result of [rewrite.Parse] with TiDB's parser,
// an independent implementation of MySQL's grammar.
//
// Package rewrite uses a scanner for the forms of INSERT and splices keys into the statement. A bug
// in it could put the key in the wrong column, or send a row without a key. [Check] parses the same
// statement with a full grammar. It compares these properties:
//
//   - statements, tables, columns, rows, values in each row, and placeholders
//   - the kind of each key: missing, an argument, NULL, 0, a value, or an expression
//   - the statement to send, which must be the program's plus the keys and their column
//
// If the two disagree, the statement is not sent; and the error is a [*rewrite.StatementError].
//
// TiDB's grammar lacks row aliases, RETURNING, SET STATEMENT, and the servers' rules for executable
// comments. It differs from the servers in some unusual statements. They are then unknown to
// [Check], and only the scanner is used. The same holds for statements of more than 64
// KiB.
//
// # Cost
//
// A check parses both the program's statement and the one to send. For a row with placeholders it
// takes about 8 µs, compared with 0.5 µs for the scanner (go test -bench . ./internal/tidb). The
// parser adds about 13 MB to a stripped program (go test -bench Verify_build ./driver).
//
// # TiDB's parser in the application
//
// TiDB's parser creates values by process-wide constructors such as ast.NewValueExpr. A value
// driver sets them when it is linked in: test_driver, or TiDB's types/parser_driver. This package
// links neither. At its first use it sets the constructors that are still unset, and works with any
// others.
package tidb
