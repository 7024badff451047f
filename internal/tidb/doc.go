// Package tidb is the second parser: it holds what [rewrite.Parse] understood of
// a text against the parser of TiDB, a grammar of MySQL that others wrote.
//
// Package rewrite reads with a scanner that knows the forms of INSERT, changes
// the text by splicing and is linear in its length. A bug in it could fill the
// wrong column or send a row without its key. [Check] reads the same text with
// a full grammar and asks whether both saw the same:
//
//   - the same statements, tables, columns, rows, values a row and placeholders,
//   - the same of each key: absent, an argument, NULL, 0, a value, an expression,
//   - and that the text that is sent is the user's, byte for byte, plus the keys
//     and their column, which this grammar finds at their place.
//
// When the two disagree the statement is not sent: [DisagreementError].
//
// TiDB's grammar does not go everywhere. It knows no row aliases, RETURNING, SET
// STATEMENT and executable comments as the servers read them; in some odd texts
// it differs from the servers. There the outcome is [OutcomeUnknown], and the
// scanner stands alone.
//
// Nor is it asked about a text of more than 64 KiB: [OutcomeUnknown] as well.
//
// # What it costs
//
// A check reads the text and the one that is sent, and takes about three times
// what TiDB's parser takes for the text alone: some 8 µs for a row with
// placeholders, where the scanner takes 0.5 (go test -bench . ./internal/tidb). A
// stripped program that links the driver grows from 6 to 19 MB (go test -bench
// Verify_build ./driver).
//
// # Beside an application's own TiDB parser
//
// That parser makes its values by process-wide constructors
// (ast.NewValueExpr and the like), which a value driver sets when it is linked
// in: test_driver, or TiDB's own types/parser_driver. This package links
// neither. At its first use it sets those constructors that nobody has set, and
// works with anybody's otherwise.
package tidb
