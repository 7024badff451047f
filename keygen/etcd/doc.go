// Package etcd grants worker ids with the help of an etcd cluster. It is
// imported for its effect: it registers the worker-id assigner type ETCD.
//
//	import _ "github.com/shardkey/shardkey/keygen/etcd"
//
//	workerIdAssigners:
//	  cluster: {type: ETCD, props: {endpoints: "10.0.0.1:2379,10.0.0.2:2379", namespace: orders}}
//
// It is a store of the leases that keygen/workerid describes: each worker id
// has a key, <prefix><namespace>/<worker id>, changed in a transaction that
// holds only while the key's mod revision is the one that was read. etcd's own
// leases (keys that vanish by a clock) have no part in it.
//
// etcd confirms a write when a majority has it on disk, which is all that the
// leases ask for. A cluster that has lost its majority confirms nothing: keys
// go on to the limit of their leases, and come again when the cluster does.
package etcd
