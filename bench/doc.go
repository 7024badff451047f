// Package bench compares shardkey's generators with those of other libraries, in one run on one
// machine. Ratios are meaningful on other machines, times are not.
//
//	go test -C bench -run '^$' -bench .   # generators; time and memory as the input grows
//	go run -C bench ./inserts            # INSERTs compared with go-sql-driver, on servers
//
// It is a separate module, so that the other libraries never become dependencies of programs.
//
// Single keys and batches are measured below saturation: layouts have 1 bit of worker and 22 of
// sequence, which no machine uses up, if the library allows that. Saturation is measured with
// 41-10-12, which has at most 4,096,000 keys a second.
package bench
