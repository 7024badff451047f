// Package testserver gives tests the real servers that shardkey works with:
// MySQL, MariaDB, Redis, ZooKeeper and etcd, private to the tests and on
// loopback.
//
// # Shared servers
//
// [SQL], [Database], [Redis], [ZooKeeper] and [Etcd] name a server that all tests
// share, out of the environment:
//
//	SHARDKEY_TEST_MYSQL_DSN       root@tcp(127.0.0.1:3306)/  (9.7)
//	SHARDKEY_TEST_MARIADB_DSN     root@tcp(127.0.0.1:3307)/  (10.11)
//	SHARDKEY_TEST_MARIADB118_DSN  root@tcp(127.0.0.1:3308)/  (11.8)
//	SHARDKEY_TEST_REDIS_ADDR      127.0.0.1:6379
//	SHARDKEY_TEST_ZOOKEEPER_ADDR  127.0.0.1:2181
//	SHARDKEY_TEST_ETCD_ADDR       127.0.0.1:2379
//
// Package run, a command, starts those that the environment does not name, runs
// another command, and stops them again:
//
//	go run ./internal/testserver/run -- go test ./...
//
// There are three SQL servers. [Each] runs a test on each of them; what only one
// kind of server has, [Needs] marks.
//
// Without a server a test is skipped, with the words that help. With
// SHARDKEY_TEST_REQUIRE=1, which that command sets, it fails instead: a run
// that claims to have tested against real servers has done so.
//
// # Private servers
//
// [StartMySQL], [StartMariaDB], [StartSQL], [StartRedis], [StartZooKeeper] and
// [StartEtcd] start a server for one test, which may stop, kill, pause and
// restart it as it likes: data and port stay. These servers write through to
// their disk as one in production does.
//
// Databases of several servers are started by internal/engines, a module of its own.
//
// Servers run from the distribution's packages, installed or (the SQL servers)
// in the cache where .ci/fetch-server has put them, with their own
// configuration, data directory and port, and never as a system service. They
// are stopped by process id; on Linux the kernel ends them when the process
// that started them dies, however it dies.
package testserver
