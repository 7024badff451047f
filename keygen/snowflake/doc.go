// Package snowflake generates the keys of types SNOWFLAKE and SNOWFLAKE_RING:
// positive 63-bit integers of time, worker and sequence, which ascend, need no
// server, and show when and by which worker they were made.
//
//	 63   62                                22 21        12 11          0
//	+---+------------------------------------+------------+-------------+
//	| 0 |  milliseconds since the epoch (41) | worker (10)| sequence(12)|
//	+---+------------------------------------+------------+-------------+
//
// That is [Classic], the split of Twitter's Snowflake
// (https://github.com/twitter-archive/snowflake/tree/snowflake-2010) and of
// ShardingSphere's SNOWFLAKE (class SnowflakeKeyGenerateAlgorithm,
// https://shardingsphere.apache.org/document/current/en/user-manual/common-config/builtin-algorithm/keygen/),
// whose keys these are one for one. Any other split works ([Layout]); [JS53] stays
// below 2^53 for JavaScript.
//
//	keyGenerators:
//	  snowflake: {type: SNOWFLAKE, props: {worker-id: 123}}
//	  ring:      {type: SNOWFLAKE_RING, props: {worker-id: 124, ring-size: 200}}
//	  safe:      {type: SNOWFLAKE, props: {worker-id-assigner: cluster}}
//
// # Properties
//
//   - worker-id: 0..1023, this process's own. Two processes with the same one
//     make the same keys; without one it is 0, with a warning.
//   - worker-id-assigner: the name of an assigner that leases worker IDs, so
//     that two processes cannot have the same one. Use it when there is more
//     than one process.
//   - layout, tick: another split, as 39-16-8 with tick 10ms, or js53.
//   - epoch: the time that is zero, 2016-11-01T00:00:00Z. It must not change
//     in the life of a table.
//   - max-vibration-offset: sequences of new ticks begin at 0, 1, … up to it
//     in turn (1). At a few keys a second every key is the first of its
//     millisecond, so that key mod n takes offset+1 values only. When shards are
//     chosen by the key, set it to the greatest number of shards that you plan
//     for, minus 1.
//   - clock-back: what to do when the clock steps back. wait (until it has
//     caught up, for max-tolerate-time-difference-milliseconds, 10, at most,
//     else an error), borrow (continue from the last time), error.
//   - ring-size: SNOWFLAKE_RING keeps the state of so many past ticks (200),
//     and continues in them immediately when the clock steps back among them.
//
// # Why no key comes twice
//
// The state of a worker is one 64-bit word, the first unused pair of time and
// sequence, and the word only rises: see state.go for the argument. The clock
// chooses where keys are, never whether they are new, so that no step of the
// clock can repeat one. Generators of one process with the same layout, epoch,
// worker ID and clock share the word, which outlives them. Across processes
// and restarts uniqueness is the worker ID's: with a leased one, keys stay
// within a time interval that no other holder has; with a fixed worker-id the
// operator must ensure that no two processes have it at the same time, and that
// the clock is past the keys of the process before.
//
// # Waiting
//
// A tick holds as many keys as its sequence: 4,096 a millisecond. Callers
// beyond that wait for the next tick, in order, and leave as soon as
// their context ends. One of them sleeps on a timer for all. A sleeping
// goroutine wakes late, so while the layout is saturated the ticks that have
// passed are used up first; keys then lag behind the clock, by 40 ms at most.
// With a clock other than the system's they do not: every key is then
// ShardingSphere's.
//
// A call for more keys than a tick holds takes whole ticks, one after the
// other. Keys of one call are contiguous within a tick, and all of them when
// they fit into one.
package snowflake
