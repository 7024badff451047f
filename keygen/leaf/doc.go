// Package leaf is the key generator LEAF_SEGMENT: numbers from a table of
// Meituan's Leaf, fetched a segment at a time and handed out from memory. Import
// it for its effect; the driver does. Its properties are in docs/leaf-segment.md.
//
//	keyGenerators:
//	  leaf: {type: LEAF_SEGMENT, props: {leaf.key: order, leaf.jdbc.url: "jdbc:mysql://10.0.0.1:3306/leaf"}}
//
// # The table
//
// It is Leaf's own (scripts/leaf_alloc.sql of
// https://github.com/Meituan-Dianping/Leaf), one row for each sequence, found by
// its biz_tag:
//
//	CREATE TABLE leaf_alloc (
//	  biz_tag     varchar(128) NOT NULL DEFAULT '',
//	  max_id      bigint       NOT NULL DEFAULT 1,
//	  step        int          NOT NULL,
//	  description varchar(256) DEFAULT NULL,
//	  update_time timestamp    NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
//	  PRIMARY KEY (biz_tag)
//	) ENGINE=InnoDB;
//
// max_id is the first unclaimed number. A process that raises it by n owns the n
// numbers max_id-n … max_id-1 of the raised value. Leaf's servers do so in a
// transaction of two statements (IDAllocMapper.java, updateMaxId); here it is one
// statement,
//
//	UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(max_id + n) WHERE biz_tag = …
//
// whose OK packet returns the new max_id ("LAST_INSERT_ID(expr)" in
// https://dev.mysql.com/doc/refman/8.4/en/information-functions.html). Both may
// work on one row at the same time.
//
// # Why no number repeats
//
//  1. The row's lock makes each raise of max_id one step: the intervals of two
//     raises do not overlap, as long as max_id only grows.
//  2. Each statement requires max_id to be at or above the end of what this
//     generator has claimed before. If max_id was set back (a restored backup, a
//     failover that lost writes), every claim is an error.
//  3. In memory an interval is handed out by one atomic addition (or one
//     compare-and-swap for several numbers) on an offset that only grows.
//
// Numbers that fit a table are some of those that such a compare-and-swap, or a
// claim, took; the others are not handed out.
//
// A claim whose answer is lost is a gap, never a repeat.
//
// # Two buffers and a step that adapts
//
// While one segment is handed out, the next is fetched in the background as soon
// as what is left would last less than the property reserve at the current rate.
// A segment that lasts under 15 minutes doubles the size of later ones, one that
// lasts over 30 halves it, within min-step and max-step; that is Leaf's rule
// (SegmentIDGenImpl.java, updateSegmentFromDb). When both buffers are empty,
// callers share one fetch and wake together, or return when their context ends. A
// call for more numbers than a segment holds claims them by a statement of its
// own, so that they are contiguous.
//
// Keys are positive int64 and ascend within a call. Keys of several processes do
// not ascend over time, and a restart leaves a gap.
package leaf
