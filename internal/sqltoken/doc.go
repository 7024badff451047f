// Package sqltoken reads the tokens of MySQL's and MariaDB's SQL, in each sql_mode and character set.
// It also writes names and values so that they mean the same in all of them.
//
// [Lexer] reads tokens. [Classify] finds by its first word whether a statement may be an INSERT, in
// nanoseconds. The package knows no grammar; that is in package rewrite.
package sqltoken
