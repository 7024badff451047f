package outcome

import (
	"fmt"
	"slices"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rewrite"
)

var before = LastID{}.After(Told(lastBefore))

// TestConclude_every: whatever the server reports and answers, a generated key is reported only if the
// report proves that its row exists, or if the table has shown it.
func TestConclude_every(t *testing.T) {
	statements, conclusions := 0, 0
	for s := range everySent(3) {
		statements++
		if n := len(s.Rows); n == 2 && statements%41 != 0 || n == 3 && statements%997 != 0 { // a part of them
			continue
		}
		for r := range everyReport(s) {
			everyConclusion(before, s, r, Answers{}, func(a Answers, c Conclusion) {
				conclusions++
				if problem := check(s, r, a, c); problem != "" {
					t.Fatalf("%s\n%s", problem, describe(s, r, a, c))
				}
			})
		}
	}
	t.Logf("%d statements, %d conclusions", statements, conclusions)
}

// check returns what is wrong with a conclusion.
func check(s *Sent, r Report, a Answers, c Conclusion) string {
	shown := a[WhichKeys] != nil && a[WhichKeys].Err == nil
	isRow := func(key any) bool {
		if shown {
			return a[WhichKeys].Present[text(key)]
		}
		return a[WhichKeys] == nil && mayProve(s, r)
	}
	keys := c.Keys(s)
	for i, key := range keys {
		switch {
		case key == nil:
		case s.generated(i) && key == s.RowKeys()[i] && !isRow(key):
			return fmt.Sprintf("the key of row %d may be in no row", i+1)
		case key != s.RowKeys()[i] && key != any(r.InsertID) && !(shown && a[WhichKeys].Present[text(key)]):
			return fmt.Sprintf("key %v of row %d is neither the row's, nor reported, nor in the table", key, i+1)
		}
	}
	id := c.LastInsertID
	switch {
	case id == 0, id == r.InsertID:
	case slices.Contains(s.Keys.Ints, id):
		if !isRow(id) && !(s.Replace && r.Affected != 0) {
			return "LastInsertId is a key that may be in no row"
		}
	case id == InsertID(s.explicit(len(s.Rows)-1)):
		if r.Affected == 0 {
			return "LastInsertId is an explicit key, and no row was inserted"
		}
	case !shown || !a[WhichKeys].Present[text(id)]:
		return "LastInsertId is no key"
	}
	last := c.LastID
	if last.Known() && last.Value() != lastBefore && last.Value() != uint64(id) && last.Value() != uint64(r.InsertID) {
		return "LAST_INSERT_ID() must return a value that nothing reports"
	}
	return ""
}

// mayProve reports whether a report can prove that all rows were inserted.
func mayProve(s *Sent, r Report) bool {
	n := int64(len(s.Rows))
	switch {
	case r.Affected == 0 || s.Column.Triggered:
		return false
	case r.Affected == Unknown:
		return !s.Ignore && !s.maySkip() && (!s.OnDuplicate || s.ReportsExistingKey)
	case s.OnDuplicate:
		return r.Affected == n && s.ReportsExistingKey
	case s.Replace:
		return r.Affected >= n
	}
	return r.Affected == n
}

func describe(s *Sent, r Report, a Answers, c Conclusion) string {
	text := fmt.Sprintf("statement: %+v\ninsert: %+v\ncolumn: %+v\nreport: %+v\n", *s, *s.Insert, *s.Column, r)
	for q, answer := range a {
		if answer != nil {
			text += fmt.Sprintf("answer to %d: %+v\n", q, *answer)
		}
	}
	return text + fmt.Sprintf("conclusion: %+v\nkeys: %v\n", c, c.Keys(s))
}

// TestPlain: the usual INSERT has the same conclusion as if it weren't plain.
func TestPlain(t *testing.T) {
	for _, carries := range []bool{true, false} {
		for _, form := range []rewrite.Insert{{}, {Ignore: true}, {Replace: true}} {
			s := newSent(form, fromGenerator)
			s.ReportsFirstKey = carries
			c, _ := Conclude(before, s, Report{Affected: 1}, &Answers{})
			usual := s.Usual()
			must.Equal(t, c.LastID, usual.LastID)
			must.Equal(t, fmt.Sprint(c.LastInsertID, c.Keys(s)), fmt.Sprint(usual.LastInsertID, usual.Keys(s)))
		}
	}
}

// TestCases: each case decides about a report, and none repeats the one behind it.
func TestCases(t *testing.T) {
	reached := map[*oneCase]bool{}
	note := func(table []oneCase, p property) {
		for i := range table {
			if c := &table[i]; p&c.is == c.is && p&c.isnt == 0 {
				reached[c] = true
				return
			}
		}
	}
	for s := range everySent(2) {
		for r := range everyReport(s) {
			for _, other := range []bool{false, true} {
				note(s.cases(), s.properties(r, other))
			}
		}
	}
	for _, table := range [][]oneCase{inserts, upserts, upsertsOfSeveral} {
		for i := range table {
			if !reached[&table[i]] {
				t.Errorf("case %d of %d decides about no report: %+v", i, len(table), table[i])
			}
		}
	}
}
