// Package zookeeper leases worker IDs, and takes over Leaf's, with a ZooKeeper
// ensemble. Import it for its effect: it registers the worker-ID assigner type
// ZOOKEEPER and the key generator type LEAF_SNOWFLAKE. Their properties are in
// docs/understand/leases.md and docs/reference/generators.md.
//
//	import _ "github.com/shardkey/shardkey/keygen/zookeeper"
//
// # ZOOKEEPER
//
//	workerIdAssigners:
//	  cluster: {type: ZOOKEEPER, props: {servers: "10.0.0.1:2181,10.0.0.2:2181", path: /shardkey, namespace: orders}}
//
// It is a store for the leases that keygen/workerid describes: each worker ID has
// a persistent node, <path>/<namespace>/<worker ID>, changed by a set that succeeds
// only if the node's version is the one that was read. Sessions and ephemeral
// nodes, which end by a clock, are not used.
//
// # LEAF_SNOWFLAKE
//
//	keyGenerators:
//	  leaf: {type: LEAF_SNOWFLAKE, props: {leaf.key: orders, leaf.zk.list: "10.0.0.1:2181", port: 8080}}
//
// Keys are those of Meituan's Leaf in snowflake mode (SnowflakeIDGenImpl.java of
// https://github.com/Meituan-Dianping/Leaf):
//
//	 63 62                                        22 21        12 11           0
//	┌──┬────────────────────────────────────────────┬────────────┬─────────────┐
//	│0 │ milliseconds since 2010-11-04T01:42:54.657Z│ worker (10)│ sequence(12)│
//	└──┴────────────────────────────────────────────┴────────────┴─────────────┘
//
// The worker ID is the sequence number of the node of this machine's address,
// /snowflake/<leaf.key>/forever/<ip>:<port>-NNNNNNNNNN (SnowflakeZookeeperHolder.java
// there). An ensemble that Leaf has used is taken over as it is: the same ip and
// port find the same node and keep its worker ID.
//
// The node's data is Leaf's JSON, {"ip":…,"port":…,"timestamp":…}, and a second
// line with the lease's record, which Leaf's reader ignores. timestamp is the end
// of the reserved time: later than the time in keys, where Leaf's is earlier. So a
// process that crashed, or whose clock went back, does not repeat its keys;
// docs/reference/generators.md lists the differences.
package zookeeper
