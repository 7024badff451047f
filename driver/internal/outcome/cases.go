package outcome

import (
	"slices"

	"github.com/shardkey/shardkey/driver/internal/facts"
)

// verdict is what a report shows about all rows of a statement.
type verdict uint8

const (
	unclear      verdict = iota // only the table shows it
	allInserted                 // of an INSERT … SELECT, as many rows as were affected
	noneInserted                // and if one existed, its key is unknown
	oneExists                   // the only row existed, and the insert ID is its key
	// laterReplaced: all rows were inserted, and a REPLACE may have replaced its own earlier rows.
	laterReplaced
)

// property is a property of a statement and of the report about it.
type property uint32

const (
	ignore    property = 1 << iota
	replace            // REPLACE
	upsert             // ON DUPLICATE KEY UPDATE
	several            // rows
	generated          // the only row's key
	carried            // the statement passes a key to LAST_INSERT_ID()
	existing           // if the upsert matched a row, the insert ID is that row's key
	other              // the insert ID may be another column's value
	skips              // a trigger may have skipped a row
	triggered          // a trigger may have changed a row's key
	resets             // something may have reset the insert ID after the report of an existing key
	reports            // the insert ID may be a new row's key that the statement doesn't carry
	zero               // a row may have the key 0

	known // the number of affected rows
	none  // 0 affected rows
	each  // as many as rows
	more  // 2 or more; for an upsert of one row: it changed a row that existed
	few   // at most as many as keys, for an INSERT … SELECT
	noID  // the insert ID is 0
	ownID // the insert ID is the key that the statement carries, or the only or last row's
)

// oneCase is a line of a table of cases: a report with all properties of is and none of isnt has the
// verdict then. The first line that fits decides.
type oneCase struct {
	is, isnt property
	then     verdict
}

// inserts is about INSERT and REPLACE. A row counts once, unless IGNORE or a trigger skipped it. A
// REPLACE also counts the rows that it replaced.
var inserts = []oneCase{
	{none, 0, noneInserted},                  // skipped, or in a comment for other servers
	{replace | several | skips, 0, unclear},  // a replaced row counts twice, a skipped one not at all
	{triggered, 0, unclear},                  // the row may have another key
	{each, 0, allInserted},                   // each row counts
	{replace | several, 0, laterReplaced},    // a row may have replaced an earlier one
	{replace | known, 0, allInserted},        // the others were replaced
	{0, ignore | skips | known, allInserted}, // nothing skips a row
	{0, 0, unclear},
}

// upserts is about ON DUPLICATE KEY UPDATE with one row.
//
// The insert ID of an upsert that reports existing keys is the key of the row that existed. If none
// existed, it is the key that the statement carries. Otherwise it is 0 or, for a column with
// AUTO_INCREMENT, the key that the statement set. It is also 0 if it was reset.
//
// The number of affected rows shows only that the row wasn't inserted: it counts 0 or at least 2. A new
// row counts 1, and so do some that existed: with clientFoundRows; if a trigger reverts the change; if
// the update sets a column that is NULL to NULL.
var upserts = []oneCase{
	{none, existing, noneInserted},
	{more, existing, noneInserted},
	{0, existing, unclear},

	{none | ignore | noID, 0, noneInserted},                                         // skipped
	{noID | known, carried | other | resets | none | more | triggered, allInserted}, // no key was reported
	{noID, 0, unclear},

	{other | resets, 0, unclear},
	{other | none | ownID | generated, 0, noneInserted}, // skipped by IGNORE
	{other | more | ownID | generated, 0, unclear},
	{other | none, 0, oneExists},
	{other | more, 0, oneExists},
	{other, 0, unclear},

	{0, ownID, oneExists},                  // the key of another row
	{0, generated | reports, oneExists},    // an explicit key is only reported for a row that existed
	{resets | reports, generated, unclear}, // it may be the key of the failed attempt to insert
	{none, generated, oneExists},
	{more, generated, oneExists},
	{none, 0, noneInserted}, // skipped by IGNORE
	{more, 0, unclear},
	{ignore, known, unclear},                   // it may have been skipped
	{skips, known, unclear},                    // it may have been skipped
	{generated | resets | reports, 0, unclear}, // it may be the key of the failed attempt to insert
	{triggered, 0, unclear},                    // the row may have another key
	{0, 0, allInserted},
}

