// Package tracing stacks shardkey and an instrumenting driver wrapper, here
// OpenTelemetry's otelsql, in both orders:
//
//	application → otelsql → shardkey → go-sql-driver: spans hold the statements as written
//	application → shardkey → otelsql → go-sql-driver: spans hold the statements as sent, with the keys
//
// The first is one word at sql.Open; the second uses driver.Wrap. Keys, results
// and errors are the same in both.
package tracing
