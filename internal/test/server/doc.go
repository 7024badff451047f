// Package testserver gives tests the real servers that shardkey works with:
// MySQL, MariaDB, Redis, ZooKeeper and etcd, private to the tests and on
// loopback.
//
// # Shared servers
//
// [SQL], [Database], [Redis], [ZooKeeper] and [Etcd] name a server that all tests
// share. It is started when the first test asks for it, by a [Supervisor]: that of the
// command run, which ends the servers with the command that it runs,
//
//	go run ./internal/test/server/run go test ./...
//
// or one in the background, which make servers-up starts and make servers-down ends. Tests
// find that one without any environment.
//
// There are three SQL servers. [Each] runs a test on each of them. [Needs] and [Has] mark tests and
// cases that only some servers can run.
//
// # Servers elsewhere
//
// The environment may name servers to use instead:
//
//	SHARDKEY_TEST_DSN             user:password@tcp(127.0.0.1:3306)/,user:password@tcp(127.0.0.1:3307)/
//	SHARDKEY_TEST_REDIS_ADDR      127.0.0.1:6379
//	SHARDKEY_TEST_ZOOKEEPER_ADDR  127.0.0.1:2181
//	SHARDKEY_TEST_ETCD_ADDR       127.0.0.1:2379
//
// SHARDKEY_TEST_DSN is a list of SQL servers of any version, separated by commas; no DSN may have a
// comma. Each test of [Each] runs on each of them, in a subtest such as "mysql-8.4" or "mysql", and every other
// test on the first. Tests make databases and users with unique names, and drop them, so the user
// needs all privileges, with GRANT OPTION. No server is started then: tests that start a server, or
// need one of another kind that isn't named, are skipped.
//
// Without a server a test is skipped, and says how to get one. With
// SHARDKEY_TEST_REQUIRE=1, which run sets, it fails instead. With a list of servers,
// SHARDKEY_TEST_REQUIRE=mysql,mariadb, tests use those only: without one of them a test fails,
// and a test of another is skipped. With -short every test that would start a server is skipped.
//
// # Private servers
//
// [StartMySQL], [StartMariaDB], [StartSQL], [StartRedis], [StartZooKeeper] and
// [StartEtcd] start a server for one test, which may stop, kill, pause and
// restart it as it likes: data and port stay. These servers write through to
// their disk as one in production does.
//
// Databases of several servers are started by internal/test/engines, a module of its own.
//
// Servers run from the distribution's packages, installed or (the SQL servers)
// in the cache where .ci/install-servers has put them, with their own
// configuration, data directory and port, and never as a system service. They
// are stopped by process id; on Linux the kernel ends them when the process
// that started them dies, however it dies.
package testserver
