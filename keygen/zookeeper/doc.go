// Package zookeeper leases worker IDs in a ZooKeeper ensemble, and can take over those of Leaf.
// Importing it registers the worker-ID assigner type ZOOKEEPER and the key generator type
// LEAF_SNOWFLAKE. The pages about [leases] and about [generators that share a server] describe them.
//
//	import _ "github.com/shardkey/shardkey/keygen/zookeeper"
//
// # ZOOKEEPER
//
//	workerIdAssigners:
//	  cluster: {type: ZOOKEEPER, props: {servers: "10.0.0.1:2181,10.0.0.2:2181", path: /shardkey, namespace: orders}}
//
// The package implements a store for the leases of keygen/workerid. Each worker ID has a persistent
// node, <path>/<namespace>/<worker ID>. A write changes the node only if its version is the one that
// was read. The package doesn't use ephemeral nodes, which end by a clock.
//
// # LEAF_SNOWFLAKE
//
//	keyGenerators:
//	  leaf: {type: LEAF_SNOWFLAKE, props: {leaf.key: orders, leaf.zk.list: "10.0.0.1:2181", port: 8080}}
//
// Keys are the same as those of Meituan's Leaf in snowflake mode (SnowflakeIDGenImpl.java of
// https://github.com/Meituan-Dianping/Leaf):
//
//	 63 62                                        22 21        12 11           0
//	┌──┬────────────────────────────────────────────┬────────────┬─────────────┐
//	│0 │ milliseconds since 2010-11-04T01:42:54.657Z│ worker (10)│ sequence(12)│
//	└──┴────────────────────────────────────────────┴────────────┴─────────────┘
//
// The worker ID is the sequence number of the node for this machine's address,
// /snowflake/<leaf.key>/forever/<ip>:<port>-NNNNNNNNNN (SnowflakeZookeeperHolder.java in Leaf). An
// ensemble that Leaf has used needs no changes: the same ip and port find the same node and keep
// its worker ID.
//
// The node's data is Leaf's JSON, {"ip":…,"port":…,"timestamp":…}, and a second line with the lease's
// record, which Leaf's parser ignores. timestamp is the end of the reserved time. It is later than
// the time in keys, where Leaf's is earlier. So a process that crashed, or whose clock went back,
// doesn't repeat its keys. See also
// [generators that share a server].
//
// [leases]: https://github.com/shardkey/shardkey/blob/main/docs/understand/leases.md
// [generators that share a server]: https://github.com/shardkey/shardkey/blob/main/docs/reference/generators.md
package zookeeper
