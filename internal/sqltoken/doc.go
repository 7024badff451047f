// Package sqltoken reads the tokens of MySQL's and MariaDB's SQL, in each sql_mode and character set.
// It also writes names and values so that they mean the same in all of them.
//
// [Lexer] reads tokens. [Scan] finds in one pass whether a query may have an INSERT, and the words that
// matter to a session. The package knows no grammar; that is in package rewrite.
package sqltoken
