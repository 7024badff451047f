package outcome

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/test/digest"
	"github.com/shardkey/shardkey/rewrite"
)

var update = flag.Bool("update", false, "write testdata/conclusions.txt")

// TestConclude_asRecorded: a change of the code changes no conclusion, unless testdata/conclusions.txt changes
// with it. The file has a digest of the conclusions about random statements for each form.
func TestConclude_asRecorded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	all := digest.Digests{}
	for range 100_000 {
		s := randomSent(r)
		before, report := randomLastID(r), randomReport(r, s)
		var answers Answers
		c, ask := Conclude(before, s, report, &answers)
		for ask != Nothing {
			answers[ask] = pick(r, slices.Collect(everyAnswer(s, report, ask)))
			c, ask = Conclude(before, s, report, &answers)
		}
		all.Add(formName(s), fmt.Sprintf("before %v %s%v, keys %v, doubt %v", before, describeRandom(s, report, answers),
			[2]any{c.LastInsertID, c.LastID}, c.Keys(s), c.Doubt() != nil))
	}
	all.Compare(t, "testdata/conclusions.txt", *update)
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// randomSent returns a statement with any combination of properties that statements and tables can have.
func randomSent(r *rand.Rand) *Sent {
	oneIn := func(n int) bool { return r.IntN(n) == 0 }
	in := pick(r, forms)
	in.Returning, in.ReadsLastID, in.Invalid = oneIn(8), oneIn(8), oneIn(32)
	var s *Sent
	if oneIn(5) {
		in.Table, in.SelectKey = &rewrite.Table{}, pick(r, []rewrite.KeySource{rewrite.Generated, rewrite.Generated, rewrite.Literal, rewrite.Expression})
		s = &Sent{Insert: &in, Counted: r.IntN(4)}
		for i := range r.IntN(3) + s.Counted {
			s.Keys.Ints = append(s.Keys.Ints, firstKey+int64(i))
		}
	} else {
		from := make([]source, 1+r.IntN(3))
		for i := range from {
			from[i] = pick(r, []source{fromGenerator, fromGenerator, fromArgument, explicitArgument, explicitLiteral, fromExpression})
		}
		s = newSent(in, from...)
		if len(from) == 1 && oneIn(8) {
			s.Select = "SELECT"
		}
	}
	s.Column = &facts.Column{
		HasTriggers: oneIn(3), OtherHasAutoIncrement: oneIn(6), AutoIncrement: oneIn(6), Versioned: oneIn(8),
		Type: columntype.Parse(pick(r, []string{"bigint", "bigint", "bigint unsigned"})), Stores: pick(r, []facts.Storage{facts.StoresIntegers, facts.StoresUnknown}),
	}
	c := s.Column
	c.Triggered, c.MaySkip = c.HasTriggers && oneIn(3), c.HasTriggers && oneIn(3)
	c.AutoIncrement = c.AutoIncrement && !c.OtherHasAutoIncrement
	c.MayHaveOther = !c.AutoIncrement && !c.OtherHasAutoIncrement && oneIn(4)
	s.Server = Server{ReportsIDs: !oneIn(4), SkipsRows: !oneIn(4), FoundRows: oneIn(3), StoresZero: oneIn(4)}
	s.CallsFunctions, s.WantsKeys = in.OnDuplicate && len(s.Rows) > 1 && oneIn(4), oneIn(2)
	reports := oneIn(2)
	if s.ReportsExistingKey = in.OnDuplicate && !in.Returning && reports && s.SelectKey == ""; !in.OnDuplicate || len(s.Rows) == 1 && s.ReportsExistingKey {
		s.ReportsFirstKey = reports && s.SelectKey == "" && s.carriesFirst()
	}
	s.Keys.Unreported = oneIn(16)
	if oneIn(10) {
		s.Table.Strings, s.ReportsFirstKey, s.ReportsExistingKey = true, false, false
		for i := range s.Keys.Ints {
			s.Keys.Values = append(s.Keys.Values, fmt.Sprint("k", i))
		}
		s.Keys.Ints = nil
	}
	return s
}

func randomLastID(r *rand.Rand) LastID {
	return pick(r, []LastID{{}, before, before.After(Lost), before.After(Moved), LastID{}.After(Untold(firstKey)), LastID{}.After(Told(55))})
}

func randomReport(r *rand.Rand, s *Sent) Report {
	n := s.Len()
	ids := []int64{0, 0, firstKey, firstKey + 1, firstOther, generatedByOther, -5, 55, firstExplicit, firstExplicit + int64(n) - 1, firstKey + int64(n) - 1}
	report := Report{Affected: int64(r.IntN(2*n + 2)), InsertID: pick(r, ids), Failed: r.IntN(16) == 0}
	if r.IntN(8) == 0 {
		report.Affected = Unknown
	}
	return report
}

// describeRandom describes what a conclusion is about.
func describeRandom(s *Sent, r Report, a Answers) string {
	var rows []string
	for i, row := range s.Rows {
		rows = append(rows, fmt.Sprint(row.Key, s.generated(i)))
	}
	text := fmt.Sprintf("%s %v counted %d returning %t reads %t invalid %t select %q reports %t %t unreported %t strings %t calls %t wants %t column %+v server %+v report %+v",
		formName(s), rows, s.Counted, s.Returning, s.ReadsLastID, s.Invalid, s.Select, s.ReportsFirstKey, s.ReportsExistingKey, s.Keys.Unreported,
		s.Table.Strings, s.CallsFunctions, s.WantsKeys, columnFacts(s.Column), s.Server, r)
	for q, answer := range a {
		if answer != nil {
			text += fmt.Sprintf(" answer %d %+v", q, *answer)
		}
	}
	return text + " → "
}

func columnFacts(c *facts.Column) []any {
	return []any{c.HasTriggers, c.Triggered, c.MaySkip, c.OtherHasAutoIncrement, c.MayHaveOther, c.AutoIncrement, c.Versioned, c.Stores, c.IsUnsigned()}
}

// formName returns the name of a statement's form.
func formName(s *Sent) string {
	name := "INSERT"
	if s.Replace {
		name = "REPLACE"
	}
	if s.Ignore {
		name += " IGNORE"
	}
	if s.SelectKey != "" {
		name += " … SELECT"
	}
	if s.OnDuplicate {
		name += " ON DUPLICATE KEY UPDATE"
	}
	return fmt.Sprintf("%s, rows: %d", name, s.Len())
}
