package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// actualTable is an actual table that a statement names. It decides which rows belong in the table. It is
// nil if the rule has no sharding strategy, or if the statement names the logical table.
type actualTable struct {
	*rule.Shard
	table *keyedTable
	name  string // the name in the statement
	key   int    // the key's index in Columns, −1 if the key isn't a sharding column
	// belongs reports whether a key belongs in the table. It is nil if other columns decide too.
	// About one of targets keys belongs in the table.
	belongs func(key int64) bool
	targets int
	noFit   atomic.Pointer[noFit]
	warned  atomic.Bool
}

// maxShards limits the cached actual tables. Each schema in front of a name adds an entry.
const maxShards = 1 << 16

// shard returns the actual table that a statement names, nil for none.
func (t *keyedTable) shard(schema, name string) *actualTable {
	if t.rule.Sharding == nil {
		return nil
	}
	id := schema + "\x00" + name // not in lower case: errors show the name in the statement
	if x, ok := t.shards.Load(id); ok {
		return x.(*actualTable)
	}
	x := t.newShard(schema, name)
	if t.shardCount.Add(1) <= maxShards {
		t.shards.Store(id, x)
	}
	return x
}

func (t *keyedTable) newShard(schema, name string) *actualTable {
	of := t.rule.Sharding.Shard(schema, name)
	if of == nil {
		return nil
	}
	x := &actualTable{Shard: of, table: t, name: tableName(schema, name)}
	x.key = indexOf(x.Columns, t.rule.Column)
	if len(x.Columns) == 1 {
		x.belongs, x.targets, _ = x.Keys(t.rule.Column, []any{nil})
	}
	return x
}

// indexOf returns the index of a column among columns, −1 if it isn't one of them.
func indexOf(columns []string, name string) int {
	return slices.IndexFunc(columns, func(c string) bool { return strings.EqualFold(c, name) })
}

// looks reports whether shardGuard checks rows against the table.
func (x *actualTable) looks() bool { return x.table.rule.ShardGuard != "off" }

// tableName returns a table's name for errors.
func tableName(schema, name string) string {
	if schema == "" {
		return name
	}
	return schema + "." + name
}

// shardValues appends a row's values of the sharding columns, with nil for the key. ok is false if
// one of them is unknown.
func (e *execution) shardValues(to []any, k *insertion, row int) (values []any, ok bool) {
	for i := range k.shard.Columns {
		if i == k.shard.key {
			to = append(to, nil)
			continue
		}
		v := e.plan.Value(row, i)
		value := v.Literal
		switch v.From {
		case rewrite.Unknown:
			return nil, false
		case rewrite.Argument:
			if value, ok = shardValue(e.user[v.Arg].Value); !ok {
				return nil, false
			}
		}
		to = append(to, value)
	}
	return to, true
}

// shardValue returns a bound value as the column stores it. ok is false if only the server knows
// it.
func shardValue(bound driver.Value) (value any, ok bool) {
	switch v := sqltoken.PlainValue(bound).(type) {
	case nil, int64, uint64, string, time.Time:
		return v, true
	case bool:
		if v {
			return int64(1), true
		}
		return int64(0), true
	case float64:
		const exact = 1e15 // from here on, the server writes the number with an exponent
		n := int64(v)
		return n, v > -exact && v < exact && float64(n) == v && !(v == 0 && math.Signbit(v))
	}
	return nil, false
}

// check returns the error for a row that doesn't belong in the table. It returns nil if the rule
// only logs such rows. Rows count from 0.
func (x *actualTable) check(
	ctx context.Context, s *session.Session, logger *slog.Logger, in *rewrite.Insert, row int, values []any,
) error {
	if x.table.rule.ShardGuard == "warn" && x.warned.Load() {
		return nil
	}
	wrong, err := x.wrong(ctx, s, in, values)
	if err != nil {
		return err
	}
	if wrong != nil {
		wrong.Row = row + 1
	}
	return x.table.judge(ctx, logger, &x.warned, wrong)
}

// judge returns wrong, or logs it once if the rule's shardGuard is warn. wrong may be nil.
func (t *keyedTable) judge(ctx context.Context, logger *slog.Logger, warned *atomic.Bool, wrong *StatementError) error {
	switch {
	case wrong == nil:
		return nil
	case t.rule.ShardGuard == "refuse":
		return wrong
	case !warned.Swap(true):
		cause := wrong.Err.(*WrongShardError)
		logger.WarnContext(ctx, "shardkey: row sent to the wrong table",
			"table", wrong.Table, "row", wrong.Row, "columns", cause.Columns, "belongs_to", cause.Meant.String())
	}
	return nil
}

