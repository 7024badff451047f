// Package chaos holds the test that keys stay unique when processes and stores
// fail for real. It has no code but tests.
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
//	go test ./internal/chaos -v -timeout 0 -duration 10m
//	SHARDKEY_SOAK=10m go test ./internal/chaos -v -timeout 0
//
// The duration is each subject's; -subjects=SQL,ETCD picks some, -seed repeats
// the choice of faults (not their timing). It needs Linux.
package chaos
