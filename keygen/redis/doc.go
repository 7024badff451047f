// Package redis generates keys, and leases worker IDs, with a Redis server. Import
// it for its effect: it registers the key generator type REDIS and the worker-id
// assigner type REDIS. Their properties are in docs/reference/generators.md.
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
// Milliseconds and sequence come from the server, in one Lua script, so that
// they agree: the script reads TIME, and reserves n places on a time line of 1024
// places a millisecond. Clients' clocks play no part, and any number of
// processes share one shard: all with the same server, namespace and shard-id
// share its time line. Two servers that do not replicate each other need two
// shard ids. A call of the script makes 65,536 keys at most. A shard has 1024 keys
// a millisecond; callers that want more wait.
//
// The time line only goes up. When the server's clock steps back, the time line
// continues from where it was, at the rate of the clock, until the clock is past
// it. A server that lost its state starts ahead of all places that it can have
// handed out, which its clock bounds. When the state is lost and the clock has gone
// back as well, live generators know where the time line must be, and a process
// that starts then does not: docs/reference/generators.md lists what the generator survives.
//
// # The assigner
//
// The assigner keeps the records of worker-ID leases in Redis, as keygen/workerid
// describes, and changes them by compare-and-set in Lua. Unlike the generator's
// state these records must survive: docs/reference/generators.md says what the server's settings
// must be (https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/).
package redis