// upsertsOfSeveral is about ON DUPLICATE KEY UPDATE with several rows. An insert ID that isn't an
// existing row's key shows that none existed.
var upsertsOfSeveral = []oneCase{
	{existing | each | noID, other | resets | triggered | zero, allInserted}, // no key was reported
	{existing | each | ownID, other | resets | triggered, allInserted},       // no key was reported
	{0, 0, unclear},
}

// selects is about INSERT … SELECT of several rows. The counter hands out the keys in order.
var selects = []oneCase{
	{none, 0, noneInserted},
	{known | each | ownID, upsert | triggered | skips, allInserted},           // as many rows as were counted
	{known | few, upsert | triggered | skips | ignore | replace, allInserted}, // no row is skipped
	{0, 0, unclear},
}

// verdict returns what a report shows about the rows.
func (s *Sent) verdict(r Report, isOther bool) verdict {
	table, p := s.cases(), s.properties(r, isOther)
	i := slices.IndexFunc(table, func(c oneCase) bool { return p&c.is == c.is && p&c.isnt == 0 })
	return table[i].then
}

// cases returns the table of cases for the statement.
func (s *Sent) cases() []oneCase {
	switch {
	case s.SelectKey != "":
		return selects
	case !s.OnDuplicate:
		return inserts
	case len(s.Rows) > 1:
		return upsertsOfSeveral
	}
	return upserts
}

// properties returns the properties of the statement with its report.
func (s *Sent) properties(r Report, isOther bool) property {
	n := s.Len()
	p := when(s.Ignore, ignore) | when(s.Replace, replace) | when(s.OnDuplicate, upsert) | when(n > 1, several) |
		when(s.carries(), carried) | when(isOther, other) | when(s.maySkip(), skips) | when(s.Column.Triggered, triggered) |
		when(s.Column.HasTriggers || s.CallsFunctions, resets) |
		when(s.Column.AutoIncrement || s.Column.Stores == facts.StoresUnknown, reports) | when(s.Server.StoresZero, zero)
	if s.ReportsExistingKey && (n > 1 || r.InsertID != 0 || s.Server.ReportsIDs) {
		p |= existing
	}
	if n == 1 && s.SelectKey == "" {
		p |= when(s.generated(0), generated)
	}
	return p | when(r.Affected != Unknown, known) | when(r.Affected == 0, none) | when(r.Affected == int64(n) && !s.hidesReplaced(n), each) |
		when(r.Affected > 1, more) | when(r.Affected <= int64(s.Keys.Len()), few) |
		when(r.InsertID == 0, noID) | when(r.InsertID != 0 && r.InsertID == s.ownID(), ownID)
}

func when(is bool, p property) property {
	if is {
		return p
	}
	return 0
}

// hidesReplaced reports whether the number of affected rows lacks those that the statement itself
// replaced: MariaDB doesn't count them in a table with system versioning.
func (s *Sent) hidesReplaced(n int) bool { return s.Replace && n > 1 && s.Column.Versioned }

// maySkip reports whether a trigger may have made the server skip a row.
func (s *Sent) maySkip() bool { return s.Column.MaySkip && s.Server.SkipsRows }

// ownID returns the key that the statement carries, or the last row's key if it was generated or is the
// only row's; 0 if unknown.
func (s *Sent) ownID() int64 {
	last := len(s.Rows) - 1
	switch {
	case s.SelectKey != "":
		if s.Keys.Len() > 0 {
			return s.id(0)
		}
	case s.carries():
		return s.id(0)
	case s.generated(last):
		return s.id(s.Keys.Len() - 1)
	case last == 0:
		return InsertID(s.explicit(0))
	}
	return 0
}
