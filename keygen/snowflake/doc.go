// Package snowflake generates the keys of types SNOWFLAKE and SNOWFLAKE_RING. A key is a positive
// 63-bit integer of a time, a worker ID and a sequence. Keys ascend, need no server, and show when
// and by which worker ID they were generated.
//
//	 63   62                                22 21        12 11          0
//	+---+------------------------------------+------------+-------------+
//	| 0 |  milliseconds since the epoch (41) | worker (10)| sequence(12)|
//	+---+------------------------------------+------------+-------------+
//
// This layout is [Classic], the layout of Twitter's Snowflake
// (https://github.com/twitter-archive/snowflake/tree/snowflake-2010) and of ShardingSphere's
// SNOWFLAKE (class SnowflakeKeyGenerateAlgorithm,
// https://shardingsphere.apache.org/document/current/en/user-manual/common-config/builtin-algorithm/keygen/).
// With the default max-vibration-offset, the keys of one table are the same as ShardingSphere's.
// Other layouts are possible ([Layout]). The keys of js53 stay below 2^53 for JavaScript.
//
//	keyGenerators:
//	  snowflake: {type: SNOWFLAKE, props: {worker-id: 123}} # for one process
//	  ring:      {type: SNOWFLAKE_RING, props: {worker-id: 124, ring-size: 200}}
//	  safe:      {type: SNOWFLAKE, props: {worker-id-assigner: cluster}}
//
// The page about [configuration] has their properties.
//
// # Keys modulo n
//
// Keys that are alone in their tick have the remainders 0 to n−1 modulo n in turn, if
// max-vibration-offset is n−1. Each table has its own turn, however the tables that share a
// generator are written. For n that isn't a power of two, ShardingSphere starts with the sequences 0
// to n−1 instead, so remainders depend on the times of the keys.
//
// # Why keys are unique
//
// The state of a worker ID is one 64-bit word: the first unused pair of time and sequence. The word
// only rises (the file state.go of this package has the proof). The clock determines the time of new
// keys, but not whether they are new, so a step of the clock can't repeat a key. Generators of one
// process with the same layout, epoch, worker ID and clock share the word, and it outlives them.
//
// Across processes and restarts, uniqueness depends on the worker ID. With a leased worker ID, keys
// stay within a time interval that no other process has. With a fixed worker-id, the operator must
// ensure that no two processes use it at the same time. After a restart, the clock must be past the
// keys of the previous process.
//
// # Waiting
//
// A tick has a limited number of keys, in [Classic] 4,096 per millisecond. Further callers wait for
// the next tick, in order, until their context ends. One of them sleeps on a timer on behalf of
// all. A sleeping goroutine wakes up late. While the layout is saturated, the generator therefore
// uses up the ticks that have passed, and keys lag behind the clock by at most 40 ms. With a clock
// other than the system's they don't lag, and each key is the same as ShardingSphere's.
//
// A call for more keys than a tick has takes several whole ticks. Keys of one call are consecutive
// within a tick.
//
// [configuration]: https://github.com/shardkey/shardkey/blob/main/docs/reference/configuration.md#snowflake
package snowflake
