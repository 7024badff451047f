// Package engines starts databases that are made of several servers, for tests and
// examples: [Vitess], [Spider], [Galera], a MySQL replication [Group], a source with its
// [Replication], and [HAProxy] in front of servers. Its tests run shardkey in front of each;
// those of the package chaos, in the directory below, with processes and servers that fail.
//
// [NewVitess] and [NewSpider] start servers for a program, the functions that begin with
// Start for a test.
//
// Vitess' vtcombo isn't in any distribution. It is built from its Go module, which the
// go.mod in the directory vtcombo requires, and is kept in the cache by its version.
// SHARDKEY_TEST_VTCOMBO names another one. It doesn't run as root, and so runs as nobody if
// the tests are root's; the directory for temporary files must be open to that user.
package engines
