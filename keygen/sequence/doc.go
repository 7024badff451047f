// Package sequence has the key generators LEAF_SEGMENT, which claims numbers from a table
// of Meituan's Leaf, and TICKET, which claims them from AUTO_INCREMENT columns of ticket
// servers. Both claim many numbers at once and hand them out from memory. Import
// it for its effect; the driver does. The properties are in docs/leaf-segment.md and
// docs/ticket.md.
//
//	keyGenerators:
//	  leaf: {type: LEAF_SEGMENT, props: {leaf.key: order, leaf.jdbc.url: "jdbc:mysql://10.0.0.1:3306/leaf"}}
//	  ticket: {type: TICKET, props: {dsns: "app:pw@tcp(10.0.0.1:3306)/tickets,app:pw@tcp(10.0.0.2:3306)/tickets"}}
//
// Keys are positive int64 and ascend within a call. Those of LEAF_SEGMENT are contiguous;
// those of TICKET are a step of the increment apart, and contiguous with one server.
// Keys of several processes do not ascend over time. Numbers claimed but not used, for
// example by a claim whose answer is lost, are gaps, never repeats.
//
// # From memory, and by a fetch
//
// A claimed run of numbers is a segment. A key is handed out from it by one atomic
// addition (or one compare-and-swap for several keys) on an offset that only grows. Calls
// that the numbers in memory don't suffice for wait in a queue. One goroutine fetches for
// all that wait, in one claim; each call gets its own part of it, and what is left over
// serves later calls. The fetch belongs to no call: a call returns when its context ends,
// and the fetch continues.
//
// LEAF_SEGMENT fetches the next segment in the background as soon
// as the rest of the current one would last less than the property reserve at the current
// rate. A segment that lasts under 15 minutes doubles the size of later ones, one that
// lasts over 30 halves it, within min-step and max-step; that is Leaf's rule
// (SegmentIDGenImpl.java, updateSegmentFromDb). TICKET fetches as many numbers as the
// waiting calls want, and at least the property batch.
//
// Claims are sent over a connection that no transaction of the program uses. A claim is
// tried again after a deadlock, and on a new connection when the old one broke or its
// server has become read-only. Of several servers, those that are down are skipped
// and tried again after a second, doubling to 30. Connections are replaced every ten
// minutes, so that changed settings are seen.
//
// # LEAF_SEGMENT: leaf_alloc
//
// The table is Leaf's own (scripts/leaf_alloc.sql of
// https://github.com/Meituan-Dianping/Leaf), with one row for each sequence, found by
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
// No number repeats:
//
//  1. The row's lock makes each raise of max_id one step: the intervals of two
//     raises do not overlap, as long as max_id only grows.
//  2. Each statement requires max_id to be at or above the end of what this
//     generator has claimed before. If max_id was set back (a restored backup, a
//     failover that lost writes), every claim is an error.
//
// # TICKET: ticket servers
//
// Ticket servers are what Flickr described in "Ticket Servers:
// Distributed Unique Primary Keys on the Cheap"
// (https://code.flickr.net/2010/02/08/ticket-servers-distributed-unique-primary-keys-on-the-cheap/).
// Each has a table with one row:
//
//	CREATE TABLE Tickets64 (
//	  id   bigint unsigned NOT NULL AUTO_INCREMENT,
//	  stub char(1)         NOT NULL DEFAULT '',
//	  PRIMARY KEY (id),
//	  UNIQUE KEY stub (stub)
//	) ENGINE=InnoDB;
//
// and this statement returns the next number, as its LAST_INSERT_ID:
//
//	REPLACE INTO Tickets64 (stub) VALUES ('a')
//
// n numbers cost one packet, whatever n is: the table is locked, and
//
//	REPLACE INTO Tickets64 (stub) VALUES ('a')                  -- the first
//	REPLACE INTO Tickets64 (id, stub) VALUES (first+(n-2)*N, 'a')
//	REPLACE INTO Tickets64 (stub) VALUES ('a')                  -- the last
//
// are committed together before it is unlocked. An explicit id moves AUTO_INCREMENT on to
// the next number after it
// (https://dev.mysql.com/doc/refman/8.4/en/example-auto-increment.html), so that
// last is first+(n-1)*N, where N is the increment. That is checked each time. No
// other client gets one of the n: before the lock the server handed out only lower
// ones, during it none, and after it only higher ones. The row holds the last one,
// so that a restarted server continues from there.
//
// Where the user may not lock tables, n numbers are requested by one REPLACE of n
// rows, for which InnoDB takes time quadratic in n. MySQL assigns consecutive ids
// to such rows (https://dev.mysql.com/doc/refman/8.4/en/innodb-auto-increment-handling.html,
// "simple inserts"); that is checked as well, by the id of the row that remains, in
// the same transaction.
//
// With auto_increment_increment = N and each server's own
// auto_increment_offset of 1…N, server k hands out only numbers ≡ k modulo N, so
// that no two hand out the same one. The servers are asked in turn.
//
// No number repeats:
//
//  1. A server's AUTO_INCREMENT hands out each number once, to whichever client.
//  2. Both settings are read at the start of each connection. An increment other
//     than the property increment, or an offset that is beyond it or another
//     server's too, is an error, and no keys, whichever server is asked.
//  3. Each number is checked: above the server's last one (an error
//     otherwise, as after a restored backup), ≡ the offset modulo the
//     increment, and below the column's end: there, REPLACE would return the same
//     number forever (an error).
package sequence
