package outcome

import (
	"errors"
	"iter"
	"slices"

	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/rewrite"
)

// Keys in the tests. A statement's generated keys begin with firstKey and its explicit ones with
// firstExplicit. Rows that existed begin with firstOther, and LAST_INSERT_ID() was lastBefore.
const (
	lastBefore    = 7
	firstKey      = 101
	firstExplicit = 201
	firstOther    = 301
)

// source is where a row's key comes from.
type source uint8

const (
	fromGenerator source = iota
	fromArgument         // that asks for a key
	explicitArgument
	explicitLiteral
	fromExpression
	sources
)

// newSent returns a statement with rows whose keys come from these sources.
func newSent(in rewrite.Insert, from ...source) *Sent {
	in.Table = &rewrite.Table{}
	s := &Sent{Insert: &in, Column: &facts.Column{Type: columntype.Parse("bigint"), Stores: facts.StoresIntegers}}
	in.AllGenerated = !slices.ContainsFunc(from, func(s source) bool { return s != fromGenerator })
	if !in.AllGenerated {
		s.Explicit, s.Keys.Asked = make([]any, len(from)), make([]bool, len(from))
	}
	for i, f := range from {
		key := [sources]rewrite.KeySource{rewrite.Generated, rewrite.Argument, rewrite.Argument, rewrite.Literal, rewrite.Expression}[f]
		in.Rows = append(in.Rows, rewrite.Row{Key: key, Arg: -1})
		switch f {
		case fromGenerator, fromArgument:
			s.Keys.Ints = append(s.Keys.Ints, firstKey+int64(i))
			if f == fromArgument {
				s.Keys.Asked[i] = true
			}
		case explicitArgument, explicitLiteral:
			s.Explicit[i] = int64(firstExplicit + i)
		}
	}
	return s
}

// carriesFirst reports whether the statement can contain LAST_INSERT_ID(key): the first generated key is
// the same row's whatever the arguments are.
func (s *Sent) carriesFirst() bool {
	has := func(key rewrite.KeySource) bool {
		return slices.ContainsFunc(s.Rows, func(r rewrite.Row) bool { return r.Key == key })
	}
	return has(rewrite.Generated) && !has(rewrite.Argument)
}

// forms are the forms of INSERTs. SET is VALUES with one row.
var forms = []rewrite.Insert{{}, {Ignore: true}, {Replace: true}, {OnDuplicate: true}, {OnDuplicate: true, Ignore: true}}

// kinds yields all sources of n rows' keys.
func kinds(n int) iter.Seq[[]source] {
	return func(yield func([]source) bool) {
		from := make([]source, n)
		for {
			if !yield(slices.Clone(from)) {
				return
			}
			i := 0
			for i < n && from[i]+1 == sources {
				from[i], i = 0, i+1
			}
			if i == n {
				return
			}
			from[i]++
		}
	}
}

// tables are the combinations of facts about a table and a server.
func tables(yield func(facts.Column, Server) bool) {
	for bits := range 1 << 9 {
		is := func(i int) bool { return bits>>i&1 != 0 }
		c := facts.Column{
			HasTriggers: is(0), Triggered: is(0) && is(1), MaySkip: is(0) && is(2),
			OtherHasAutoIncrement: is(3), MayHaveOther: is(4), AutoIncrement: is(5),
			Type: columntype.Parse("bigint"), Stores: facts.StoresIntegers,
		}
		s := Server{ReportsIDs: !is(6), SkipsRows: c.MaySkip, FoundRows: is(7), StoresZero: is(8)}
		switch {
		case !is(0) && (is(1) || is(2)), is(3) && (is(4) || is(5)), is(4) && is(5): // the same as another, or impossible
			continue
		case !yield(c, s):
			return
		}
	}
}

// everySent yields statements, whose forms and facts are complete for up to most rows.
func everySent(most int) iter.Seq[*Sent] {
	return func(yield func(*Sent) bool) {
		for n := 1; n <= most; n++ {
			for from := range kinds(n) {
				for _, form := range forms {
					for column, server := range tables {
						for bits := range 1 << 2 {
							s := newSent(form, from...)
							s.Column, s.Server, s.WantsKeys = &column, server, bits&1 != 0
							reports := bits&2 != 0
							if s.ReportsExistingKey = form.OnDuplicate && reports; !form.OnDuplicate || n == 1 && s.ReportsExistingKey {
								s.ReportsFirstKey = reports && s.carriesFirst() && (server.ReportsIDs || form.OnDuplicate)
							}
							if !yield(s) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// everyReport yields the reports about a statement.
func everyReport(s *Sent) iter.Seq[Report] {
	return func(yield func(Report) bool) {
		n := len(s.Rows)
		ids := []int64{0, firstKey, firstOther}
		if n > 1 {
			ids = append(ids, firstKey+int64(n)-1)
		}
		if s.Explicit != nil {
			ids = append(ids, firstExplicit+int64(n)-1)
		}
		for _, id := range ids {
			for affected := range 2*n + 1 {
				if !yield(Report{Affected: int64(affected), InsertID: id}) {
					return
				}
			}
			if !yield(Report{Affected: Unknown, InsertID: id}) {
				return
			}
		}
	}
}

// everyAnswer yields the answers to a question about a statement.
func everyAnswer(s *Sent, r Report, q Question) iter.Seq[*Answer] {
	return func(yield func(*Answer) bool) {
		if !yield(&Answer{Err: errors.New("unanswered")}) {
			return
		}
		switch q {
		case WhichLastID:
			for _, id := range []uint64{lastBefore, firstKey, 55} {
				if !yield(&Answer{LastID: id}) {
					return
				}
			}
		case IsKey:
			_ = yield(&Answer{Present: map[string]bool{text(r.InsertID): true}}) && yield(&Answer{})
		case WhichKeys:
			keys := slices.DeleteFunc(s.RowKeys(), func(key any) bool { return key == nil })
			if s.ReportsMatch() {
				keys = append(keys, int64(firstOther))
			}
			for bits := range 1 << len(keys) {
				present := map[string]bool{}
				for i, key := range keys {
					if bits>>i&1 != 0 {
						present[text(key)] = true
					}
				}
				if !yield(&Answer{Present: present}) {
					return
				}
			}
		}
	}
}

// everyConclusion calls f with each conclusion about a report, with all answers to what it asks.
func everyConclusion(before LastID, s *Sent, r Report, answers Answers, f func(Answers, Conclusion)) {
	c, ask := Conclude(before, s, r, &answers)
	if ask == Nothing {
		f(answers, c)
		return
	}
	for answer := range everyAnswer(s, r, ask) {
		answers[ask] = answer
		everyConclusion(before, s, r, answers, f)
	}
}
