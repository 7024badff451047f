module github.com/shardkey/shardkey/keygen/redis

go 1.26.0

require (
	github.com/redis/go-redis/v9 v9.23.0
	github.com/shardkey/shardkey v0.0.0
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-sql-driver/mysql v1.10.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
