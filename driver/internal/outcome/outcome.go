// Package outcome concludes from the server's report about an INSERT which rows were inserted, what
// LastInsertId returns, and what LAST_INSERT_ID() must return from then on. All of that must be the same
// as if the key column had AUTO_INCREMENT.
//
// [Conclude] is a pure function: of the statement, the report and the answers of the server. If the report
// leaves something open, the conclusion is a question, which the caller asks. A key is reported only if
// the report proves that its row exists, or if the table has shown it.
package outcome

import (
	"math"

	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/rewrite"
)

// Sent is an INSERT as it was sent.
type Sent struct {
	*rewrite.Insert
	Column *facts.Column // what is known of the key column

	// Keys are the generated keys, in the order of their rows. An INSERT … SELECT has more than rows.
	Keys rewrite.Keys
	// Explicit are the other rows' keys, nil for a key that only the server knows. It is nil if
	// [rewrite.Insert].AllGenerated.
	Explicit []any
	// Counted is the number of rows that the query of an INSERT … SELECT had.
	Counted int

	// Plain: there is one row with a generated int64 key that fits the column, and no clause and no trigger
	// can change it.
	Plain bool
	// CallsFunctions: an upsert of several rows may call a stored function after its first row.
	CallsFunctions bool
	// WantsKeys: the caller reads the keys of all rows.
	WantsKeys bool

	Server Server
}

// Server is what the meaning of a report depends on.
type Server struct {
	// ReportsIDs: LAST_INSERT_ID(expr) in an INSERT is its insert ID, for certain.
	ReportsIDs bool
	// SkipsRows: a trigger may make the server skip a row.
	SkipsRows bool
	// FoundRows: an upsert may count 1 for an existing row that it doesn't change; see clientFoundRows.
	FoundRows bool
	// StoresZero: sql_mode has NO_AUTO_VALUE_ON_ZERO, so that a row may have the key 0.
	StoresZero bool
}

// Report is the server's report about a statement.
type Report struct {
	// Affected is the number of affected rows, or Unknown. For a statement with RETURNING it is the
	// number of rows that were returned, if that is the number of inserted rows.
	Affected int64
	InsertID int64
	Failed   bool // the server returned an error
}

// Unknown stands for an unknown number of affected rows.
const Unknown = math.MinInt64

// Question is what a report leaves open.
type Question uint8

// The questions. The answers are about the moment after the statement.
const (
	Nothing     Question = iota
	WhichLastID          // what does LAST_INSERT_ID() return?
	IsKey                // is the insert ID a key in the table?
	WhichKeys            // which of the rows' keys are in the table, and is LAST_INSERT_ID() a key there?
	questions
)

// Answer is the server's answer to a question.
type Answer struct {
	LastID  uint64
	Present map[string]bool // keys in the table
	Err     error           // the server couldn't be asked
}

// Answers are the answers by question, nil for one that wasn't asked.
type Answers [questions]*Answer

// Conclusion is what a report means.
type Conclusion struct {
	LastInsertID int64
	LastID       LastID // LAST_INSERT_ID() from now on

	found *found // nil: all rows of values were inserted
}

// Doubt returns why the rows' keys are unknown although the table was asked, or nil.
func (c *Conclusion) Doubt() error {
	if c.found == nil {
		return nil
	}
	return c.found.doubt
}

// IsUsual reports whether the server has reported one affected row for a plain INSERT. The conclusion is
// then that the row was inserted; it needs no [Sent].Explicit, no Server and no insert ID.
func (s *Sent) IsUsual(r Report) bool { return s.Plain && r.Affected == 1 && !r.Failed }

// carries reports whether the statement passes the first generated key to LAST_INSERT_ID().
func (s *Sent) carries() bool { return s.ReportsFirstKey && !s.Keys.Unreported }

