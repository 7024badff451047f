package outcome

import (
	"errors"
	"maps"
	"slices"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// State is what is known of a row.
type State uint8

// The states of a row.
const (
	Inserted State = iota
	NotInserted
	Uncertain
)

// found is what is known of a statement's rows.
type found struct {
	is     verdict
	states []State // of each row; nil: all rows were inserted
	// id is the insert ID, if it may be the key of a row that was inserted or existed.
	id int64
	// existing is the key of the only row that existed, if known.
	existing any
	// lastPresent: the last row's key is in the table, perhaps as another row's key.
	lastPresent bool
	selected    []any // the keys of an INSERT … SELECT
	doubt       error // see [Conclusion]
}

// kept returns a copy that a conclusion keeps.
func (f found) kept() *found { return &f }

func (f *found) of(i int) State {
	if f == nil || f.states == nil {
		return Inserted
	}
	return f.states[i]
}

// count returns the number of rows with a state, of n rows.
func (f *found) count(n int, state State) (count int) {
	for i := range n {
		if f.of(i) == state {
			count++
		}
	}
	return count
}

// all sets the state of n rows.
func (f *found) all(n int, state State) { f.states = slices.Repeat([]State{state}, n) }

// find returns what is known of the rows of values.
func (s *Sent) find(r Report, other bool, answers *Answers) (found, Question) {
	f := found{is: s.verdict(r, other), id: r.InsertID}
	switch f.is {
	case noneInserted:
		f.all(len(s.Rows), NotInserted)
	case oneExists:
		f.all(1, NotInserted)
		f.existing = s.asKey(r.InsertID)
	case unclear:
		return s.examine(f, r, answers)
	}
	return f, Nothing
}

// examine concludes from the table, unless the caller gets no key of uncertain rows: text keys aren't
// insert IDs, and AUTO_INCREMENT reports the first key of a REPLACE whose rows replace each other.
func (s *Sent) examine(f found, r Report, answers *Answers) (found, Question) {
	if !s.WantsKeys && (f.is == laterReplaced || s.Table.Strings) {
		f.is = unclear
		f.all(len(s.Rows), Uncertain)
		return f, Nothing
	}
	answer := answers[WhichKeys]
	if answer == nil {
		return f, WhichKeys
	}
	return s.inTable(r, answer), Nothing
}

// errContradiction is the doubt about the keys of a statement after which another server answered, another
// session changed the rows, or an invisible trigger did.
var errContradiction = errors.New("the affected rows don't match the keys in the table: a replica may have answered the query")

// inTable concludes from the keys in the table: which rows were inserted, and which existing row an
// upsert matched last. Without an answer, or if that contradicts the affected rows, the other rows stay
// uncertain, since the statement has succeeded.
func (s *Sent) inTable(r Report, answer *Answer) found {
	f := found{is: unclear, id: r.InsertID}
	if answer.Err != nil {
		f.all(len(s.Rows), Uncertain)
		f.doubt = answer.Err
		return f
	}
	keys := s.RowKeys()
	n := s.compare(&f, keys, answer.Present)
	isOwn := r.InsertID == 0 || answer.Present[text(s.asKey(r.InsertID))] // the matched row may be one of the statement's
	others := s.others(keys, answer.Present)
	matched := s.matched(n, r.Affected)
	lost := s.ReportsMatch() && len(others) == 0 && n.given == 0 && matched && !(isOwn && n.inserted > 0)
	if lost || len(others) > 1 || !s.isPossible(&f, n, r.Affected) {
		for i, state := range f.states {
			if state == NotInserted {
				f.states[i] = Uncertain
			}
		}
		f.doubt = errContradiction
		return f
	}
	if !s.OnDuplicate && !s.Replace {
		s.settleExplicit(&f, r.Affected-n.inserted)
	}
	if s.OnDuplicate && !isOwn && slices.ContainsFunc(keys, func(key any) bool { return InsertID(key) == f.id }) {
		f.id = 0 // the key of a row that wasn't inserted, which only an INSERT reports
	}
	s.findExisting(&f, others, matched)
	f.is = s.verdictOf(&f, r)
	return f
}

// others returns the keys in the table that aren't the rows' own: LAST_INSERT_ID(), at most.
func (s *Sent) others(keys []any, present map[string]bool) map[string]bool {
	if !s.ReportsMatch() {
		return nil
	}
	others := maps.Clone(present)
	for _, key := range keys {
		if key != nil {
			delete(others, text(key))
		}
	}
	return others
}

// ReportsMatch reports whether LAST_INSERT_ID() is the key of the row that the statement matched last, so
// that [WhichKeys] asks for it.
func (s *Sent) ReportsMatch() bool { return s.ReportsExistingKey && s.Server.ReportsIDs }

// counts are numbers of rows by their keys.
type counts struct {
	inserted int64 // generated, and in the table
	given    int64 // explicit or an expression, so another row may have it
	missing  int64 // not in the table
}

// compare sets the rows' states by the keys that are in the table.
func (s *Sent) compare(f *found, keys []any, present map[string]bool) (n counts) {
	f.all(len(keys), Uncertain)
	for i, key := range keys {
		is := key != nil && present[text(key)]
		f.lastPresent = is // of the last row, in the end
		switch {
		case is && s.generated(i):
			f.states[i] = Inserted
			n.inserted++
		case is:
			f.states[i] = Inserted
			n.given++
		case key == nil: // only the server knows the key
			n.given++
		default:
			f.states[i] = NotInserted
			n.missing++
		}
	}
	return n
}

// isPossible reports whether the rows allow that number of affected rows.
func (s *Sent) isPossible(f *found, n counts, affected int64) bool {
	switch {
	case affected == Unknown, s.Column.Triggered:
		return true
	case s.Replace: // the last row isn't replaced, but a trigger may have skipped it
		return s.Column.MaySkip || f.of(len(s.Rows)-1) != NotInserted
	case !s.OnDuplicate:
		return n.inserted <= affected && affected <= n.inserted+n.given
	}
	return n.inserted <= affected && affected <= n.inserted+2*(n.missing+n.given) // a row that existed counts 0, 1 or 2
}

// settleExplicit sets the states of an INSERT's rows without a generated key, given how many of them were
// inserted. An explicit key in the table may be another row's.
func (s *Sent) settleExplicit(f *found, inserted int64) {
	state, candidates := Uncertain, int64(0)
	for i, is := range f.states {
		if is != NotInserted && !s.generated(i) {
			candidates++
		}
	}
	switch {
	case s.Column.Triggered: // a generated key that the trigger changed looks as if it was skipped
	case inserted == candidates:
		state = Inserted
	case inserted == 0:
		state = NotInserted
	}
	for i, is := range f.states {
		if !s.generated(i) && is != NotInserted {
			f.states[i] = state
		}
	}
}

// findExisting finds the key of the row that an upsert matched last, for the only row that existed, and as
// the insert ID. others has LAST_INSERT_ID(), which is the existing row's key if the statement set it, and
// may be an older one otherwise.
func (s *Sent) findExisting(f *found, others map[string]bool, matched bool) {
	n := len(s.Rows)
	if n > 1 && s.hidesID() {
		return
	}
	missing := f.count(n, NotInserted)
	for other := range others {
		key := sqltoken.ParseInteger(other, 10)
		if id := InsertID(key); matched || s.carries() && missing > 0 || id == f.id {
			f.id = id
			if missing == 1 && f.count(n, Uncertain) == 0 {
				f.existing = key
			}
		}
	}
}

// matched reports whether a row certainly existed, so that LAST_INSERT_ID() is the key of the last such
// row. IGNORE or a trigger may have skipped the rows instead, which then don't count, and a trigger may
// have changed a new row's key.
func (s *Sent) matched(n counts, affected int64) bool {
	others := n.inserted + 2*n.given // at most
	if s.Column.Triggered {
		others += n.missing
	}
	return n.missing > 0 && (affected > others || !s.Ignore && !s.Column.Triggered && !s.maySkip()) &&
		!(s.hidesID() && len(s.Rows) > 1)
}

// hidesID reports whether LAST_INSERT_ID() may be another column's value after a statement that also
// inserts a row.
func (s *Sent) hidesID() bool { return s.Column.OtherHasAutoIncrement || s.Column.MayHaveOther }

// verdictOf returns the verdict on an upsert of one row from the row's state.
func (s *Sent) verdictOf(f *found, r Report) verdict {
	switch {
	case !s.OnDuplicate || len(s.Rows) > 1 || f.of(0) == Uncertain:
		return unclear
	case f.of(0) == Inserted:
		return allInserted
	case f.existing != nil:
		return oneExists
	case s.Column.Triggered && r.Affected != 0:
		return unclear // the row may have another key
	}
	return noneInserted
}
