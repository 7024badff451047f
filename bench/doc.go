// Package bench measures shardkey's generators next to their peers, in one run
// on one machine, so that ratios mean something where times do not.
//
//	go run -C bench ./compare          # the tables, a few minutes
//	go run -C bench ./inserts          # INSERTs, next to go-sql-driver, on servers
//	go run -C bench ./growth           # what grows with what
//
// It is a module of its own, so that the peers never reach a user's build.
//
// One key and batches are measured below saturation: where a peer's split can
// be chosen it has one bit of worker and 22 of sequence, which no machine
// fills, and so have ours. Saturation is measured with 41-10-12, whose ceiling
// is 4,096,000 keys a second.
package bench
