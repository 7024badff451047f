// Package etcd leases worker IDs with an etcd cluster. Import it for its effect:
// it registers the worker-ID assigner type ETCD. Its properties are in
// docs/understand/leases.md.
//
//	import _ "github.com/shardkey/shardkey/keygen/etcd"
//
//	workerIdAssigners:
//	  cluster: {type: ETCD, props: {endpoints: "10.0.0.1:2379,10.0.0.2:2379", namespace: orders}}
//
// It is a store for the leases that keygen/workerid describes: each worker ID has
// a key, <prefix><namespace>/<worker ID>, changed in a transaction that succeeds
// only if the key's mod revision is the one that was read. etcd's own leases (keys
// that expire by a clock) are not used.
//
// etcd confirms a write when a majority has it on disk
// (https://etcd.io/docs/latest/learning/api_guarantees/), which is all that the
// leases need. A cluster that has lost its majority confirms nothing: keys
// continue to the limit of their leases, and again when the cluster is back.
package etcd
