// Package redis makes keys, and grants worker ids, with the help of a Redis
// server. It is imported for its effect: it registers the key generator type
// REDIS and the worker-id assigner type REDIS.
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
// they agree: the script reads TIME, and reserves n places on a line of 1024
// places a millisecond. Clients' clocks play no part, and any number of
// processes share one shard: all who name the same server, namespace and
// shard-id share its line. Two servers that know nothing of each other need two
// shard ids.
//
// n keys cost one call of the script (65,536 at most; more take several). A
// shard gives 1024 keys a millisecond; whoever wants more waits.
//
// # What it survives
//
// The line only goes up. When the server's clock steps back, the line goes on
// from where it was, at the pace of the clock, until the clock is past it.
//
// The line's state is one hash in the server, and uniqueness does not hang on
// its durability while the server's clock runs forward: all places that were
// given out lie less than 129 ms ahead of the clock, and a server process that
// is seen for the first time, or has no state, starts behind that. So a crash
// that loses the last writes, a restart without persistence and a flush repeat
// nothing, and cost one wait of 65 ms.
//
// When the state is lost and the clock has gone back as well, nothing in the
// server tells what was given out. A live generator does: it remembers its last
// key, and measures by its own stopwatch where the line must be by now; the line
// goes on behind that. A process that starts after such an event, before any
// other has asked, cannot know, nor can a live one that has not asked since the
// loss before: run Redis with appendonly yes, and keep its clock
// in step.
//
// # The assigner
//
// The assigner keeps the records of worker-id leases in Redis, as keygen/workerid
// describes, changed by compare-and-set in Lua. Unlike the generator's state these
// records must survive: see docs/redis.md for what the server's settings must be.
package redis
