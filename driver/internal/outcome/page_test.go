package outcome

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rewrite"
)

// example is a statement in the table of docs/understand/core.md. Its affected rows and insert IDs are
// those that MySQL and MariaDB report.
type example struct {
	name    string
	sent    *Sent
	reports []Report
}

func examples() (all []example) {
	add := func(name string, in rewrite.Insert, rows int, change func(*Sent), reports ...Report) {
		s := newSent(in, make([]source, rows)...)
		s.Server.ReportsIDs, s.WantsKeys = true, true
		s.ReportsFirstKey, s.ReportsExistingKey = !in.OnDuplicate || rows == 1, in.OnDuplicate
		change(s)
		all = append(all, example{name, s, reports})
	}
	unchanged := func(*Sent) {}
	add("`INSERT`, 1 row", forms[0], 1, unchanged, Report{Affected: 1, InsertID: firstKey}, Report{Failed: true})
	add("`INSERT`, 2 rows", forms[0], 2, unchanged, Report{Affected: 2, InsertID: firstKey})
	add("`INSERT IGNORE`, 2 rows", forms[1], 2, unchanged, Report{Affected: 2, InsertID: firstKey}, Report{Affected: 1, InsertID: firstKey}, Report{InsertID: firstKey})
	add("`REPLACE`, 1 row", forms[2], 1, unchanged, Report{Affected: 2, InsertID: firstKey})
	add("`REPLACE`, 2 rows", forms[2], 2, unchanged, Report{Affected: 2, InsertID: firstKey}, Report{Affected: 3, InsertID: firstKey})
	add("upsert, 1 row", forms[3], 1, unchanged, Report{Affected: 1, InsertID: firstKey}, Report{Affected: 1, InsertID: firstOther},
		Report{Affected: 2, InsertID: firstOther}, Report{InsertID: firstOther})
	add("upsert with `IGNORE`, 1 row", forms[4], 1, unchanged, Report{InsertID: firstKey})
	add("upsert, 2 rows", forms[3], 2, unchanged, Report{Affected: 2}, Report{Affected: 3, InsertID: firstOther})
	add("`INSERT … SELECT`, 2 rows", rewrite.Insert{SelectKey: rewrite.Generated}, 0, func(s *Sent) {
		s.Counted, s.Keys.Ints = 2, []int64{firstKey, firstKey + 1, firstKey + 2}
	}, Report{Affected: 2, InsertID: firstKey}, Report{Affected: 1, InsertID: firstKey}, Report{})
	add("`INSERT`, an explicit key", forms[0], 1, func(s *Sent) { *s = *newSent(forms[0], explicitArgument) }, Report{Affected: 1})
	add("`INSERT`, a trigger assigns the key", forms[0], 1, func(s *Sent) { s.Column.HasTriggers, s.Column.Triggered = true, true },
		Report{Affected: 1, InsertID: firstKey})
	add("`INSERT`, another column has AUTO_INCREMENT", forms[0], 1, func(s *Sent) { s.Column.OtherHasAutoIncrement = true },
		Report{Affected: 1, InsertID: generatedByOther})
	add("`INSERT IGNORE`, 2 rows with text keys", forms[1], 2, func(s *Sent) {
		s.Table.Strings, s.ReportsFirstKey, s.Keys = true, false, rewrite.Keys{Values: []any{"k1", "k2"}}
	}, Report{Affected: 1})
	return all
}

// TestPage_table compares the table of docs/understand/core.md with the conclusions.
func TestPage_table(t *testing.T) {
	const file = "../../../docs/understand/core.md"
	page := string(must.Get(os.ReadFile(file))(t))
	want := "| statement | affected | insert ID | rows | LastInsertId | `LAST_INSERT_ID()` |\n| --- | --- | --- | --- | --- | --- |\n"
	for _, e := range examples() {
		for _, r := range e.reports {
			want += e.row(r)
		}
	}
	start := strings.Index(page, "| statement |")
	if start < 0 {
		t.Fatalf("%s has no table\nwant:\n%s", file, want)
	}
	have, _, _ := strings.Cut(page[start:], "\n\n")
	if strings.TrimSpace(have) != strings.TrimSpace(want) {
		t.Errorf("%s\nhave:\n%s\nwant:\n%s", file, have, want)
	}
}

// row returns the line about a report.
func (e example) row(r Report) string {
	c, ask := Conclude(before, e.sent, r, &Answers{})
	report := fmt.Sprintf("%d | %s", r.Affected, name(r.InsertID))
	if r.Failed {
		report = "error | "
	}
	if ask != Nothing {
		return fmt.Sprintf("| %s | %s | ask the table | | |\n", e.name, report)
	}
	keys := make([]string, 0, e.sent.Len())
	for _, key := range c.Keys(e.sent) {
		keys = append(keys, name(key))
	}
	if r.Failed {
		keys = nil
	}
	last := name(int64(c.LastID.Value()))
	if !c.LastID.Synced() {
		last += ", to be set"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", e.name, report, strings.Join(keys, ", "), name(c.LastInsertID), last)
}

// name returns the name of a key in the table.
func name(key any) string {
	switch key {
	case nil:
		return "–"
	case any(int64(lastBefore)):
		return "as before"
	case any(int64(firstKey)):
		return "K1"
	case any(int64(firstKey + 1)):
		return "K2"
	case any(int64(firstExplicit)):
		return "its key"
	case any(int64(firstOther)):
		return "E"
	case any(int64(generatedByOther)):
		return "A"
	}
	return fmt.Sprint(key)
}
