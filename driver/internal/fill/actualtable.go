package fill

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/shardkey/shardkey/internal/policy"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// ActualTable is an actual table that a statement names. It decides which rows belong in the table.
type ActualTable struct {
	*rule.Shard
	table *Table
	name  string // the name in the statement
	key   int    // the key's index in Columns, −1 if the key isn't a sharding column
	// belongs reports whether a key belongs in the table. It is nil if other columns decide too.
	// About one of targets keys belongs in the table.
	belongs func(key int64) bool
	targets int
	noFit   atomic.Pointer[noFit]
	warned  atomic.Bool // a warning about a row that doesn't belong in the table was logged
}

// maxActual limits the cached actual tables. Each schema in front of a name adds an entry.
const maxActual = 1 << 16

// ActualTable returns the actual table that a statement names. It returns nil if the rule has no
// sharding strategy, or if the statement names the logical table.
func (t *Table) ActualTable(schema, name string) *ActualTable {
	if t.Rule.Sharding == nil {
		return nil
	}
	id := schema + "\x00" + name // not in lower case: errors show the name in the statement
	if a, ok := t.actual.Load(id); ok {
		return a.(*ActualTable)
	}
	a := t.newActualTable(schema, name)
	if t.actualCount.Add(1) <= maxActual {
		t.actual.Store(id, a)
	}
	return a
}

func (t *Table) newActualTable(schema, name string) *ActualTable {
	of := t.Rule.Sharding.Shard(schema, name)
	if of == nil {
		return nil
	}
	a := &ActualTable{Shard: of, table: t, name: sqltoken.TableName(schema, name)}
	a.key = indexOf(a.Columns, t.Rule.Column)
	if len(a.Columns) == 1 {
		a.belongs, a.targets, _ = a.Keys(t.Rule.Column, []any{nil})
	}
	return a
}

// indexOf returns the index of a column among columns, −1 if it isn't one of them.
func indexOf(columns []string, name string) int {
	return slices.IndexFunc(columns, func(c string) bool { return strings.EqualFold(c, name) })
}

// Guards reports whether rows are checked against the table.
func (a *ActualTable) Guards() bool { return a.table.Rule.ShardGuard != policy.Off }

// HasKey reports whether the key is a sharding column, so that it decides which table a row belongs in.
func (a *ActualTable) HasKey() bool { return a.key >= 0 }

// findByRow searches a key for each row that belongs in the table with the row's values.
func (r *rows) findByRow(context.Context) (maker, error) {
	a, t := r.Actual, r.Table
	if t.ints == nil {
		s := &search[any]{name: a.name, why: a.unplaceable}
		err := addRows(s, r, a.test)
		return func(ctx context.Context, _ *[1]int64) (rewrite.Keys, error) { return t.searchValues(ctx, s, r.n) }, err
	}
	s := &search[int64]{name: a.name, why: a.unplaceable}
	err := addRows(s, r, func(values []any) (func(int64) bool, int, error) { return a.Keys(t.Rule.Column, values) })
	return func(ctx context.Context, one *[1]int64) (rewrite.Keys, error) { return t.searchInts(ctx, s, r.n, one) }, err
}

// addRows adds the rows that need a key. Adjacent rows with equal values form one group. A row with
// unknown values accepts any key.
func addRows[K any](s *search[K], r *rows, test func(values []any) (func(K) bool, int, error)) error {
	var last []any
	next := 0
	for row := range r.Insert.Rows {
		if !r.generates(row) {
			continue
		}
		values, known := r.values(nil, row)
		switch {
		case next > 0 && slices.Equal(values, last):
		case known:
			belongs, targets, err := test(values)
			if err != nil {
				return err
			}
			s.begin(belongs, targets)
		default:
			s.begin(nil, 1)
		}
		last = values
		s.add(next)
		next++
	}
	return nil
}

// generate searches n int64 keys for the table's rows. If n is 1, it uses the array one.
func (a *ActualTable) generate(ctx context.Context, n int, one *[1]int64) (rewrite.Keys, error) {
	if a.fitsNone() {
		return rewrite.Keys{}, a.table.noKey(&noFitError{table: a.name})
	}
	s := search[int64]{name: a.name, why: a.unplaceable}
	s.begin(a.belongs, a.targets)
	for row := range n {
		s.add(row)
	}
	keys, err := a.table.searchInts(ctx, &s, n, one)
	if err != nil && errors.As(err, new(*noFitError)) {
		a.noteNoFit()
	}
	return keys, err
}

// unplaceable returns why the sharding can't be computed for a key, for example because it is a
// string, or nil.
func (a *ActualTable) unplaceable(key any) error {
	values := make([]any, len(a.Columns))
	values[a.key] = key
	_, _, err := a.Place(values)
	if e, ok := errors.AsType[*rule.PlaceError](err); ok && e.Unknown && strings.EqualFold(e.Column, a.Columns[a.key]) {
		return e
	}
	return nil
}

// test returns a function that tests keys of any type, given a row's other values.
func (a *ActualTable) test(values []any) (belongs func(key any) bool, targets int, err error) {
	values = slices.Clone(values)
	_, targets, _ = a.Keys(a.Columns[a.key], values)
	return func(key any) bool {
		values[a.key] = key
		_, here, _ := a.Place(values)
		return here
	}, max(targets, 1), nil
}
