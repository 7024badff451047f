// Package basesuite runs other projects' tests through shardkey: those of go-sql-driver and
// those of database/sql.
//
// Programs rely on the behaviour that go-sql-driver's tests check. These tests are in the
// driver's package and open the driver "mysql" by name. The package is therefore copied to
// another module path, and only names are changed. The copy registers its driver as
// "mysql-plain". The name "mysql" is registered for the copy's driver, or for shardkey's
// wrapper around it with a rule for a table that the tests don't use. shardkey imports the
// original package, which is built so that it registers nothing.
//
// Both runs use the same test binary and the same private server. Many tests skip without a
// message if they find no server, so the number of passed tests is checked. The tests that
// passed in the first run must also pass through the wrapper, except a few that are listed
// with a reason. This is repeated on each SQL server.
//
// The tests of database/sql use a fake driver in memory, which exercises each interface of
// database/sql/driver in more ways than a real driver. They are copied from the Go
// installation. A few edits (stdEdits) make them build outside of the standard library and
// find their connection inside a wrapped one.
package basesuite
