package driver

import (
	"context"
	"database/sql/driver"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/rewrite"
)

// result is the result of an execution. The underlying driver's result has the affected rows.
// result adds the insert IDs.
type result struct {
	driver.Result
	id int64
	// of is what was sent, with the conclusion. If it is nil, one row was inserted, with the key id.
	of *concluded
}

// concluded is an INSERT with its conclusion.
type concluded struct {
	outcome.Sent
	outcome.Conclusion
}

// keys returns one entry for each row; see [Keys.Values].
func (c *concluded) keys() []any { return c.Conclusion.Keys(&c.Sent) }

var _ mysql.Result = (*result)(nil)

// LastInsertId returns the insert ID.
func (r *result) LastInsertId() (int64, error) { return r.id, nil }

// Keys returns one entry for each row; see [Keys.Values].
func (r *result) Keys() []any {
	if r.of == nil {
		return []any{r.id}
	}
	return r.of.keys()
}

func (r *result) AllLastInsertIds() []int64 {
	return []int64{r.id}
}

// AllRowsAffected returns the affected rows of each statement, as far as the underlying driver
// reports them.
func (r *result) AllRowsAffected() []int64 {
	if all, ok := r.Result.(mysql.Result); ok {
		return all.AllRowsAffected()
	}
	n, err := r.Result.RowsAffected()
	if err != nil {
		return nil
	}
	return []int64{n}
}

// returned is the report about an INSERT that returns rows.
var returned = outcome.Report{Affected: outcome.Unknown}

// returnedRows is the report about an INSERT for a caller that reads rows. RETURNING returns a row for
// each row that was inserted, but the caller may have stopped before the last one.
func (p *plan) returnedRows(in *rewrite.Insert, read base.Reading) outcome.Report {
	if p.steps&hasTail != 0 || !in.Returning || in.OnDuplicate || in.Replace && len(in.Rows) > 1 || !read.All && read.Rows != int64(len(in.Rows)) {
		return returned
	}
	return outcome.Report{Affected: read.Rows}
}

// reportOf returns the report in a result.
func reportOf(base driver.Result) (r outcome.Report) {
	var err error
	if r.Affected, err = base.RowsAffected(); err != nil {
		r.Affected = outcome.Unknown
	}
	return r
}

// settle determines the result: which rows were inserted, and the insert ID.
func (e *execution) settle(ctx context.Context, base driver.Result) *result {
	e.session.TransactionBegan() // the statement may have begun one
	r, k := e.result, &e.first
	r.Result = base
	report := reportOf(base)
	if k.plain && report.Affected == 1 {
		r.id = k.concludePlain(e.session)
	} else {
		report.InsertID, _ = base.LastInsertId()
		r.of = &concluded{Sent: e.describe()}
		r.of.Conclusion = e.conclude(ctx, &r.of.Sent, report)
		r.id = r.of.LastInsertID
	}
	if e.out != nil {
		e.out.set(Keys{r.Keys(), k.table.Rule.Column})
	}
	return r
}

func (e *execution) conclude(ctx context.Context, sent *outcome.Sent, r outcome.Report) outcome.Conclusion {
	return e.first.conclude(ctx, e.session, e.plan.rules.logger, sent, r)
}

// settleRows is settle for a statement that returns rows. The outcome is known when the rows are
// read to the end or closed. The number of affected rows stays unknown.
func (e *execution) settleRows(sent driver.Rows) driver.Rows {
	e.session.TransactionBegan()
	kept, done := e.keep(), &concluded{Sent: e.describe()}
	return base.OnClose(sent, func(read base.Reading, err error) {
		ctx := context.Background() // the execution's context may have ended
		if err != nil {
			_, _ = kept.failed(ctx, err)
			return
		}
		done.Conclusion = kept.conclude(ctx, &done.Sent, kept.plan.returnedRows(done.Insert, read))
		kept.out.set(Keys{done.keys(), kept.first.table.Rule.Column})
	})
}