// Conclude returns what a report means, or the question to ask before that is known. before is
// LAST_INSERT_ID() before the statement.
func Conclude(before LastID, s *Sent, r Report, answers *Answers) (Conclusion, Question) {
	switch {
	case r.Failed:
		return Conclusion{LastID: before.After(s.failed())}, Nothing
	case s.Invalid: // the server should have refused it
		return Conclusion{LastInsertID: r.InsertID, LastID: before}, Nothing
	case s.SelectKey != "" && s.SelectKey != rewrite.Generated:
		return s.concludeKeysInQuery(before, r), Nothing
	case s.SelectKey != "":
		return s.concludeSelect(before, r, answers)
	}
	return s.concludeRows(before, r, answers)
}

// Usual is [Conclude] for a usual report.
func (s *Sent) Usual() Conclusion {
	key := s.Keys.Ints[0]
	if s.carries() {
		return Conclusion{LastInsertID: key, LastID: LastID{synced, uint64(key)}}
	}
	return Conclusion{LastInsertID: key, LastID: LastID{behind, uint64(key)}}
}

// failed returns the change of a statement that failed: the server may have evaluated the
// LAST_INSERT_ID(key) in it.
func (s *Sent) failed() Change {
	switch {
	case s.ReadsLastID && s.SelectKey == "", s.SelectKey != "" && s.SelectKey != rewrite.Generated:
		return Lost
	case s.ReportsFirstKey, s.ReportsExistingKey, s.SelectKey != "":
		return Moved
	}
	return Change{}
}

// concludeRows concludes about an INSERT with rows of values.
func (s *Sent) concludeRows(before LastID, r Report, answers *Answers) (c Conclusion, ask Question) {
	reported := r.InsertID
	other, ask := s.reportsOther(before, r, answers)
	if ask != Nothing {
		return c, ask
	}
	if r.InsertID, ask = s.reportedKey(r.InsertID, other, answers); ask != Nothing {
		return c, ask
	}
	f, ask := s.find(r, other, answers)
	if ask != Nothing {
		return c, ask
	}
	r.InsertID = f.id
	c = Conclusion{LastInsertID: s.lastInsertID(f, r, other), LastID: before.After(s.change(f, r, other))}
	if s.Column.MayHaveOther && !other && (s.Returning || s.OnDuplicate && reported != 0) {
		c.LastID = before.After(Lost) // it may be the other column's value
	}
	if f.is == laterReplaced {
		if f, ask = s.examine(f, r, answers); ask != Nothing {
			return c, ask
		}
	}
	if f.states != nil {
		c.found = f.kept()
	}
	return c, Nothing
}

// reportsOther reports whether the insert ID of a new row, and LAST_INSERT_ID(), is another column's
// value. If that is unknown, LAST_INSERT_ID() shows it: only a generated value is there too.
func (s *Sent) reportsOther(before LastID, r Report, answers *Answers) (bool, Question) {
	switch {
	case !s.Column.MayHaveOther:
		return s.Column.OtherHasAutoIncrement, Nothing
	case s.OnDuplicate, s.Returning, r.InsertID == 0, s.carries() && r.InsertID == s.id(0):
		return false, Nothing
	}
	now := answers[WhichLastID]
	if now == nil {
		return false, WhichLastID
	}
	unchanged := before.Known() && before.Synced() && before.Value() == now.LastID
	return now.Err != nil || now.LastID == uint64(r.InsertID) && !unchanged, Nothing
}

// reportedKey returns a reported insert ID if it may be the key of a row that was inserted or existed,
// otherwise 0.
func (s *Sent) reportedKey(id int64, other bool, answers *Answers) (int64, Question) {
	switch {
	case id == 0, s.Returning:
		return 0, Nothing // the server reports no ID with rows
	case s.OnDuplicate && s.ReportsExistingKey && (s.Column.MayHaveOther || !s.Server.ReportsIDs):
		is := answers[IsKey]
		switch {
		case is == nil:
			return 0, IsKey
		case is.Err != nil, !is.Present[text(id)]:
			return 0, Nothing // another column's value, generated by a Vitess sequence
		}
	case !s.OnDuplicate && s.carries() && !other:
		return 0, Nothing // the statement passed this key to LAST_INSERT_ID()
	}
	return id, Nothing
}

