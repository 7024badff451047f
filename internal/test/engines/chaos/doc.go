// Package chaos tests that keys stay unique when processes, stores and databases fail. It
// contains only tests.
//
// Several processes, which run the test binary, generate keys: with SNOWFLAKE and each of the
// lease assigners, with REDIS, and with LEAF_SNOWFLAKE. Meanwhile the test
//
//   - kills processes, and closes others regularly
//   - stops processes for longer than their lease, then continues them
//   - starts processes with clocks that are an hour off, and steps running clocks
//   - cuts processes off from their store, and delivers some of their data after they gave up
//   - kills and stops the store's server, and starts it again, for REDIS without its data
//
// The processes write every key to a pipe, and no two may be equal. Every error must be of a
// documented type. All processes must generate keys again after the last fault.
//
// TestRemovedRecords removes all records of a store while processes run and others start.
//
// In a plain go test, the test of a subject takes some seconds. It can also run for longer:
//
//	go test ./internal/test/engines/chaos -v -timeout 0 -duration 10m
//	SHARDKEY_SOAK=10m go test ./internal/test/engines/chaos -v -timeout 0
//
// The duration is for each subject. -subjects=SQL,ETCD selects subjects. -seed repeats the
// choice of faults, but not their timing. The test needs Linux.
//
// # Databases of several servers
//
// TestEngines writes rows through shardkey with several processes. The databases are Vitess,
// Spider, Galera, a source with a semi-synchronous replica behind haproxy, and a server behind
// a haproxy that cuts all connections every 0.4 s. The statements have one row or many, and
// literals or arguments. They include prepared statements, IGNORE, upserts, INSERT … SELECT and
// transactions. Meanwhile the database's servers are killed, stopped, disconnected from each
// other and replaced, and processes are killed and stopped.
//
// The processes write each acknowledged row with its reported key to a pipe. Afterwards the
// test reads the tables of all servers. No row may be missing, or have no key or another key.
// No key may be in a table twice. LastInsertId is compared with the keys, too.
//
// make test-engines and make soak-engines run this test, and so does
//
//	go test ./internal/test/engines/chaos -v -timeout 0 -run Engines \
//		-engine-duration 10m -subjects VITESS,GALERA
package chaos
