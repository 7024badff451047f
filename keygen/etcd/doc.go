// Package etcd leases worker IDs in an etcd cluster. Importing it registers the worker-ID assigner
// type ETCD. The page about [leases] describes it.
//
//	import _ "github.com/shardkey/shardkey/keygen/etcd"
//
//	workerIdAssigners:
//	  cluster: {type: ETCD, props: {endpoints: "10.0.0.1:2379,10.0.0.2:2379", namespace: orders}}
//
// The package implements a store for the leases of keygen/workerid. Each worker ID has a key,
// <prefix><namespace>/<worker ID>. A transaction changes the key only if its mod revision is the
// one that was read. The package doesn't use etcd's own leases, which are keys that expire by a
// clock.
//
// etcd acknowledges a write when a majority of its members has it on disk
// (https://etcd.io/docs/latest/learning/api_guarantees/). The leases need no other guarantee. A
// cluster without a majority acknowledges nothing. Keys can then be generated up to the limits of
// the leases, and again when the cluster is back.
//
// [leases]: https://github.com/shardkey/shardkey/blob/main/docs/understand/leases.md
package etcd
