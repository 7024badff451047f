package driver

// The generator and assigner types that every rule can name. Those that need a
// client library of a server (REDIS, ETCD, ZOOKEEPER, LEAF_SNOWFLAKE) are
// imported by whoever uses them.
import (
	_ "github.com/shardkey/shardkey/keygen/leaf"
	_ "github.com/shardkey/shardkey/keygen/nanoid"
	_ "github.com/shardkey/shardkey/keygen/snowflake"
	_ "github.com/shardkey/shardkey/keygen/ticket"
	_ "github.com/shardkey/shardkey/keygen/uuid"
	_ "github.com/shardkey/shardkey/keygen/workerid"
)