// change returns what the statement did to LAST_INSERT_ID(): it must return the first generated key that
// was inserted, if any.
func (s *Sent) change(f found, r Report, other bool) Change {
	if other {
		return s.changeBeside(f, r)
	}
	first, inserted := s.firstInserted(f)
	inserted = inserted && !s.Table.Strings
	carried := s.carries() && (inserted || !s.OnDuplicate && (f.is != noneInserted || s.Ignore))
	switch {
	case s.ReadsLastID && !inserted:
		return Lost // the statement may have changed it, as with an AUTO_INCREMENT column
	case inserted && carried && !s.ReadsLastID:
		return Change{Sets(uint64(first)), Sets(uint64(s.id(0)))}
	case inserted:
		return Untold(uint64(first))
	case carried:
		return Change{Server: Sets(uint64(s.id(0)))}
	case s.carries(), s.ReportsExistingKey && (f.is != allInserted || f.states != nil || r.InsertID != 0):
		return Moved // a row may have existed
	}
	return Change{}
}

// changeBeside is change for a table where another column has AUTO_INCREMENT. LAST_INSERT_ID() then
// returns a new row's value of that column.
func (s *Sent) changeBeside(f found, r Report) Change {
	switch {
	case f.is == oneExists || f.is == noneInserted:
		if s.carries() || s.ReportsExistingKey {
			return Moved
		}
		return Change{}
	case f.is == allInserted && !s.Returning && !s.ReadsLastID:
		return Told(uint64(r.InsertID))
	}
	return Lost
}

// lastInsertID returns the insert ID that an AUTO_INCREMENT column would report: the first generated key
// that was inserted. Without one it is the last row's key if the statement inserted or changed a row,
// otherwise 0.
func (s *Sent) lastInsertID(f found, r Report, other bool) int64 {
	first, inserted := s.firstInserted(f)
	switch {
	case s.Returning:
		return 0 // the server reports no ID with rows
	case other && (f.is == oneExists || f.is == noneInserted):
		return 0 // the ID is the key, not the other column's value
	case other:
		return r.InsertID // the other column's value, as without a rule
	case s.Table.Strings:
		return 0
	case inserted:
		return first
	case s.ReadsLastID && r.InsertID != 0:
		return r.InsertID
	case !s.changed(f, r), s.Select != "" && s.OnDuplicate:
		return 0 // with a query, the server doesn't report an explicit key of an upsert
	}
	return s.lastRowsKey(f, r)
}

// changed reports whether the statement inserted or changed a row. With clientFoundRows, an existing
// row that stays unchanged counts as one affected row.
func (s *Sent) changed(f found, r Report) bool {
	n := len(s.Rows)
	if !s.OnDuplicate || f.count(n, Inserted) > 0 || !s.Server.FoundRows {
		return r.Affected != 0
	}
	return r.Affected > int64(n)
}

// lastRowsKey returns the key of the last row: the explicit key, or the existing row's key. It returns 0
// if only the server has the key.
func (s *Sent) lastRowsKey(f found, r Report) int64 {
	last := len(s.Rows) - 1
	switch {
	case f.lastPresent:
	case s.generated(last) && r.InsertID == s.id(s.Keys.Len()-1):
		return 0 // the key of an ignored row: the server returns the last key of an AUTO_INCREMENT column
	case s.ReportsExistingKey && last > 0 && f.of(last) == Uncertain && !s.generated(last):
		return 0 // the ID may be an earlier row's key
	case f.of(last) != Inserted:
		return r.InsertID
	}
	if s.generated(last) {
		return 0 // the first generated key was reported
	}
	return InsertID(s.explicit(last))
}

// firstInserted returns the first generated key that was inserted. A later row of the same REPLACE may
// have replaced its row.
func (s *Sent) firstInserted(f found) (first int64, ok bool) {
	next := 0
	for i := range s.Rows {
		if !s.generated(i) {
			continue
		}
		if f.of(i) == Inserted {
			return s.id(next), true
		}
		next++
	}
	return 0, false
}
