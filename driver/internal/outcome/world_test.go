package outcome

import (
	"fmt"
	"iter"
	"slices"
	"testing"
)

// fate is what happened to a row.
type fate uint8

const (
	isNew     fate = iota
	renamed        // a trigger changed its key
	skipped        // by IGNORE or a trigger
	replaces       // another row
	overrides      // an earlier row of the statement
	unchanged      // of an upsert: the row existed, and stayed as it was
	changed        // the row existed, and was updated
	silent         // the row existed, and counts as a new one
)

// generatedByOther is the value that another AUTO_INCREMENT column generated.
const generatedByOther = 901

// world is what happened at a server that executed a statement.
type world struct {
	fates  []fate
	keys   []any           // of the rows in the table, nil for a row that isn't there
	table  map[string]bool // all keys in the table
	report Report
	last   uint64 // LAST_INSERT_ID()
}

// fatesOf returns what may happen to a row.
func fatesOf(s *Sent, row int) []fate {
	fates := []fate{isNew}
	if s.Column.Triggered {
		fates = append(fates, renamed)
	}
	if s.Ignore || s.maySkip() {
		fates = append(fates, skipped)
	}
	if s.Replace {
		if fates = append(fates, replaces); row > 0 {
			fates = append(fates, overrides)
		}
	}
	if s.OnDuplicate {
		fates = append(fates, unchanged, changed, silent)
	}
	return fates
}

// worlds yields what may have happened to a statement's rows.
func worlds(s *Sent) iter.Seq[*world] {
	return func(yield func(*world) bool) {
		fates := make([]fate, len(s.Rows))
		var next func(row int) bool
		next = func(row int) bool {
			if row < len(fates) {
				for _, f := range fatesOf(s, row) {
					if fates[row] = f; !next(row + 1) {
						return false
					}
				}
				return true
			}
			for w := range outcomes(s, fates) {
				if !yield(w) {
					return false
				}
			}
			return true
		}
		next(0)
	}
}

// outcomes yields the reports that a server may return about the rows.
func outcomes(s *Sent, fates []fate) iter.Seq[*world] {
	return func(yield func(*world) bool) {
		w := world{fates: slices.Clone(fates), keys: make([]any, len(fates)), table: map[string]bool{}}
		own, carried, set, failed := s.RowKeys(), false, int64(0), int64(0)
		for i, f := range fates {
			if s.carries() && s.generated(i) && !carried {
				carried, set = true, InsertID(own[i])
			}
			switch existing := int64(firstOther + i); f {
			case isNew, replaces, overrides:
				w.keys[i] = own[i]
				w.report.Affected++
				if f != isNew {
					w.report.Affected++
				}
				if f == overrides {
					w.keys[i-1] = nil
				}
			case renamed:
				w.keys[i] = int64(401 + i)
				w.report.Affected++
			case unchanged, changed, silent:
				w.keys[i], failed = existing, InsertID(own[i])
				w.report.Affected += map[fate]int64{unchanged: 0, changed: 2, silent: 1}[f]
				if f == unchanged && s.Server.FoundRows {
					w.report.Affected++
				}
				if s.ReportsExistingKey {
					set = existing
				}
			}
		}
		for _, key := range w.keys {
			if key != nil {
				w.table[text(key)] = true
			}
		}
		w.last = lastBefore
		if set != 0 {
			w.last = uint64(set)
		}
		if s.Column.OtherHasAutoIncrement && slices.ContainsFunc(fates, inserts_) {
			set, w.last = generatedByOther, generatedByOther
		}
		ids := []int64{set}
		if s.Column.HasTriggers && s.OnDuplicate && set != generatedByOther {
			ids = append(ids, 0) // reset
			if s.Column.AutoIncrement && s.ReportsExistingKey && failed != 0 {
				ids = append(ids, failed)
			}
		}
		for _, id := range ids {
			one := w
			if one.report.InsertID = id; id == 0 && s.Column.AutoIncrement && slices.ContainsFunc(fates, inserts_) {
				one.report.InsertID = lastKey(w, own)
			}
			if !yield(&one) {
				return
			}
		}
	}
}

