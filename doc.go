// Package shardkey documents the module of shardkey, a database/sql driver that generates primary
// keys for INSERTs into sharded MySQL tables. It has no code. Import the driver, which registers
// itself as "shardkey", and name a rule file in the DSN:
//
//	import _ "github.com/shardkey/shardkey/driver"
//
//	db, err := sql.Open("shardkey", "user:pass@tcp(127.0.0.1:3306)/shop?shardkeyRule=rule.yaml")
//
// Package [github.com/shardkey/shardkey/driver] describes the keys, statements and errors, and
// package [github.com/shardkey/shardkey/rule] the rule file. The [README] has a complete example,
// and the [documentation] guides to migrations, ORMs and operations.
//
// [README]: https://github.com/shardkey/shardkey#readme
// [documentation]: https://github.com/shardkey/shardkey/blob/main/docs/README.md
package shardkey
