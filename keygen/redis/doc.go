// Package redis generates keys, and leases worker ids, with a Redis server. Import
// it for its effect: it registers the key generator type REDIS and the worker-id
// assigner type REDIS. Their properties are in docs/redis.md.
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
// shard ids.
//
// n keys cost one call of the script (65,536 at most; more take several). A
// shard has 1024 keys a millisecond; callers that want more wait.
//
// # What it survives
//
// The time line only goes up. When the server's clock steps back, the time line
// continues from where it was, at the rate of the clock, until the clock is past
// it.
//
// Its state is one hash in the server, and uniqueness does not depend on the
// hash's durability while the server's clock runs forward: all places handed out
// are less than 129 ms ahead of the clock, and a server process that is seen for
// the first time, or has no state, starts after that. So a crash that loses the
// last writes, a restart without persistence and a flush repeat nothing, and cost
// one wait of 65 ms.
//
// When the state is lost and the clock has gone back as well, nothing in the
// server knows what was handed out. A live generator does: it remembers its last
// key, and measures with its monotonic clock where the time line must be by now;
// the time line continues after that. A process that starts after such an event,
// before any other has made a call, cannot know, nor can a live one that has made
// no call since an earlier loss: run Redis with appendonly yes, and keep its clock
// synchronized.
//
// # The assigner
//
// The assigner keeps the records of worker-id leases in Redis, as keygen/workerid
// describes, and changes them by compare-and-set in Lua. Unlike the generator's
// state these records must survive: docs/redis.md says what the server's settings
// must be (https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/).
package redis
