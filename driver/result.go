package driver

import (
	"context"
	"database/sql/driver"
	"math"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/rewrite"
)

// KeysResult is implemented, next to mysql.Result, by the driver's results of
// statements that were filled; (*sql.Conn).Raw reaches them.
type KeysResult interface {
	mysql.Result
	// Keys returns one entry a row, as [Keys.Values] does.
	Keys() []any
}

// result is what an execution came to. The base's result says how many rows were
// affected; the insert ids are ours. It also holds what must be on the heap while the
// statement is executed: an INSERT of one row needs no other room.
type result struct {
	driver.Result
	id  int64
	one [1]int64
	// of is the execution, of which the keys are. Nil: one row was inserted, with the key one.
	of   *execution
	ids  []int64 // one a statement; nil when there is one statement
	room [4]driver.NamedValue
}

var _ KeysResult = (*result)(nil)

// LastInsertId is that of the last statement.
func (r *result) LastInsertId() (int64, error) { return r.id, nil }

func (r *result) Keys() []any {
	if r.of == nil {
		return []any{r.one[0]}
	}
	return r.of.values()
}

func (r *result) AllLastInsertIds() []int64 {
	if r.ids == nil {
		return []int64{r.id}
	}
	return append([]int64(nil), r.ids...)
}

func (r *result) AllRowsAffected() []int64 { return allRowsAffected(r.Result) }

// allRowsAffected are those of each statement, as far as a base tells.
func allRowsAffected(base driver.Result) []int64 {
	if all, ok := base.(mysql.Result); ok {
		return all.AllRowsAffected()
	}
	n, err := base.RowsAffected()
	if err != nil {
		return nil
	}
	return []int64{n}
}

// said is what the server says of one insert.
type said struct {
	affected int64 // rows, or unknownCount
	id       int64 // the insert id
}

// returned is what it says of one that returns rows.
var returned = said{affected: unknownCount}

// saidBy returns what a base's result says of the rows.
func saidBy(base driver.Result) (s said) {
	var err error
	if s.affected, err = base.RowsAffected(); err != nil {
		s.affected = unknownCount
	}
	return s
}

// unknownCount stands for rows affected that the base did not tell.
const unknownCount = math.MinInt64

// settle finds out which rows were inserted and what the insert ids are.
func (e *execution) settle(ctx context.Context, base driver.Result) *result {
	e.session.TransactionBegan() // the statement was one
	r, k := e.result, &e.first
	r.Result = base
	said := saidBy(base)
	switch {
	case e.plan.several || k.in.Refused:
		e.settleEach(ctx, base)
		r.of = e.keep()
	case k.plain && said.affected == 1: // the row was inserted
		if r.id = k.keys.Ints[0]; k.carries {
			e.session.LastID.Told(uint64(r.id))
		} else {
			e.session.LastID.Set(uint64(r.id))
		}
	default:
		said.id, _ = base.LastInsertId()
		r.id = e.settleInsert(ctx, k, said)
		r.of = e.keep()
	}
	if e.out != nil {
		e.out.set(e.plan, r.Keys())
	}
	return r
}

// settleEach is settle for a text that may have several results: those of its statements,
// and an empty one where only comments follow the last semicolon.
func (e *execution) settleEach(ctx context.Context, base driver.Result) {
	affected, ids := e.perStatement(base)
	for i := range e.inserts() {
		k := e.insert(i)
		if k.in.Refused {
			continue
		}
		at := k.in.Statement
		ids[at] = e.settleInsert(ctx, k, said{affected[at], ids[at]})
	}
	if e.plan.Statements > 1 {
		e.keepLastIDOfAll(ctx, ids)
	}
	e.result.id, e.result.ids = ids[len(ids)-1], ids
}

// perStatement returns rows affected and insert ids of each statement of the text, and of what
// follows them. A base that reports only the last one leaves the others unknown.
func (e *execution) perStatement(base driver.Result) (affected, ids []int64) {
	n := e.plan.Statements
	if all, ok := base.(mysql.Result); ok {
		affected, ids = all.AllRowsAffected(), all.AllLastInsertIds()
		if len(affected) >= n && len(ids) == len(affected) {
			return affected, append([]int64(nil), ids...)
		}
	}
	affected, ids = make([]int64, n), make([]int64, n)
	for i := range n - 1 {
		affected[i] = unknownCount
	}
	affected[n-1] = saidBy(base).affected
	ids[n-1], _ = base.LastInsertId()
	return affected, ids
}

