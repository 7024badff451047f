package fill

import (
	"context"
	"database/sql/driver"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/internal/policy"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// The guard refuses rows that don't belong in the actual table of their INSERT, or logs them. It checks
// the values that the server stores, not the values in the statement. For example, '131' is a number in
// a BIGINT column, and 131 is a string in a VARCHAR column. So it needs the columns' types. It accepts a
// row if only the server knows the stored value, or if the rule's algorithm can't be computed for it.

// values appends a row's values of the sharding columns, with nil for the key. ok is false if one of
// them is unknown.
func (r *rows) values(to []any, row int) (values []any, ok bool) {
	for i := range r.Actual.Columns {
		if i == r.Actual.key {
			to = append(to, nil)
			continue
		}
		v := r.plan.Value(row, i)
		value := v.Literal
		switch v.From {
		case rewrite.Unknown:
			return nil, false
		case rewrite.Argument:
			if value, ok = stored(r.args[v.Arg].Value); !ok {
				return nil, false
			}
		}
		to = append(to, value)
	}
	return to, true
}

// stored returns a bound value as the column stores it. ok is false if only the server knows it.
func stored(bound driver.Value) (value any, ok bool) {
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

// generates reports whether a row needs a key.
func (r *rows) generates(row int) bool { return r.Insert.Generates(row, &rewrite.Keys{Asked: r.asked}) }

// guard checks the rows against the table, before any key is generated. It skips rows whose table
// depends on a generated key.
func (r *rows) guard(ctx context.Context) error {
	a := r.Actual
	var buf [4]any
	for row := range r.Insert.Rows {
		values, ok := r.values(buf[:0], row)
		if !ok {
			continue
		}
		if a.HasKey() {
			if r.generates(row) {
				continue
			}
			switch key := r.explicit(row).(type) {
			case nil, []byte:
				continue // the key's type is unknown, or Java would hash it in another way
			default:
				values[a.key] = key
			}
		}
		if err := r.guardRow(ctx, row, values); err != nil {
			return err
		}
	}
	return nil
}

// guardRow returns the error for a row that doesn't belong in the table. It returns nil if the rule
// only logs such rows. Rows count from 0.
func (r *rows) guardRow(ctx context.Context, row int, values []any) error {
	a := r.Actual
	if r.Table.Rule.ShardGuard == policy.Warn && a.warned.Load() {
		return nil
	}
	wrong, err := a.checkPlace(ctx, r.session, r.Insert, values)
	if err != nil {
		return err
	}
	if wrong != nil {
		wrong.Row = row + 1
	}
	return r.Table.refuseOrLog(ctx, &a.warned, wrong)
}

// refuseOrLog returns wrong, or logs it once if the rule's shardGuard is warn. wrong may be nil.
func (t *Table) refuseOrLog(ctx context.Context, warned *atomic.Bool, wrong *rewrite.StatementError) error {
	switch {
	case wrong == nil:
		return nil
	case t.Rule.ShardGuard == policy.Refuse:
		return wrong
	case !warned.Swap(true):
		cause := wrong.Err.(*rule.WrongShardError)
		t.logger.WarnContext(ctx, "shardkey: row sent to the wrong table",
			"table", wrong.Table, "row", wrong.Row, "columns", cause.Columns, "belongs_to", cause.Meant.String())
	}
	return nil
}

// GuardUpdate returns the error for an ON DUPLICATE KEY UPDATE that changes a sharding column to a
// value of another table.
func (f *Filler) GuardUpdate(ctx context.Context, s Session, args []driver.NamedValue) error {
	t, a := f.Table, f.Actual
	set := map[string]any{} // by the column's name in lower case
	for c, column := range f.Insert.Table.Fixed {
		v, assigned := f.plan.Assigned(c)
		value := v.Literal
		switch {
		case !assigned, v.From == rewrite.Unknown:
			continue
		case v.From == rewrite.Expression:
			wrong := wrongShard(f.Name(), &rule.WrongShardError{Columns: []string{column}, Err: errExpression})
			return t.refuseOrLog(ctx, &t.warnedUpdate, inUpdate(wrong))
		case v.From == rewrite.Argument:
			var ok bool
			if value, ok = stored(args[v.Arg].Value); !ok {
				continue
			}
		}
		set[strings.ToLower(column)] = value
	}
	if a == nil {
		return nil // the rows' table is unknown
	}
	if err := a.guardBitsUpdate(ctx, set); err != nil {
		return err
	}
	row := make([]any, len(a.Columns))
	for i, column := range a.Columns {
		var ok bool
		if row[i], ok = set[strings.ToLower(column)]; !ok {
			return nil // other columns decide too, or alone
		}
	}
	wrong, err := a.checkPlace(ctx, s, f.Insert, row)
	if err != nil {
		return err
	}
	return t.refuseOrLog(ctx, &a.warned, inUpdate(wrong))
}

// guardBitsUpdate returns the error for an update of the column behind the key's shard bits, if the
// new value has other shard bits. A lookup by the new value would search another table.
func (a *ActualTable) guardBitsUpdate(ctx context.Context, set map[string]any) error {
	bits := a.table.Rule.ShardBits
	if bits == nil || a.belongs == nil {
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
	return a.guardBits(ctx, -1, rowBits{of, value}, nil)
}

// checkPlace returns the error for values of a row that doesn't belong in the table. It returns nil for
// other values, and if that is unknown. err is set if the server can't be asked.
func (a *ActualTable) checkPlace(ctx context.Context, s Session, in *rewrite.Insert, values []any) (wrong *rewrite.StatementError, err error) {
	table, err := s.Facts(ctx, in.Schema, in.Name)
	if err != nil {
		return nil, a.unchecked(err)
	}
	wrong = a.misplaced(ctx, s, values, table)
	if wrong == nil || s.IsAssumed() {
		return wrong, nil
	}
	if table, err = s.AskFacts(ctx, in.Schema, in.Name); err != nil { // the table may have changed
		return nil, a.unchecked(err)
	}
	return a.misplaced(ctx, s, values, table), nil
}

// unchecked returns the error for a row that couldn't be checked. A guard that only warns lets it
// through.
func (a *ActualTable) unchecked(err error) error {
	if a.table.Rule.ShardGuard == policy.Warn {
		return nil
	}
	return err
}

// maxStored limits the combinations of stored values that are checked.
const maxStored = 4096

// misplaced returns the error for values that belong in another table, whichever of their possible
// forms the server stores. The columns' types are known.
func (a *ActualTable) misplaced(ctx context.Context, s Session, values []any, table *facts.Table) (wrong *rewrite.StatementError) {
	var room [2][1]any
	var each [2][]any
	candidates := each[:0]
	total := 1
	for i, v := range values {
		var to []any
		if i < len(room) {
			to = room[i][:0]
		}
		list := table.Column(a.Columns[i]).Stored(ctx, s, to, v)
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
		place, here, err := a.Place(row)
		nowhere, ok := errors.AsType[*rule.PlaceError](err)
		switch {
		case here:
			return nil
		case err != nil && (!ok || nowhere.Unknown):
			if !s.IsAssumed() {
				return nil
			}
		case wrong == nil:
			wrong = wrongShard(a.name, &rule.WrongShardError{
				Columns: slices.Clone(a.Columns), Values: slices.Clone(values), Meant: place, Err: err,
			})
		}
	}
	return wrong
}
