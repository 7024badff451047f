// Package engines starts databases of several servers, for tests and examples: [Vitess],
// [Spider], [Galera], a MySQL replication [Group], a source with its [Replication], and
// [HAProxy]. The package's tests run shardkey with each of them. The tests of package chaos, in a
// subdirectory, run it with processes and servers that fail.
//
// [NewVitess] and [NewSpider] start servers for a program, the functions that begin with Start
// for a test.
//
// No distribution contains Vitess' vtcombo. It is built from Vitess' Go module, which the go.mod
// in the directory vtcombo requires, and kept in the cache by version. SHARDKEY_TEST_VTCOMBO is
// the path of another one. vtcombo doesn't run as root, so tests of root run it as nobody. That
// user must have access to the directory for temporary files.
package engines
