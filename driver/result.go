package driver

import (
	"context"
	"database/sql/driver"
	"math"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// result is the result of an execution. The underlying driver's result has the affected rows.
// result adds the insert IDs.
type result struct {
	driver.Result
	id int64
	// of is the execution with the keys. If it is nil, one row was inserted, with the key id.
	of *execution
}

var _ mysql.Result = (*result)(nil)

// LastInsertId returns the insert ID.
func (r *result) LastInsertId() (int64, error) { return r.id, nil }

// Keys returns one entry for each row; see [Keys.Values].
func (r *result) Keys() []any {
	if r.of == nil {
		return []any{r.id}
	}
	return r.of.values()
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

// insertReport is the server's report about one INSERT.
type insertReport struct {
	affected int64 // affected rows, or unknownCount
	id       int64 // the insert ID
}

// returned is the report about an INSERT that returns rows.
var returned = insertReport{affected: unknownCount}

// returnedRows is the report about an INSERT for a caller that reads rows. RETURNING returns a row for
// each row that was inserted, but the caller may have stopped before the last one.
func (p *plan) returnedRows(in *rewrite.Insert, read base.Reading) insertReport {
	if p.steps&hasTail != 0 || !in.Returning || in.OnDuplicate || in.Replace && len(in.Rows) > 1 || !read.All && read.Rows != int64(len(in.Rows)) {
		return returned
	}
	return insertReport{affected: read.Rows}
}

// reportOf returns the affected rows of a result.
func reportOf(base driver.Result) (s insertReport) {
	var err error
	if s.affected, err = base.RowsAffected(); err != nil {
		s.affected = unknownCount
	}
	return s
}

// unknownCount stands for an unknown number of affected rows.
const unknownCount = math.MinInt64

// settle determines which rows were inserted, and the insert IDs.
func (e *execution) settle(ctx context.Context, base driver.Result) *result {
	e.session.TransactionBegan() // the statement may have begun one
	r, k := e.result, &e.first
	r.Result = base
	report := reportOf(base)
	switch {
	case e.plan.steps&isRefused != 0: // the server should have refused it
		r.id, _ = base.LastInsertId()
		r.of = e.keep()
	case k.plain && report.affected == 1: // exactly one row was inserted
		if compares {
			check := e.compareWith(k, outcome.Report{Affected: 1})
			defer func() { check(r.id) }()
		}
		if r.id = k.keys.Ints[0]; k.carries {
			e.session.LastID.Told(uint64(r.id))
		} else {
			e.session.LastID.Set(uint64(r.id))
		}
	default:
		report.id, _ = base.LastInsertId()
		r.id = e.settleInsert(ctx, k, report)
		r.of = e.keep()
	}
	if e.out != nil {
		e.out.set(Keys{r.Keys(), e.first.table.rule.Column})
	}
	return r
}

// settleRows is settle for a statement that returns rows. The outcome is known when the rows are
// read to the end or closed. The number of affected rows stays unknown.
func (e *execution) settleRows(sent driver.Rows) driver.Rows {
	e.session.TransactionBegan()
	kept := e.keep()
	return base.OnClose(sent, func(read base.Reading, err error) {
		ctx := context.Background() // the execution's context may have ended
		if err != nil {
			_, _ = kept.failed(ctx, err)
			return
		}
		if !kept.first.in.Invalid {
			_ = kept.settleInsert(ctx, &kept.first, kept.plan.returnedRows(kept.first.in, read))
		}
		kept.out.set(Keys{kept.values(), kept.first.table.rule.Column})
	})
}

// values returns the keys of all rows.
func (e *execution) values() []any {
	k := &e.first
	if k.in.Invalid {
		return nil
	}
	keys := e.rowKeys(k)
	for row := range keys {
		switch k.rows.of(row) {
		case rowUncertain:
			keys[row] = nil
		case rowNotInserted:
			keys[row] = k.rows.existing
		}
	}
	return keys
}

// rowKeys returns the key of each row of an insertion, generated or explicit. A key is nil if only
// the server has it.
func (e *execution) rowKeys(k *insertion) []any {
	keys, next := make([]any, len(k.in.Rows)), 0
	for row := range keys {
		if k.isGenerated(row) {
			keys[row], next = k.keys.At(next), next+1
		} else {
			keys[row] = e.storedKey(k, row)
		}
	}
	return keys
}

// storedKey returns the explicit key of a row if the column can store it unchanged, otherwise nil.
func (e *execution) storedKey(k *insertion, row int) any {
	if key := e.givenKey(k, row); k.column.Keeps(key) {
		return key
	}
	return nil
}

func (e *execution) givenKey(k *insertion, row int) any {
	switch r := k.in.Rows[row]; r.Key {
	case rewrite.Argument:
		return boundKey(k.keyKind(), k.column, e.user[r.Arg].Value)
	case rewrite.Literal:
		if k.keyKind() != kindInteger || storesIntegers(k.column) {
			return e.plan.LiteralKey(k.in, row)
		}
	}
	return nil
}

// storesIntegers reports whether the key column stores integers, as far as known. A DECIMAL or a
// string column may store another value for '5.5', ' 5' or 0x41.
func storesIntegers(c *facts.Column) bool {
	return c.Stores == facts.StoresIntegers || c.Stores == facts.StoresUnknown
}

// boundKey returns a bound explicit key as the column stores it, nil if only the server knows it.
func boundKey(kind keyKind, column *facts.Column, bound driver.Value) any {
	const exact = 1 << 53
	inIntegers := kind == kindInteger && column.Stores == facts.StoresIntegers
	switch v := bound.(type) {
	case int64, uint64:
		return v
	case bool:
		if v && inIntegers {
			return int64(1)
		}
	case float64:
		if inIntegers && v == math.Trunc(v) && math.Abs(v) < exact {
			return int64(v)
		}
	case []byte:
		if kind != kindInteger {
			return append([]byte(nil), v...)
		}
	}
	text, ok := sqltoken.TextOf(bound)
	switch {
	case !ok:
		return nil
	case kind != kindInteger:
		return text
	case inIntegers:
		return storedInteger(text)
	case !storesIntegers(column):
		return nil
	}
	return sqltoken.ParseInteger(text, 10)
}
