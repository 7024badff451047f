// Package ticket is the key generator TICKET: numbers from AUTO_INCREMENT columns
// of one or more MySQL servers, as Flickr described in "Ticket Servers:
// Distributed Unique Primary Keys on the Cheap"
// (https://code.flickr.net/2010/02/08/ticket-servers-distributed-unique-primary-keys-on-the-cheap/).
// Import it for its effect; the driver does. Its properties are in docs/ticket.md.
//
//	keyGenerators:
//	  ticket: {type: TICKET, props: {dsns: "app:pw@tcp(10.0.0.1:3306)/tickets,app:pw@tcp(10.0.0.2:3306)/tickets"}}
//
// # The table
//
// Each ticket server has a table with one row:
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
// # Several numbers
//
// n numbers cost one packet, whatever n is: the table is locked, and
//
//	REPLACE INTO Tickets64 (stub) VALUES ('a')                  -- the first
//	REPLACE INTO Tickets64 (id, stub) VALUES (first+(n-2)*N, 'a')
//	REPLACE INTO Tickets64 (stub) VALUES ('a')                  -- the last
//
// are committed together before it is unlocked. An explicit id moves AUTO_INCREMENT on to the next number after it
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
// Calls that wait at the same time share one fetch.
//
// # Several servers
//
// With auto_increment_increment = N and each server's own
// auto_increment_offset of 1…N, server k hands out only numbers ≡ k modulo N, so
// that no two hand out the same one. The servers are asked in turn; one that is
// down is skipped, and retried after a second, doubling to 30.
//
// # Why no number repeats
//
//  1. A server's AUTO_INCREMENT hands out each number once, to whichever client.
//  2. Both settings are read at the start of each connection. An increment other
//     than the property increment, or an offset that is beyond it or another
//     server's too, is an error, and no keys, whichever server is asked.
//  3. Each number is checked: above the server's last one (an error
//     otherwise, as after a restored backup), ≡ the offset modulo the
//     increment, and below the column's end: there, REPLACE would return the same
//     number forever (an error).
//
// Keys are positive int64, ascending within a call, a step of the increment
// apart: with one server they are contiguous. Numbers fetched but not used are
// gaps.
package ticket
