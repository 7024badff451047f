package driver

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// The conclusions of package outcome are compared with those of this package, in tests.

var compares = testing.Testing()

// asker asks the server what a report leaves open.
type asker interface {
	AskLastID(ctx context.Context) (uint64, error)
	PresentKeys(ctx context.Context, in *rewrite.Insert, keys []any, last bool) (map[string]bool, error)
}

// recorder records the server's answers.
type recorder struct {
	asker
	answers outcome.Answers
}

func (r *recorder) AskLastID(ctx context.Context) (uint64, error) {
	id, err := r.asker.AskLastID(ctx)
	r.answers[outcome.WhichLastID] = &outcome.Answer{LastID: id, Err: err}
	return id, err
}

func (r *recorder) PresentKeys(ctx context.Context, in *rewrite.Insert, keys []any, last bool) (map[string]bool, error) {
	present, err := r.asker.PresentKeys(ctx, in, keys, last)
	r.answers[outcome.WhichKeys] = &outcome.Answer{Present: present, Err: err}
	return present, err
}

func (r *recorder) IsKey(ctx context.Context, in *rewrite.Insert, id int64) (map[string]bool, error) {
	present, err := r.asker.PresentKeys(context.WithValue(ctx, isKey{}, true), in, []any{id}, false)
	r.answers[outcome.IsKey] = &outcome.Answer{Present: present, Err: err}
	return present, err
}

func (e *execution) asks(k *insertion) *recorder {
	if k.asked.asker == nil {
		k.asked.asker = e.session
	}
	return &k.asked
}

// sentOf describes what was sent.
func (e *execution) sentOf(k *insertion) *outcome.Sent {
	s := &outcome.Sent{
		Insert: k.in, Column: k.column, Keys: k.keys, Missing: k.generated,
		Plain: k.plain, Text: k.table.kind() == kindText, Carries: k.carries, Guarded: k.guarded, WantsKeys: e.out != nil,
		CallsFunctions: k.in.OnDuplicate && len(k.in.Rows) > 1 && mayCallFunctions(e.plan.key.text),
		Server:         serverOf(e.session),
	}
	if !k.in.AllGenerated && !k.in.Invalid {
		s.Explicit = make([]any, len(k.in.Rows))
		for i := range s.Explicit {
			if !k.isGenerated(i) {
				s.Explicit[i] = e.storedKey(k, i)
			}
		}
	}
	return s
}

func serverOf(s *session.Session) outcome.Server {
	mode, _, _ := s.KnownMode()
	return outcome.Server{
		ReportsIDs: s.ReportsInsertIDs(), SkipsRows: s.TriggersSkipRows(), FoundRows: s.Client().FoundRows,
		StoresZero: mode&sqltoken.NoAutoValueOnZero != 0,
	}
}

func lastIDOf(l session.LastID) outcome.LastID {
	told := l
	switch told.Told(l.Value()); {
	case !l.Known():
		return outcome.LastID{}.After(outcome.Lost)
	case told == l:
		return outcome.LastID{}.After(outcome.Told(l.Value()))
	}
	return outcome.LastID{}.After(outcome.Untold(l.Value()))
}

// compareWith returns a function that compares the insert ID, LAST_INSERT_ID() and the keys after a
// statement.
func (e *execution) compareWith(k *insertion, r outcome.Report) func(id int64) {
	if !compares {
		return func(int64) {}
	}
	before := lastIDOf(e.session.LastID)
	return func(id int64) {
		sent := e.sentOf(k)
		c := concluded(before, sent, r, k.asked.answers)
		differs(sent, r, id, c.LastInsertID, "LastInsertId")
		differs(sent, r, lastIDOf(e.session.LastID), c.LastID, "LAST_INSERT_ID()")
		if !r.Failed && k == &e.first && !k.plain {
			differs(sent, r, e.values(), c.Keys(sent), "keys")
		}
	}
}

func (x *selection) compareWith(r outcome.Report) func(id int64, keys []any) {
	if !compares {
		return func(int64, []any) {}
	}
	before := lastIDOf(x.session.LastID)
	return func(id int64, keys []any) {
		sent := &outcome.Sent{Insert: x.in, Column: x.column, Keys: x.keys, Counted: x.n, WantsKeys: x.out != nil, Server: serverOf(x.session)}
		c := concluded(before, sent, r, x.asked.answers)
		differs(sent, r, id, c.LastInsertID, "LastInsertId")
		differs(sent, r, lastIDOf(x.session.LastID), c.LastID, "LAST_INSERT_ID()")
		if x.out != nil {
			differs(sent, r, keys, c.Keys(sent), "keys")
		}
	}
}

// concluded returns the conclusion, for which it uses exactly the recorded answers.
func concluded(before outcome.LastID, sent *outcome.Sent, r outcome.Report, recorded outcome.Answers) outcome.Conclusion {
	var answers outcome.Answers
	for {
		c := outcome.Conclude(before, sent, r, &answers)
		switch {
		case c.Ask == outcome.Nothing && answers != recorded:
			differs(sent, r, fmt.Sprint(recorded[1] != nil, recorded[2] != nil, recorded[3]), fmt.Sprint(answers[1] != nil, answers[2] != nil, answers[3]), "it asks less")
		case c.Ask == outcome.Nothing:
			return c
		case recorded[c.Ask] == nil || answers[c.Ask] != nil:
			panic(fmt.Sprintf("outcome: it asks %d\n%+v\n%+v\n%+v", c.Ask, *sent, *sent.Insert, r))
		}
		answers[c.Ask] = recorded[c.Ask]
	}
}

func differs(sent *outcome.Sent, r outcome.Report, have, want any, what string) {
	if fmt.Sprintf("%#v", have) != fmt.Sprintf("%#v", want) && !bothEmpty(have, want) {
		panic(fmt.Sprintf("outcome: %s %+v\nnow %+v\nsent %+v\ninsert %+v\ncolumn %+v\n%+v", what, have, want, *sent, *sent.Insert, *sent.Column, r))
	}
}

func bothEmpty(a, b any) bool {
	x, isX := a.([]any)
	y, isY := b.([]any)
	return isX && isY && len(x) == 0 && len(y) == 0 || isX && isY && slices.EqualFunc(x, y, func(a, b any) bool { return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b) })
}

type isKey struct{}
