package driver

import (
	"database/sql/driver"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/outcome"
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
func (p *plan) returnedRows(read base.Reading) outcome.Report {
	in := p.Insert
	isComplete := read.All || in.SelectKey == "" && read.Rows == int64(len(in.Rows))
	countsOthers := in.OnDuplicate || in.Replace && len(in.Rows) != 1
	if p.hasTail || !in.Returning || !isComplete || countsOthers && (in.SelectKey == "" || read.Rows > 0) {
		return returned
	}
	return outcome.Report{Affected: read.Rows}
}

// reportOf returns the report in a result, without the insert ID if the report is usual.
func (p *plan) reportOf(sent *outcome.Sent, result driver.Result) (r outcome.Report) {
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
