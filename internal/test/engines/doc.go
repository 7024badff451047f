// Package engines starts databases of several servers, for tests: [Vitess],
// [Spider], [Galera], a MySQL replication [Group], a source with its [Replication], and
// [HAProxy]. The package's tests run shardkey with each of them. The tests of package chaos, in a
// subdirectory, run it with processes and servers that fail.
//
// No distribution contains Vitess' vtcombo. It is built from Vitess' Go module, which the go.mod
// in the directory vtcombo requires, and kept in the cache by version. SHARDKEY_TEST_VTCOMBO is
// the path of another one. vtcombo doesn't run as root, so tests of root run it as nobody. That
// user must have access to the directory for temporary files.
//
// Traps: vtgate takes no LIMIT above 2^63 - 1 in a sharded keyspace, and its DELETE without WHERE stops
// at 10,000 rows. haproxy's mysql-check sees whether a Galera node takes connections, not whether it
// has joined the cluster, so with leastconn a node that catches up gets all new connections and answers
// 1047: check wsrep_local_state. A killed Galera node must stay down until the others have removed it
// (evs.suspect_timeout), or it counts as a second one and the cluster may lose its quorum.
package engines