// settleRows is settle for a text that returns rows. What came of it shows when they are read to
// their end, or closed, and how many rows were affected is not known even then.
func (e *execution) settleRows(sent driver.Rows) driver.Rows {
	e.session.TransactionBegan()
	kept := e.keep()
	return base.OnClose(sent, func(err error) {
		ctx := context.Background() // the execution's own may have ended
		if err != nil {
			_ = kept.failed(ctx, err)
			return
		}
		for i := range kept.inserts() {
			if k := kept.insert(i); !k.in.Refused {
				_ = kept.settleInsert(ctx, k, returned)
			}
		}
		if kept.plan.Statements > 1 {
			kept.keepLastIDOfAll(ctx, nil)
		}
		kept.out.set(kept.plan, kept.values())
	})
}

// values are the keys of all rows of all inserts.
func (e *execution) values() []any {
	var values []any
	for i := range e.inserts() {
		k := e.insert(i)
		if k.in.Refused {
			continue
		}
		keys := e.rowKeys(k)
		for row := range keys {
			switch state := k.rows.of(row); {
			case k.in.RolledBack, state == rowUncertain:
				keys[row] = nil
			case state == rowNotInserted:
				keys[row] = k.rows.existing
			}
		}
		if values == nil {
			values = keys
		} else {
			values = append(values, keys...)
		}
	}
	return values
}

// rowKeys returns the key of each row of an insert, generated or explicit; nil if only the
// server knows it.
func (e *execution) rowKeys(k *insertion) []any {
	keys, next := make([]any, k.in.Rows()), 0
	for row := range keys {
		if k.isGenerated(row) {
			keys[row], next = k.keys.At(next), next+1
		} else {
			keys[row] = e.storedKey(k, row)
		}
	}
	return keys
}

// storedKey returns the explicit key of a row if the column holds it; otherwise the server
// stores what is left of it.
func (e *execution) storedKey(k *insertion, row int) any {
	if key := e.givenKey(k, row); k.column.Holds(key) {
		return key
	}
	return nil
}

func (e *execution) givenKey(k *insertion, row int) any {
	switch kind, param := k.in.Slot(row); kind {
	case rewrite.SlotParam:
		return boundKey(k.table.kind(), e.user[param].Value)
	case rewrite.SlotKept:
		return e.plan.Kept(k.in, row)
	}
	return nil
}

// Keys receives the keys of an execution's rows: see [WithKeys]. The zero value
// is ready. It must not be read while an execution with it is running.
type Keys struct {
	values []any
	column string
}

// Values returns one entry for each row that the last execution gave, in the order of the rows: the
// key that the row has in the table, or nil where it is not known (an expression, a row of ON
// DUPLICATE KEY UPDATE that existed) or the row was not inserted (IGNORE). Generated integer keys
// are int64; keys that the statement gave are what was bound or written.
//
// It is nil after an execution that failed, or that inserted into no sharded table. The keys of a
// statement that returns rows are there once these are closed.
func (k *Keys) Values() []any { return k.values }

// Int64s returns Values as int64, and whether every row has one: it does not
// where a key is no integer, is not known, or the row was not inserted.
func (k *Keys) Int64s() ([]int64, bool) {
	ints := make([]int64, len(k.values))
	for i, v := range k.values {
		var ok bool
		if ints[i], ok = v.(int64); !ok {
			return nil, false
		}
	}
	return ints, k.values != nil
}

// Column returns the name of the key column that Values are of, as the rule has it; of several
// INSERTs in one text, that of the first. It is empty where Values is nil.
func (k *Keys) Column() string { return k.column }

// WithKeys returns a context with which an execution, direct or of a prepared
// statement, stores its rows' keys in keys. Each execution resets them. When ctx
// has such keys already, both receive the same. When keys is nil, it returns ctx.
func WithKeys(ctx context.Context, keys *Keys) context.Context {
	if keys == nil {
		return ctx
	}
	return context.WithValue(ctx, keysKey{}, &keysRing{keys, keysOf(ctx)})
}

type keysKey struct{}

// keysRing is the keys of a context, and those of the contexts around it. Nil is none.
type keysRing struct {
	keys  *Keys
	outer *keysRing
}

func keysOf(ctx context.Context) *keysRing {
	r, _ := ctx.Value(keysKey{}).(*keysRing)
	return r
}

func (r *keysRing) reset() {
	for ; r != nil; r = r.outer {
		*r.keys = Keys{}
	}
}

func (r *keysRing) set(p *plan, values []any) {
	for ; r != nil; r = r.outer {
		*r.keys = Keys{values, p.targets[0].table.rule.Column}
	}
}
