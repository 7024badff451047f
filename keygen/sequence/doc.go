// Package sequence has the key generators LEAF_SEGMENT, which claims numbers from the
// table leaf_alloc of Meituan's Leaf, and TICKET, which claims them from AUTO_INCREMENT
// columns of ticket servers. Import it for its effect; the driver does. Tables and
// properties are in docs/reference/generators.md.
//
//	keyGenerators:
//	  leaf: {type: LEAF_SEGMENT, props: {leaf.key: order, leaf.jdbc.url: "jdbc:mysql://10.0.0.1:3306/leaf"}}
//	  ticket: {type: TICKET, props: {dsns: "app:pw@tcp(10.0.0.1:3306)/tickets,app:pw@tcp(10.0.0.2:3306)/tickets"}}
//
// Keys are positive int64 and ascend within a call: contiguous, or a step of the increment
// apart with several ticket servers. Keys of several processes do not ascend over time.
// Numbers claimed but not used, for example by a claim whose answer is lost, are gaps,
// never repeats.
//
// # From memory, and by a fetch
//
// Numbers claimed together are a segment. A key is handed out from it by one atomic
// addition (or one compare-and-swap for several keys) on an offset that only grows. Calls
// that need more than is in memory wait in a queue. One goroutine fetches for
// all of them, in one claim; each call gets its own part, and what is left over
// serves later calls. A call returns when its context ends; the fetch continues.
//
// LEAF_SEGMENT fetches the next segment in the background as soon
// as the rest of the current one would last less than the property reserve at the current
// rate. A segment that lasts under 15 minutes doubles the size of later ones, one that
// lasts over 30 halves it, within min-step and max-step; that is Leaf's rule
// (SegmentIDGenImpl.java, updateSegmentFromDb). TICKET fetches what the
// waiting calls want, and at least the property batch.
//
// # Why no number of LEAF_SEGMENT repeats
//
// max_id is the first unclaimed number. A process that raises it by n owns the n
// numbers max_id-n … max_id-1 of the raised value. Leaf's servers do so in a
// transaction (IDAllocMapper.java, updateMaxId); here it is one statement, whose OK packet
// returns the new max_id:
//
//		UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(max_id + n) WHERE biz_tag = …
//
//	 1. The row's lock makes each raise of max_id one step: the intervals of two
//	    raises do not overlap, as long as max_id only grows.
//	 2. Each statement requires max_id to be at or above the end of what this
//	    generator has claimed before. If max_id was set back (a restored backup, a
//	    failover that lost writes), every claim is an error.
//
// # Why no number of TICKET repeats
//
// The LAST_INSERT_ID of this statement is the next number, as Flickr described
// (https://code.flickr.net/2010/02/08/ticket-servers-distributed-unique-primary-keys-on-the-cheap/):
//
//	REPLACE INTO Tickets64 (stub) VALUES ('a')
//
// Several numbers cost one packet, whatever n is: the table is locked, and
//
//	REPLACE INTO Tickets64 (stub) VALUES ('a')                  -- the first
//	REPLACE INTO Tickets64 (id, stub) VALUES (first+(n-2)*N, 'a')
//	REPLACE INTO Tickets64 (stub) VALUES ('a')                  -- the last
//
// are committed together before it is unlocked. An explicit id moves AUTO_INCREMENT on to
// the next number after it, so that last is first+(n-1)*N, where N is the increment. No
// other client gets one of the n: before the lock the server handed out only lower
// ones, during it none, and after it only higher ones. The row holds the last one,
// so that a restarted server continues from there.
//
//  1. A server's AUTO_INCREMENT hands out each number once, to whichever client.
//  2. With auto_increment_increment = N and each server's own auto_increment_offset of
//     1…N, server k hands out only numbers ≡ k modulo N. Both settings are read at the
//     start of each connection. An increment other than the property, or an
//     offset that is beyond it or another server's too, is an error, whichever server is
//     asked.
//  3. Each number is checked: above the server's last one (an error
//     otherwise, as after a restored backup), ≡ the offset modulo N, and below the
//     column's end: there, REPLACE would return the same number forever. The last
//     number of a block is checked as well.
package sequence
