// Package redis generates keys and leases worker IDs with a Redis server. Importing it registers the
// key generator type REDIS and the worker-ID assigner type REDIS. The pages about [generators
// that share a server] and about [leases] describe them.
//
//	import _ "github.com/shardkey/shardkey/keygen/redis"
//
// # The generator
//
//	keyGenerators:
//	  counter: {type: REDIS, props: {addr: "127.0.0.1:6379", shard-id: 3}}
//
// A key is 63 bits:
//
//	 63 62                                        22 21         10 9         0
//	┌──┬────────────────────────────────────────────┬─────────────┬───────────┐
//	│0 │ milliseconds since the epoch (41 bits)     │ shard (12)  │ sequence  │
//	└──┴────────────────────────────────────────────┴─────────────┴───────────┘
//
// Milliseconds and sequence come from the server, from one Lua script. The script reads TIME, and
// reserves n positions on a time line with 1024 positions per millisecond. The clients' clocks don't
// matter. Any number of processes can share a shard: all processes with the same server, namespace
// and shard-id share its time line. Two servers that don't replicate each other need two shard IDs.
// A call of the script returns at most 65,536 keys. A shard has 1024 keys per millisecond, and
// further callers wait.
//
// The time line never goes back. If the server's clock steps back, the time line continues from its
// last position, at the rate of the clock, until the clock has caught up. A server that lost its
// state starts after all positions that it can have handed out, which its clock limits. If the state
// is lost and the clock has gone back too, running generators know the minimum position. A process
// that starts then doesn't know it. The page about [generators that share a server]
// lists the faults that the generator survives.
//
// # The assigner
//
// The assigner stores the records of the leases of keygen/workerid in Redis, and changes them with a
// compare-and-set in Lua. Unlike the generator's state, these records must not be lost,
// which requires some server settings
// (https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/).
//
// [leases]: https://github.com/shardkey/shardkey/blob/main/docs/understand/leases.md
// [generators that share a server]: https://github.com/shardkey/shardkey/blob/main/docs/reference/generators.md
package redis
