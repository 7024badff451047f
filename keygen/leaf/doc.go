// Package leaf is the key generator LEAF_SEGMENT: numbers from a table that
// Meituan's Leaf made known, fetched a segment at a time and handed out from
// memory.
//
// # The table
//
// Leaf's own, one row for each sequence, found by its biz_tag:
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
// max_id is the first number that nobody has claimed. Whoever raises it by n
// owns the n numbers max_id-n … max_id-1 of the raised value. Leaf's servers
// do the same, in a transaction of two statements; here it is one statement,
//
//	UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(max_id + n) WHERE biz_tag = …
//
// whose OK packet brings the new max_id back. Both may work on one row at the
// same time.
//
// # Why no number comes twice
//
//  1. The row's lock makes each raise of max_id one step: the intervals that
//     two raises give do not overlap, as long as max_id only grows.
//  2. Each statement asks max_id to be at or above the end of what this
//     generator has claimed before; a max_id that was set back (a restored
//     backup, a failover that lost writes) gives [ErrMovedBack], no numbers.
//  3. In memory an interval is handed out by one atomic addition (or one
//     compare-and-swap for several numbers) on an offset that only grows.
//
// A claim whose answer is lost is a gap, never a repeat.
//
// # Two buffers and a step that adapts
//
// While one segment is handed out the next is fetched in the background, when
// what is left would last less than the property reserve at the rate seen. A
// segment that lasts under 15 minutes doubles the size of later ones, one that
// lasts over 30 halves it, within min-step and max-step. When
// both buffers are empty, callers share one fetch and wake together, or leave
// when their context ends. More numbers in one call than a segment holds are
// claimed by one statement of their own, so that they are contiguous.
//
// Keys are positive int64, ascending within a call; from several processes
// they do not ascend over time, and a restart leaves a gap.
package leaf
