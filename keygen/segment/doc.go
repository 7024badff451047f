// Package segment has the key generators LEAF_SEGMENT and TICKET. LEAF_SEGMENT claims numbers from
// the table leaf_alloc of Meituan's Leaf. TICKET claims numbers from the AUTO_INCREMENT columns of
// ticket servers. Importing the package registers both types, and the driver imports it. The
// page about [generators that share a server] has the tables and properties.
//
//	keyGenerators:
//	  leaf: {type: LEAF_SEGMENT, props: {leaf.key: order, leaf.jdbc.url: "jdbc:mysql://10.0.0.1:3306/leaf"}}
//	  ticket: {type: TICKET, props: {dsns: "app:pw@tcp(10.0.0.1:3306)/tickets,app:pw@tcp(10.0.0.2:3306)/tickets"}}
//
// Keys are positive int64 and ascend within a call. They are consecutive, or a multiple of the
// increment apart with several ticket servers. Keys of several processes don't ascend over time.
// Numbers that are claimed but not used, for example because an answer was lost, become gaps.
//
// # Segments
//
// Numbers that are claimed together are a segment. A key comes from the segment by one atomic
// addition to an offset that only grows, and several keys by one compare-and-swap. Calls that need
// more numbers than there are in memory wait in a queue. One goroutine fetches numbers for all of
// them in one claim. Each call gets its own part, and later calls use the rest. A call returns when
// its context ends, and the fetch continues.
//
// LEAF_SEGMENT fetches the next segment in the background. It starts when the rest of the current
// segment would last less than the property reserve at the current rate. If a segment lasts less
// than 15 minutes, the size of later ones doubles. If it lasts more than 30 minutes, the size is
// halved. The size stays between min-step and max-step. Leaf has the same rule
// (SegmentIDGenImpl.java, updateSegmentFromDb). TICKET fetches as many numbers as the waiting calls
// need, and at least the property batch.
//
// # Why numbers of LEAF_SEGMENT are unique
//
// max_id is the first unclaimed number. A process that raises max_id by n owns the n numbers before
// the new max_id. Leaf's servers raise it in a transaction (IDAllocMapper.java, updateMaxId). This
// package uses one statement, whose OK packet returns the new max_id:
//
//		UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(max_id + n) WHERE biz_tag = …
//
//	 1. The row lock makes each raise of max_id atomic. The intervals of two raises don't overlap, as
//	    long as max_id only grows.
//	 2. Each statement requires that max_id is at or above the end of the generator's earlier claims.
//	    If max_id was set back, by a restored backup or by a failover that lost writes, each claim
//	    is an error.
//
// # Why numbers of TICKET are unique
//
// The LAST_INSERT_ID of this statement is the next number, as Flickr described
// (https://code.flickr.net/2010/02/08/ticket-servers-distributed-unique-primary-keys-on-the-cheap/):
//
//	REPLACE INTO Tickets64 (stub) VALUES ('a')
//
// Any number n of numbers costs one packet. The table is locked, these statements are committed
// together, and the table is unlocked:
//
//	REPLACE INTO Tickets64 (stub) VALUES ('a')                  -- the first
//	REPLACE INTO Tickets64 (id, stub) VALUES (first+(n-2)*N, 'a')
//	REPLACE INTO Tickets64 (stub) VALUES ('a')                  -- the last
//
// An explicit id advances AUTO_INCREMENT to the next number after it, so the last number is
// first+(n-1)*N, where N is the increment. No other client gets one of the n numbers. Before the
// lock the server only handed out lower ones, during the lock none, and after it only higher ones.
// The row has the last number, so a restarted server continues from there.
//
//  1. A server's AUTO_INCREMENT hands out each number once.
//  2. With auto_increment_increment = N, and a different auto_increment_offset of 1…N on each
//     server, server k only hands out numbers ≡ k modulo N. Both settings are read at the start of
//     each connection. An increment other than the property is an error, and so is an offset above
//     the increment or equal to another server's. It is an error whichever server is asked.
//  3. Each number is checked. It must be above the server's last number, which it isn't after a
//     restored backup. It must be ≡ the offset modulo N, and below the column's end. At the end,
//     REPLACE would return the same number forever. The last number of a block is checked too.
//
// [generators that share a server]: https://github.com/shardkey/shardkey/blob/main/docs/reference/generators.md
package segment
