package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"testing"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/driver/internal/session"
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
func newSent(in rewrite.Insert, from ...source) *outcome.Sent {
	s := &outcome.Sent{Insert: &in, Column: &facts.Column{Type: columntype.Parse("bigint"), Stores: facts.StoresIntegers}}
	in.AllGenerated = !slices.ContainsFunc(from, func(s source) bool { return s != fromGenerator })
	if !in.AllGenerated {
		s.Explicit, s.Missing = make([]any, len(from)), make([]bool, len(from))
	}
	for i, f := range from {
		key := [sources]rewrite.KeySource{rewrite.Generated, rewrite.Argument, rewrite.Argument, rewrite.Literal, rewrite.Expression}[f]
		in.Rows = append(in.Rows, rewrite.Row{Key: key, Arg: i})
		switch f {
		case fromGenerator, fromArgument:
			s.Keys.Ints = append(s.Keys.Ints, firstKey+int64(i))
			if f == fromArgument {
				s.Missing[i] = true
			}
		case explicitArgument, explicitLiteral:
			s.Explicit[i] = int64(firstExplicit + i)
		}
	}
	return s
}

// carriesFirst reports whether the statement can contain LAST_INSERT_ID(key): its first generated key is
// one whatever the arguments are.
func carriesFirst(s *outcome.Sent) bool {
	i := slices.IndexFunc(s.Rows, func(r rewrite.Row) bool { return r.Key == rewrite.Generated || r.Key == rewrite.Argument })
	return i >= 0 && s.Rows[i].Key == rewrite.Generated
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
func tables(yield func(facts.Column, outcome.Server) bool) {
	for bits := range 1 << 9 {
		is := func(i int) bool { return bits>>i&1 != 0 }
		c := facts.Column{
			HasTriggers: is(0), Triggered: is(0) && is(1), MaySkip: is(0) && is(2),
			OtherHasAutoIncrement: is(3), MayHaveOther: is(4), AutoIncrement: is(5),
			Type: columntype.Parse("bigint"), Stores: facts.StoresIntegers,
		}
		s := outcome.Server{ReportsIDs: !is(6), SkipsRows: c.MaySkip, FoundRows: is(7), StoresZero: is(8)}
		switch {
		case !is(0) && (is(1) || is(2)), is(3) && (is(4) || is(5)), is(4) && is(5): // the same as another, or impossible
			continue
		case !yield(c, s):
			return
		}
	}
}

// everySent yields statements, whose forms and facts are complete for up to most rows.
func everySent(most int) iter.Seq[*outcome.Sent] {
	return func(yield func(*outcome.Sent) bool) {
		for n := 1; n <= most; n++ {
			for from := range kinds(n) {
				for _, form := range forms {
					for column, server := range tables {
						for bits := range 1 << 2 {
							s := newSent(form, from...)
							s.Column, s.Server, s.WantsKeys = &column, server, bits&1 != 0
							reports := bits&2 != 0
							if s.Guarded = form.OnDuplicate && reports; !form.OnDuplicate || n == 1 && s.Guarded {
								s.Carries = reports && carriesFirst(s) && (server.ReportsIDs || form.OnDuplicate)
							}
							s.ReportsExistingKey, s.ReportsFirstKey = s.Guarded, s.Carries
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
func everyReport(s *outcome.Sent) iter.Seq[outcome.Report] {
	return func(yield func(outcome.Report) bool) {
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
				if !yield(outcome.Report{Affected: int64(affected), InsertID: id}) {
					return
				}
			}
			if !yield(outcome.Report{Affected: outcome.Unknown, InsertID: id}) {
				return
			}
		}
	}
}

// everyAnswer yields the answers to a question about a statement.
func everyAnswer(s *outcome.Sent, r outcome.Report, q outcome.Question) iter.Seq[*outcome.Answer] {
	return func(yield func(*outcome.Answer) bool) {
		if !yield(&outcome.Answer{Err: errors.New("unanswered")}) {
			return
		}
		switch q {
		case outcome.WhichLastID:
			for _, id := range []uint64{lastBefore, firstKey, 55} {
				if !yield(&outcome.Answer{LastID: id}) {
					return
				}
			}
		case outcome.IsKey:
			_ = yield(&outcome.Answer{Present: map[string]bool{session.Text(r.InsertID): true}}) && yield(&outcome.Answer{})
		case outcome.WhichKeys:
			keys := slices.DeleteFunc(s.RowKeys(), func(key any) bool { return key == nil })
			if s.ReportsMatch() {
				keys = append(keys, int64(firstOther))
			}
			for bits := range 1 << len(keys) {
				present := map[string]bool{}
				for i, key := range keys {
					if bits>>i&1 != 0 {
						present[session.Text(key)] = true
					}
				}
				if !yield(&outcome.Answer{Present: present}) {
					return
				}
			}
		}
	}
}

type fixedAnswers struct {
	answers outcome.Answers
}

type unasking struct{ q outcome.Question }

func (f *fixedAnswers) get(q outcome.Question) *outcome.Answer {
	if f.answers[q] == nil {
		panic(unasking{q})
	}
	return f.answers[q]
}

func (f *fixedAnswers) AskLastID(context.Context) (uint64, error) {
	a := f.get(outcome.WhichLastID)
	return a.LastID, a.Err
}

func (f *fixedAnswers) PresentKeys(ctx context.Context, _ *rewrite.Insert, keys []any, last bool) (map[string]bool, error) {
	q := outcome.WhichKeys
	if ctx.Value(isKey{}) != nil {
		q = outcome.IsKey
	}
	a := f.get(q)
	return a.Present, a.Err
}

func TestConclusions_sameAsBefore(t *testing.T) {
	compared, statements := 0, 0
	logger := slog.New(slog.DiscardHandler)
	for s := range everySent(3) {
		statements++
		n := len(s.Rows)
		if n == 2 && statements%41 != 0 || n == 3 && statements%997 != 0 || s.Server.StoresZero || !s.Server.ReportsIDs && s.Server.SkipsRows {
			continue
		}
		if slices.ContainsFunc(s.Rows, func(r rewrite.Row) bool { return r.Key == rewrite.Literal }) {
			continue
		}
		s.Insert.Table = &rewrite.Table{Key: "id"}
		kind := "mysql"
		if s.Server.SkipsRows {
			kind = "mariadb"
		}
		if !s.Server.ReportsIDs {
			kind = "vitess"
		}
		cache := &session.Cache{Kind: kind, Client: session.Client{FoundRows: s.Server.FoundRows}}
		conn := &base.Conn{}
		table := &keyedTable{}
		table.setKind(kindInteger)
		user := make([]driver.NamedValue, n)
		for i := range user {
			if s.Explicit != nil {
				user[i].Value = s.Explicit[i]
			}
		}
		for r := range everyReport(s) {
			if r.Affected == outcome.Unknown && s.OnDuplicate {
				continue // it asks now
			}
			if s.Column.OtherHasAutoIncrement && s.OnDuplicate && n == 1 && r.InsertID == firstKey {
				continue // the insert ID isn't an existing row's
			}
			var try func(answers outcome.Answers)
			try = func(answers outcome.Answers) {
				e := &execution{plan: &plan{Plan: &rewrite.Plan{}, rules: &ruleVersion{logger: logger}}, user: user}
				ses := session.New(conn, cache)
				_, _ = ses.Server(t.Context())
				ses.LastID.Told(lastBefore)
				e.session = &ses
				if s.WantsKeys {
					e.out = &keysList{keys: new(Keys)}
				}
				e.first = insertion{plannedInsert: &plannedInsert{table: table, in: s.Insert}, column: s.Column, keys: s.Keys, generated: s.Missing,
					carries: s.Carries, guarded: s.Guarded, asked: recorder{asker: &fixedAnswers{answers}}}
				ask := outcome.Nothing
				func() {
					defer func() {
						switch p := recover().(type) {
						case unasking:
							ask = p.q
						case nil:
						default:
							panic(p)
						}
					}()
					e.settleInsert(t.Context(), &e.first, insertReport{r.Affected, r.InsertID})
				}()
				if ask == outcome.Nothing {
					compared++
					return
				}
				for answer := range everyAnswer(s, r, ask) {
					answers[ask] = answer
					try(answers)
				}
			}
			try(outcome.Answers{})
		}
	}
	t.Logf("%d statements, %d conclusions compared", statements, compared)
}
