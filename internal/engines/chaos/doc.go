// Package chaos holds the tests that keys stay unique when processes, stores and
// databases fail for real. It has no code but tests.
//
// Several processes (the test binary, started again) make keys at once: through
// SNOWFLAKE and each of the lease assigners, through REDIS, and through
// LEAF_SNOWFLAKE. Meanwhile they are killed, stopped past their lease and
// continued, closed in good order, started with clocks an hour off, have their
// clocks stepped, and are cut off from their store, some so that what they sent
// arrives after they have given up; the store's server is killed, stopped and
// started again with its data, or for REDIS without. Every key comes back over a
// pipe, and none may come twice; every error must be of a documented type; and
// everybody must make keys again after the last fault.
//
// Each subject takes some seconds under go test. The same code runs for as long
// as is wanted:
//
//	go test ./internal/engines/chaos -v -timeout 0 -duration 10m
//	SHARDKEY_SOAK=10m go test ./internal/engines/chaos -v -timeout 0
//
// The duration is each subject's; -subjects=SQL,ETCD picks some, -seed repeats
// the choice of faults (not their timing). It needs Linux.
//
// # Databases of several servers
//
// TestEngines has processes write rows through shardkey to Vitess, Spider, Galera, a
// source with a semi-synchronous replica behind haproxy, and a server behind a haproxy
// that cuts all connections every 0.4 s: one row and many, literals and arguments,
// prepared, IGNORE, upserts, INSERT … SELECT, in transactions. Meanwhile the database's
// servers are killed, stopped, cut off from each other and replaced by others, and so are
// the processes. Each row that was acknowledged comes back over a pipe with the key that
// was reported, and is looked for in the tables of all servers afterwards: none may be
// lost, have another key or none, and no key may be there twice. LastInsertId is held
// against the keys as well.
//
// They are tried by make test-engines and make soak-engines, or
//
//	go test ./internal/engines/chaos -v -timeout 0 -run Engines -engine-duration 10m -subjects VITESS,GALERA
package chaos
