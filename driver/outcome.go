package driver

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// conclude returns what the server's report about an INSERT means, and records what LAST_INSERT_ID() must
// return from now on. It asks the server what the report leaves open.
func (t *plannedInsert) conclude(
	ctx context.Context, s *session.Session, logger *slog.Logger, sent *outcome.Sent, r outcome.Report,
) outcome.Conclusion {
	var answers outcome.Answers
	for {
		c := outcome.Conclude(s.LastID(), sent, r, &answers)
		if c.Ask == outcome.Nothing {
			s.SetLastID(c.LastID)
			if err := c.Doubt(); err != nil && !t.table.unknown.Swap(true) {
				logger.WarnContext(ctx, "shardkey: keys of an INSERT are unknown", "table", t.Name(), "rows", sent.Len(), "error", err)
			}
			return c
		}
		answers[c.Ask] = answer(ctx, s, sent, r, c.Ask)
	}
}

// concludePlain is conclude for a plain INSERT whose row was inserted. It returns the insert ID.
func (k *insertion) concludePlain(s *session.Session) int64 {
	key := k.keys.Ints[0]
	s.SetLastID(outcome.Plain(key, k.carries))
	return key
}

// answer asks the server what a report leaves open.
func answer(ctx context.Context, s *session.Session, sent *outcome.Sent, r outcome.Report, q outcome.Question) *outcome.Answer {
	var a outcome.Answer
	switch q {
	case outcome.WhichLastID:
		a.LastID, a.Err = s.AskLastID(ctx)
	case outcome.IsKey:
		a.Present, a.Err = s.PresentKeys(ctx, sent.Insert, []any{r.InsertID}, false)
	case outcome.WhichKeys:
		if sent.SelectKey != "" {
			if low, high, ok := rangeOf(&sent.Keys); ok {
				a.Present, a.Err = s.KeysBetween(ctx, sent.Insert, low, high)
				break
			}
		}
		a.Present, a.Err = s.PresentKeys(ctx, sent.Insert, sent.RowKeys(), sent.ReportsMatch())
	}
	return &a
}

// describe returns what was sent, without the connection's buffers.
func (e *execution) describe() outcome.Sent {
	k := &e.first
	s := outcome.Sent{
		Insert: k.Insert, Column: k.column, Keys: k.keys,
		Text: k.table.HasText(), Carries: k.carries, Guarded: k.guarded,
		CallsFunctions: k.callsFunctions, WantsKeys: e.out != nil, Server: serverOf(e.session),
	}
	if len(k.keys.Ints) == 1 {
		s.Keys.Ints = slices.Clone(k.keys.Ints)
	}
	s.Explicit = k.Explicit(k.column, e.user, &s.Keys)
	return s
}

// serverOf returns what the meaning of a report depends on.
func serverOf(s *session.Session) outcome.Server {
	mode, _, _ := s.KnownMode()
	return outcome.Server{
		ReportsIDs: s.ReportsInsertIDs(), SkipsRows: s.TriggersSkipRows(), FoundRows: s.Client().FoundRows,
		StoresZero: mode&sqltoken.NoAutoValueOnZero != 0,
	}
}

// mayCallFunctions reports whether an upsert of several rows may call a stored function, perhaps in a
// view, after its first row.
func mayCallFunctions(text string) bool {
	_, text, _ = strings.Cut(text, ")") // the end of the column list, or in the first row
	return sqltoken.MayCallFunctions(text)
}