func inserts_(f fate) bool { return f == isNew || f == renamed || f == replaces || f == overrides }

// lastKey returns the last key that the statement set in an AUTO_INCREMENT column.
func lastKey(w world, own []any) int64 {
	for i, f := range slices.Backward(w.fates) {
		if f == isNew || f == replaces || f == overrides {
			return InsertID(own[i])
		}
	}
	return 0
}

// answer is the server's answer.
func (w *world) answer(s *Sent, q Question) *Answer {
	a := &Answer{LastID: w.last, Present: map[string]bool{}}
	asked := []any{w.report.InsertID}
	if q == WhichKeys {
		if asked = s.RowKeys(); s.ReportsMatch() {
			asked = append(asked, int64(w.last))
		}
	}
	for _, key := range asked {
		if key != nil && w.table[text(key)] {
			a.Present[text(key)] = true
		}
	}
	return a
}

// mustReturn is what LAST_INSERT_ID() must return.
func (w *world) mustReturn(s *Sent) uint64 {
	if s.Column.OtherHasAutoIncrement {
		if slices.ContainsFunc(w.fates, inserts_) {
			return generatedByOther
		}
		return lastBefore
	}
	for i, key := range s.RowKeys() {
		if f := w.fates[i]; s.generated(i) && (f == isNew || f == replaces || f == overrides) {
			return uint64(InsertID(key))
		}
	}
	return lastBefore
}

// TestConclude_inEveryWorld: whatever happens to the rows, the conclusion is about what happened.
func TestConclude_inEveryWorld(t *testing.T) {
	statements, all := 0, 0
	for s := range everySent(3) {
		statements++
		if n := len(s.Rows); n == 3 && statements%97 != 0 || s.Column.MayHaveOther || !s.Server.ReportsIDs ||
			slices.ContainsFunc(s.RowKeys(), func(key any) bool { return key == nil }) {
			continue
		}
		for w := range worlds(s) {
			all++
			var answers Answers
			c, ask := Conclude(before, s, w.report, &answers)
			for ask != Nothing {
				answers[ask] = w.answer(s, ask)
				c, ask = Conclude(before, s, w.report, &answers)
			}
			if problem := w.contradicts(s, c); problem != "" {
				t.Fatalf("%s\nfates %v, keys %v, table %v, LAST_INSERT_ID() %d\n%s", problem, w.fates, w.keys, w.table, w.last, describe(s, w.report, answers, c))
			}
		}
	}
	t.Logf("%d statements, %d worlds", statements, all)
}

// contradicts returns what is wrong with a conclusion.
func (w *world) contradicts(s *Sent, c Conclusion) string {
	for i, key := range c.Keys(s) {
		if key != nil && key != w.keys[i] && s.WantsKeys {
			return fmt.Sprintf("row %d doesn't have the key %v", i+1, key)
		}
	}
	switch id := c.LastInsertID; {
	case id == 0, id == generatedByOther && s.Column.OtherHasAutoIncrement, w.table[text(id)]:
	case s.Replace && uint64(id) == w.mustReturn(s):
	default:
		return fmt.Sprintf("LastInsertId %d is the key of no row", id)
	}
	last := c.LastID
	switch {
	case s.Replace && len(s.Rows) > 1 && (s.Column.Triggered || s.maySkip()):
		// Whether a row was replaced or had another key, no report and no query shows.
	case last.Known() && last.Value() != w.mustReturn(s):
		return fmt.Sprintf("LAST_INSERT_ID() must return %d, not %d", w.mustReturn(s), last.Value())
	case last.Known() && last.Synced() && last.Value() != w.last:
		return fmt.Sprintf("LAST_INSERT_ID() returns %d", w.last)
	case !last.Known() && w.last != w.mustReturn(s) && !s.Column.OtherHasAutoIncrement:
		return "LAST_INSERT_ID() is left to the server, which has another value"
	}
	return ""
}