// guard checks the rows of an execution against the table, before any key is generated. It skips
// rows whose table depends on a generated key.
func (e *execution) guard(ctx context.Context, k *insertion) error {
	x := k.shard
	var buf [4]any
	for row := range k.in.Rows {
		values, ok := e.shardValues(buf[:0], k, row)
		if !ok {
			continue
		}
		if x.key >= 0 {
			if k.isGenerated(row) {
				continue
			}
			switch key := e.givenKey(k, row).(type) {
			case nil, []byte:
				continue // the key's type is unknown, or Java would hash it in another way
			default:
				values[x.key] = key
			}
		}
		if err := x.check(ctx, e.session, e.plan.rules.logger, k.in, row, values); err != nil {
			return err
		}
	}
	return nil
}

// checkUpdate returns the error for an ON DUPLICATE KEY UPDATE that changes a sharding column to a
// value of another table.
func (p *plan) checkUpdate(ctx context.Context, s *session.Session, args []driver.NamedValue) error {
	in, t, x := p.target.in, p.target.table, p.target.shard
	if !in.UpdatesFixed {
		return nil
	}
	set := map[string]any{} // by the column's name in lower case
	for c, column := range in.Table.Fixed {
		v, assigned := p.Assigned(c)
		value := v.Literal
		switch {
		case !assigned, v.From == rewrite.Unknown:
			continue
		case v.From == rewrite.Expression:
			wrong := wrongShard(nameOf(in), &WrongShardError{Columns: []string{column}, Err: errExpression})
			return t.judge(ctx, p.rules.logger, &t.warnedUpdate, inUpdate(wrong))
		case v.From == rewrite.Argument:
			var ok bool
			if value, ok = shardValue(args[v.Arg].Value); !ok {
				continue
			}
		}
		set[strings.ToLower(column)] = value
	}
	if x == nil {
		return nil // the rows' table is unknown
	}
	if err := x.checkBitsUpdate(ctx, p.rules.logger, set); err != nil {
		return err
	}
	row := make([]any, len(x.Columns))
	for i, column := range x.Columns {
		var ok bool
		if row[i], ok = set[strings.ToLower(column)]; !ok {
			return nil // other columns decide too, or alone
		}
	}
	wrong, err := x.wrong(ctx, s, in, row)
	if err != nil {
		return err
	}
	return t.judge(ctx, p.rules.logger, &x.warned, inUpdate(wrong))
}

// checkBitsUpdate returns the error for an update of the column behind the key's shard bits, if the
// new value has other shard bits. A lookup by the new value would search another table.
func (x *actualTable) checkBitsUpdate(ctx context.Context, logger *slog.Logger, set map[string]any) error {
	bits := x.table.rule.ShardBits
	if bits == nil || x.belongs == nil {
		return nil
	}
	value, ok := set[strings.ToLower(bits.Column)]
	if !ok {
		return nil
	}
	of, err := bits.Of(value)
	if err != nil {
		return nil // a value without shard bits can't be looked up by them
	}
	return x.checkBits(ctx, logger, -1, rowBits{of, value}, nil)
}

// fitting searches the n keys of an insert's rows. Each key belongs in the table with its row.
func (e *execution) fitting(ctx context.Context, k *insertion, n int) (rewrite.Keys, error) {
	x, t := k.shard, k.table
	if t.ints == nil {
		d := keySearch[any]{name: x.name, why: x.unplaceable}
		if err := addRows(&d, e, k, x.test); err != nil {
			return rewrite.Keys{}, err
		}
		return t.searchValues(ctx, &d, n)
	}
	d := keySearch[int64]{name: x.name, why: x.unplaceable}
	test := func(values []any) (func(int64) bool, int, error) { return x.Keys(t.rule.Column, values) }
	if err := addRows(&d, e, k, test); err != nil {
		return rewrite.Keys{}, err
	}
	return t.searchInts(ctx, &d, n, k.one)
}

// addRows adds the rows that need a key. Adjacent rows with equal values form one group. A row with
// unknown values accepts any key.
func addRows[K any](d *keySearch[K], e *execution, k *insertion, test func(values []any) (func(K) bool, int, error)) error {
	var last []any
	next := 0
	for row := range k.in.Rows {
		if !k.isGenerated(row) {
			continue
		}
		values, known := e.shardValues(nil, k, row)
		switch {
		case next > 0 && slices.Equal(values, last):
		case known:
			belongs, targets, err := test(values)
			if err != nil {
				return err
			}
			d.begin(belongs, targets)
		default:
			d.begin(nil, 1)
		}
		last = values
		d.add(next)
		next++
	}
	return nil
}

