// Package zookeeper grants worker ids, and takes over Leaf's, with the help of a
// ZooKeeper ensemble. It is imported for its effect: it registers the worker-id
// assigner type ZOOKEEPER and the key generator type LEAF_SNOWFLAKE.
//
//	import _ "github.com/shardkey/shardkey/keygen/zookeeper"
//
// # ZOOKEEPER
//
//	workerIdAssigners:
//	  cluster: {type: ZOOKEEPER, props: {servers: "10.0.0.1:2181,10.0.0.2:2181", path: /shardkey, namespace: orders}}
//
// It is a store of the leases that keygen/workerid describes: each worker id
// has a persistent node, <path>/<namespace>/<worker id>, changed by a set that
// holds only while the node's version is the one that was read. Sessions and
// ephemeral nodes, which end by a clock, have no part in it.
//
// # LEAF_SNOWFLAKE
//
//	keyGenerators:
//	  leaf: {type: LEAF_SNOWFLAKE, props: {leaf.key: orders, leaf.zk.list: "10.0.0.1:2181", port: 8080}}
//
// Keys are those of Meituan's Leaf in snowflake mode:
//
//	 63 62                                        22 21        12 11           0
//	┌──┬────────────────────────────────────────────┬────────────┬─────────────┐
//	│0 │ milliseconds since 2010-11-04T01:42:54.657Z│ worker (10)│ sequence(12)│
//	└──┴────────────────────────────────────────────┴────────────┴─────────────┘
//
// The worker id is the number that ZooKeeper gave to the node of this machine's
// address, /snowflake/<leaf.key>/forever/<ip>:<port>-NNNNNNNNNN. An ensemble that
// Leaf has used is taken over as it is: the same ip and port find the same node
// and keep its worker id.
//
// The node's data is Leaf's JSON, {"ip":…,"port":…,"timestamp":…}, and a second
// line with the lease's record, which Leaf's reader passes over. timestamp is the
// end of the time that is reserved: ahead of what keys carry, where Leaf's is
// behind it. So a process that crashed, or whose clock went back, does not repeat
// what it has made; docs/leaf-snowflake.md says how the two differ.
package zookeeper
