// The rehearsal of a release. It has a module, so that golang.org/x/mod is no requirement of the
// modules that are released.
module github.com/shardkey/shardkey/internal/test/release

go 1.26.0

require (
	github.com/shardkey/shardkey v0.0.0
	golang.org/x/mod v0.42.0
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/go-sql-driver/mysql v1.10.1 // indirect
)