// generate searches n int64 keys for the table's rows. If n is 1, it uses the array one.
func (x *actualTable) generate(ctx context.Context, n int, one *[1]int64) (rewrite.Keys, error) {
	if x.fitsNone() {
		return rewrite.Keys{}, x.table.noKey(&noFitError{table: x.name})
	}
	d := keySearch[int64]{name: x.name, why: x.unplaceable}
	d.begin(x.belongs, x.targets)
	for row := range n {
		d.add(row)
	}
	keys, err := x.table.searchInts(ctx, &d, n, one)
	if err != nil && errors.As(err, new(*noFitError)) {
		x.noteNoFit()
	}
	return keys, err
}

// unplaceable returns why the sharding can't be computed for a key, for example because it is a
// string, or nil.
func (x *actualTable) unplaceable(key any) error {
	values := make([]any, len(x.Columns))
	values[x.key] = key
	_, _, err := x.Place(values)
	if e, ok := errors.AsType[*rule.PlaceError](err); ok && e.Unknown && strings.EqualFold(e.Column, x.Columns[x.key]) {
		return e
	}
	return nil
}

// test returns a function that tests keys of any type, given a row's other values.
func (x *actualTable) test(values []any) (belongs func(key any) bool, targets int, err error) {
	values = slices.Clone(values)
	_, targets, _ = x.Keys(x.Columns[x.key], values)
	return func(key any) bool {
		values[x.key] = key
		_, here, _ := x.Place(values)
		return here
	}, max(targets, 1), nil
}

// The guard checks the values that the server stores, not the values in the statement. For example,
// '131' is a number in a BIGINT column, and 131 is a string in a VARCHAR column. So the driver
// reads the columns' types from the server once. The guard accepts a row if only the server knows
// the stored value, or if the rule's algorithm can't be computed for it.

// wrong returns the error for values of a row that doesn't belong in the table. It returns nil for
// other values, and if that is unknown. err is set if the server can't be asked.
func (x *actualTable) wrong(ctx context.Context, s *session.Session, in *rewrite.Insert, values []any) (wrong *StatementError, err error) {
	table, err := s.Facts(ctx, in.Schema, in.Name)
	if err != nil {
		return nil, x.unchecked(err)
	}
	wrong = x.misplaced(ctx, s, values, table)
	if wrong == nil || s.IsAssumed() {
		return wrong, nil
	}
	if table, err = s.AskFacts(ctx, in.Schema, in.Name); err != nil { // the table may have changed
		return nil, x.unchecked(err)
	}
	return x.misplaced(ctx, s, values, table), nil
}

// unchecked returns the error for a row that couldn't be checked. A guard that only warns lets it
// through.
func (x *actualTable) unchecked(err error) error {
	if x.table.rule.ShardGuard == "warn" {
		return nil
	}
	return err
}

// maxStored limits the combinations of stored values that are checked.
const maxStored = 4096

// misplaced returns the error for values that belong in another table, whichever of their possible
// forms the server stores. The columns' types are known.
func (x *actualTable) misplaced(
	ctx context.Context, s *session.Session, values []any, table *facts.Table,
) (wrong *StatementError) {
	var room [2][1]any
	var each [2][]any
	candidates := each[:0]
	total := 1
	for i, v := range values {
		var to []any
		if i < len(room) {
			to = room[i][:0]
		}
		list := table.Column(x.Columns[i]).Stored(ctx, s, to, v)
		if total *= len(list); total == 0 || total > maxStored {
			return nil
		}
		candidates = append(candidates, list)
	}
	var buf [4]any
	for n := range total {
		row, rest := buf[:0], n
		for _, list := range candidates {
			row = append(row, list[rest%len(list)])
			rest /= len(list)
		}
		place, here, err := x.Place(row)
		nowhere, ok := errors.AsType[*rule.PlaceError](err)
		switch {
		case here:
			return nil
		case err != nil && (!ok || nowhere.Unknown):
			if !s.IsAssumed() {
				return nil
			}
		case wrong == nil:
			wrong = wrongShard(x.name, &WrongShardError{
				Columns: slices.Clone(x.Columns), Values: slices.Clone(values), Meant: place, Err: err,
			})
		}
	}
	return wrong
}
