// Package basesuite runs tests of others through shardkey: go-sql-driver's own,
// and the standard library's of database/sql.
//
// The tests of a driver are the best description of what its users rely on, and
// those of go-sql-driver come with its module. They are in the driver's package
// and open "mysql" by name, so the package is copied under another module path,
// where nothing is changed but the names: the copy's driver registers as
// "mysql-plain", and what registers as "mysql" is either the copy's driver again
// or shardkey's wrapper around it, with a rule for a table that the tests do not
// use. (shardkey itself imports the original, which is built to register
// nothing.)
//
// Both runs are of one test binary, against one private server. The test asserts
// how many tests passed, since many skip in silence when they find no server,
// and that through the wrapper exactly those of the first run passed, less the
// few that are named here with the reason. So it is done on each SQL server.
//
// The tests of database/sql are over a fake driver in memory, which answers each
// interface of database/sql/driver in more ways than a real one. They come with
// Go, and are copied and edited at a few places (stdEdits), so that they build
// outside of the standard library and find their own connection in a wrapped
// one.
package basesuite
