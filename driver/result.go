package driver

import (
	"context"
	"database/sql/driver"
	"math"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/rewrite"
)

// KeysResult is implemented, beside mysql.Result, by the driver's results of
// statements that were filled; (*sql.Conn).Raw reaches them.
type KeysResult interface {
	mysql.Result
	// Keys returns one entry a row, as [Keys.Values] does.
	Keys() []any
}

// result is what a filled statement came to. The base's result says how many
// rows were affected; the insert ids are ours.
type result struct {
	driver.Result
	execution *execution
	ids       []int64 // one a statement; nil when there is one statement
	id        int64   // the last one
}

var _ KeysResult = (*result)(nil)

func (r *result) LastInsertId() (int64, error) { return r.id, nil }

func (r *result) Keys() []any { return r.execution.values() }

func (r *result) AllLastInsertIds() []int64 {
	if r.ids == nil {
		return []int64{r.id}
	}
	return append([]int64(nil), r.ids...)
}

func (r *result) AllRowsAffected() []int64 {
	if all, ok := r.Result.(mysql.Result); ok {
		return all.AllRowsAffected()
	}
	n, err := r.RowsAffected()
	if err != nil {
		return nil
	}
	return []int64{n}
}

// outcome is which rows of an execution's inserts came to stand in the table.
type outcome struct {
	inserted []rowStates // one for each insert
	one      [1]rowStates
}

// rowStates says of each row whether it was inserted; nil: all were.
type rowStates struct {
	states []rowState
	// existing is the key of the only row that existed, where it is known.
	existing any
}

type rowState uint8

const (
	rowInserted rowState = iota
	rowNotInserted
	rowUncertain
)

func (s *rowStates) of(i int) rowState {
	if s.states == nil {
		return rowInserted
	}
	return s.states[i]
}

// settle finds out which rows were inserted and what the insert ids are.
func (e *execution) settle(ctx context.Context, base driver.Result) (driver.Result, error) {
	r := &e.result
	r.Result, r.execution = base, e
	e.makeStates()
	if len(e.inserts) == 1 && e.fill.plan.Statements == 1 {
		affected, err := base.RowsAffected()
		if err != nil {
			affected = unknownCount
		}
		id, _ := base.LastInsertId()
		e.settler = settler{execution: e, insertKeys: &e.inserts[0], states: &e.inserted[0], affected: affected, baseID: id, last: true}
		r.id = e.settler.settle(ctx)
	} else {
		e.settleEach(ctx, base)
	}
	if e.out != nil {
		e.out.values = e.values()
	}
	return r, nil
}

func (e *execution) makeStates() {
	if e.inserted = e.outcome.one[:]; len(e.inserts) > 1 {
		e.inserted = make([]rowStates, len(e.inserts))
	}
}

// settleEach is settle for a text of several statements.
func (e *execution) settleEach(ctx context.Context, base driver.Result) {
	affected, ids := e.perStatement(base)
	for i := range e.inserts {
		k := &e.inserts[i]
		if k.in.Refused {
			continue
		}
		at := min(k.in.Statement, len(ids)-1)
		e.settler = settler{execution: e, insertKeys: k, states: &e.inserted[i], affected: affected[at], baseID: ids[at],
			last: k.in.Statement == e.fill.plan.Statements-1}
		ids[at] = e.settler.settle(ctx)
	}
	e.result.id, e.result.ids = ids[len(ids)-1], ids
}

// unknownCount stands for rows affected that the base did not tell.
const unknownCount = math.MinInt64

// perStatement gives rows affected and insert ids of each statement of the
// text. A base that tells only of the last one leaves the others unknown.
func (e *execution) perStatement(base driver.Result) (affected, ids []int64) {
	n := e.fill.plan.Statements
	if all, ok := base.(mysql.Result); ok && n > 1 {
		affected, ids = all.AllRowsAffected(), all.AllLastInsertIds()
		if len(affected) == n && len(ids) == n {
			return affected, append([]int64(nil), ids...)
		}
	}
	affected, ids = make([]int64, n), make([]int64, n)
	for i := range n - 1 {
		affected[i] = unknownCount
	}
	var err error
	if affected[n-1], err = base.RowsAffected(); err != nil {
		affected[n-1] = unknownCount
	}
	ids[n-1], _ = base.LastInsertId()
	return affected, ids
}

// settleRows is settle for a text that returns rows: how many rows were
// affected is not known, and the connection is busy until the rows are read.
func (e *execution) settleRows() {
	e.makeStates()
	s := &e.settler
	for i := range e.inserts {
		k := &e.inserts[i]
		if k.in.Refused {
			continue
		}
		*s = settler{execution: e, insertKeys: k, states: &e.inserted[i], affected: unknownCount,
			last: k.in.Statement == e.fill.plan.Statements-1}
		if k.in.Ignore || k.in.OnDuplicate {
			s.mark(func(int) rowState { return rowUncertain })
		}
		s.tellSession()
	}
	if e.out != nil {
		e.out.values = e.values()
	}
}

// values are the keys of all rows of all inserts.
func (e *execution) values() []any {
	var values []any
	for i := range e.inserts {
		k := &e.inserts[i]
		if k.in.Refused {
			continue
		}
		if values == nil {
			values = make([]any, 0, k.in.Rows())
		}
		next := 0
		for row := range k.in.Rows() {
			key := e.keyOf(k, row, &next)
			switch e.inserted[i].of(row) {
			case rowNotInserted:
				key = e.inserted[i].existing
			case rowUncertain:
				key = nil
			}
			values = append(values, key)
		}
	}
	return values
}

// keyOf is the key that a row was given; nil when the server made it.
func (e *execution) keyOf(k *insertKeys, row int, next *int) any {
	if k.isGenerated(row) {
		*next++
		return k.keys.At(*next - 1)
	}
	switch kind, param := k.in.Slot(row); kind {
	case rewrite.Param:
		return boundKey(k.in.Table.Rule.(*table).kind(), e.user[param].Value)
	case rewrite.Kept:
		return e.fill.plan.Kept(k.in, row, e.fill.key.mode)
	}
	return nil
}

// boundKey is a bound key as it stands in the table, nil when only the server
// knows.
func boundKey(kind rewrite.Kind, bound driver.Value) any {
	switch v := bound.(type) {
	case int64, uint64:
		return v
	case string:
		if kind == rewrite.Integer {
			return rewrite.ParseInteger(v)
		}
		return v
	case []byte:
		if kind == rewrite.Integer {
			return rewrite.ParseInteger(string(v))
		}
		return append([]byte(nil), v...)
	}
	return nil
}
