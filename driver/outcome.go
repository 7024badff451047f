package driver

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// concluded returns the reply for the program. For rows, the outcome is known when they are read to the
// end or closed.
func (p *plan) concluded(ctx context.Context, x *call, sent *outcome.Sent, r base.Reply) base.Reply {
	x.session.TransactionBegan() // the statement may have begun one
	if r.Rows != nil {
		return base.Reply{Rows: p.concludedLater(*x, *sent, r.Rows)}
	}
	c := p.conclude(ctx, x, sent, p.reportOf(r.Result, sent))
	if x.out != nil {
		p.tell(x, c.Keys(sent))
	}
	if x.rows {
		r.Rows = base.NoRows{}
	}
	if p.Insert.SelectKey != rewrite.Literal {
		r.Result = &result{r.Result, c.LastInsertID}
	}
	return r
}

// concludedLater is concluded for rows. It has copies of the call and of what was sent, since exec has returned by
// then.
func (p *plan) concludedLater(x call, sent outcome.Sent, rows driver.Rows) driver.Rows {
	p.describe(&x, &sent)
	if len(sent.Keys.Ints) == 1 {
		sent.Keys.Ints = slices.Clone(sent.Keys.Ints) // they are in the connection's buffer
	}
	x.args = nil
	ended := base.OnClose(rows, func(read base.Reading, err error) {
		ctx := context.Background() // the execution's context may have ended
		if err != nil {
			p.noteFailure(ctx, &x, &sent, err)
			return
		}
		c := p.conclude(ctx, &x, &sent, p.returnedRows(read))
		p.tell(&x, c.Keys(&sent))
	})
	if p.Insert.SelectKey != "" {
		return explainedRows{ended, p}
	}
	return ended
}

// tell gives the caller the keys of the rows, if they are known.
func (p *plan) tell(x *call, keys []any) {
	if keys != nil {
		x.out.set(Keys{keys, p.table.Rule.Column})
	}
}

// conclude returns what the server's report about an INSERT means, and records what LAST_INSERT_ID() must
// return from now on. It asks the server what the report leaves open.
func (p *plan) conclude(ctx context.Context, x *call, sent *outcome.Sent, r outcome.Report) (c outcome.Conclusion) {
	if sent.IsUsual(r) {
		c = sent.Usual()
	} else {
		c = p.ask(ctx, x, sent, r)
	}
	x.session.SetLastID(c.LastID)
	return c
}

// returned is the report about an INSERT that returns rows.
var returned = outcome.Report{Affected: outcome.Unknown}

// returnedRows is the report about an INSERT for a caller that reads rows. RETURNING returns a row for
// each row that was inserted, but the caller may have stopped before the last one.
func (p *plan) returnedRows(read base.Reading) outcome.Report {
	in := p.Insert
	isComplete := read.All || in.SelectKey == "" && read.Rows == int64(len(in.Rows))
	countsOthers := in.OnDuplicate || in.Replace && len(in.Rows) != 1
	if p.hasTail || !in.Returning || !isComplete || countsOthers && (in.SelectKey == "" || read.Rows > 0) {
		return returned
	}
	return outcome.Report{Affected: read.Rows}
}

// reportOf returns the report in a result. A usual one has no insert ID, which would not be read.
func (p *plan) reportOf(result driver.Result, sent *outcome.Sent) (r outcome.Report) {
	if p.Insert.SelectKey != "" && p.Insert.Returning {
		return returned
	}
	var err error
	if r.Affected, err = result.RowsAffected(); err != nil {
		r.Affected = outcome.Unknown
	}
	if !sent.IsUsual(r) {
		r.InsertID, _ = result.LastInsertId()
	}
	return r
}

// ask is conclude for a report that isn't usual.
func (p *plan) ask(ctx context.Context, x *call, sent *outcome.Sent, r outcome.Report) outcome.Conclusion {
	s := &x.session
	p.describe(x, sent)
	var answers outcome.Answers
	for {
		c, question := outcome.Conclude(s.LastID(), sent, r, &answers)
		if question == outcome.Nothing {
			p.warnOfUnknown(ctx, sent, c.Doubt())
			return c
		}
		answers[question] = answer(ctx, s, sent, r, question)
	}
}

// warnOfUnknown logs once that keys are unknown although the table was asked. err is nil if they aren't.
func (p *plan) warnOfUnknown(ctx context.Context, sent *outcome.Sent, err error) {
	if err != nil && !p.table.unknown.Swap(true) {
		p.rules.logger.WarnContext(ctx, "shardkey: keys of an INSERT are unknown", "table", p.filler.Name(), "rows", sent.Len(), "error", err)
	}
}

// describe adds what only an unusual report needs.
func (p *plan) describe(x *call, sent *outcome.Sent) {
	if sent.Server = serverOf(&x.session); sent.Explicit == nil {
		sent.Explicit = p.filler.Explicit(sent.Column, x.args, &sent.Keys)
	}
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
