// Package shardkey documents the packages of shardkey, a database/sql driver that generates primary
// keys for INSERTs into sharded MySQL tables. It has no code: import
// [github.com/shardkey/shardkey/driver] and open "shardkey".
//
// The packages, and which may import which (arrows point at what is imported;
// nothing imports upwards, and a test checks it):
//
//	cmd/shardkey, debug, doctor, gormshardkey, otelshardkey, examples
//	        │
//	        ▼
//	     driver ──────► rewrite   SQL text → plan; plan + arguments + keys → SQL
//	        │                 ▲
//	        ├─────────► internal/tidb      the second parser: a full grammar must agree
//	        │                 │
//	        │                 ▼
//	        ├─────────► internal/sqltoken  characters → tokens; rewrite imports it too
//	        │
//	        ├────────► rule ─────┐   which column of which table, which generator
//	        ▼                    ▼
//	     keygen/… ───────────► spi   generators and worker IDs; the interfaces and registries
//
// rule has two internal packages: expr evaluates the expressions ${…} in rules, and sharding decides
// which table a row belongs to. So has driver: base is any driver's connection and its cached
// statements, session the server's session, copyrows copies the rows of an INSERT … SELECT.
//
// Data runs one way: SQL text and arguments → driver → rewrite (what must be
// filled?) → rule (which column, which generator?) → generator → rewrite (new
// text and arguments) → base driver → result with keys.
//
// A package that needs a store's client is a module of its own, so that only
// those who import it require that client: keygen/redis, keygen/etcd and
// keygen/zookeeper; so are gormshardkey, for GORM, otelshardkey, for OpenTelemetry, the command, which links all of
// the stores' clients, examples and bench. go.work joins them.
package shardkey
