// Package ticket is the key generator TICKET: numbers that MySQL's
// AUTO_INCREMENT makes, in the way that Flickr made known.
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
// and this statement gives the next number, as its LAST_INSERT_ID:
//
//	REPLACE INTO Tickets64 (stub) VALUES ('a')
//
// # Several numbers
//
// n numbers cost one packet, whatever n is: the table is locked, and
//
//	REPLACE INTO Tickets64 (stub) VALUES ('a')                  -- gives first
//	REPLACE INTO Tickets64 (id, stub) VALUES (first+(n-2)*N, 'a')
//	REPLACE INTO Tickets64 (stub) VALUES ('a')                  -- gives last
//
// An id that is set moves AUTO_INCREMENT behind it, so that last is
// first+(n-1)*N, N being the increment. That is checked, not believed. Nobody
// else was given one of the n: before the lock the server gave only lower ones,
// during it none to others, and after it only higher ones. The row holds the
// last one, so that a server that starts again counts on from there.
//
// Where the user may not lock tables, n numbers are asked for by one REPLACE of
// n rows, for which InnoDB takes time quadratic in n. MySQL gives such rows ids
// that follow each other; that is checked as well, by the id of the row that is
// left, in the same transaction.
//
// Calls that wait at the same time share one fetch.
//
// # Several servers
//
// With auto_increment_increment = N and each server's own
// auto_increment_offset of 1…N, server k gives only numbers ≡ k modulo N, so
// that no two give the same one. The servers are asked in turn; one that is
// down is passed over, and tried again after a second, doubling to 30.
//
// # Why no number comes twice
//
//  1. A server's AUTO_INCREMENT gives each number once, whoever asks.
//  2. Both settings are read at the start of each connection. An increment
//     other than the property increment, an offset beyond it or one that another
//     server has too is [ErrSettings], and no keys, whichever server is asked.
//  3. Each number is checked: above the server's last one ([ErrRepeated]
//     otherwise, as after a restored backup), ≡ the offset modulo the
//     increment, and below the column's end: there, REPLACE would give the same
//     number for ever ([ErrExhausted]).
//
// Keys are positive int64, ascending within a call, a step of the increment
// apart: with one server they are contiguous. Numbers fetched but not used are
// gaps.
package ticket
