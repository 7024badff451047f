package driver

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/rule"
)

// A row belongs where its values as the server stores them belong: '131' in a BIGINT is
// the number, 131 in a VARCHAR the string. What is stored depends on the columns' types, of
// which the server is asked once. Where only the server knows it, and where the rule's
// algorithm cannot be computed for it, the guard is silent.

// wrong returns the error for values with which a row does not belong to the table, nil
// for others and for those of which that is not known.
func (x *shard) wrong(ctx context.Context, s *session.Session, values []any) *StatementError {
	columns := x.columnsIn(s)
	asked := false
	for _, c := range columns {
		if c.Known() == nil {
			asked = true
			if _, err := c.Learn(ctx, s); err != nil {
				return nil // the statement meets the same error
			}
		}
	}
	wrong := x.misplaced(ctx, s, values, columns)
	if wrong == nil || asked || s.IsAssumed() {
		return wrong
	}
	for _, c := range columns { // the table may have been altered
		if _, err := c.Refresh(ctx, s); err != nil {
			return nil
		}
	}
	return x.misplaced(ctx, s, values, columns)
}

// columnsIn returns the sharding columns of the table, whose types are to be known.
func (x *shard) columnsIn(s *session.Session) []*session.Column {
	if known := x.columns.Load(); known != nil {
		return *known
	}
	columns := make([]*session.Column, len(x.Columns))
	for i, name := range x.Columns {
		columns[i] = s.Column(x.schema, x.actual, name)
	}
	x.columns.Store(&columns)
	return columns
}

// maxStored bounds the combinations of values that may be stored.
const maxStored = 4096

// misplaced returns the error for values that belong elsewhere, whichever of those that
// may be stored for them are. columns are nil without a server.
func (x *shard) misplaced(
	ctx context.Context, s *session.Session, values []any, columns []*session.Column,
) (wrong *StatementError) {
	var room [2][1]any
	var each [2][]any
	candidates := each[:0]
	total := 1
	for i, v := range values {
		var known *session.ColumnFacts
		if columns != nil {
			known = columns[i].Known()
		}
		var to []any
		if i < len(room) {
			to = room[i][:0]
		}
		list := known.Stored(ctx, s, to, v)
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
		var nowhere *rule.PlaceError
		switch {
		case here:
			return nil
		case err != nil && (!errors.As(err, &nowhere) || nowhere.Unknown):
			if x.typesKnown(columns) {
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

// typesKnown reports whether the server has told the types of all columns. Of a type that
// it has not told, a value that an algorithm cannot take is not the one that is stored.
func (x *shard) typesKnown(columns []*session.Column) bool {
	isUnknown := func(c *session.Column) bool {
		known := c.Known()
		return known == nil || known.Stores == session.StoresUnknown
	}
	return columns != nil && !slices.ContainsFunc(columns, isUnknown)
}

// integral returns the integer that a float is, where every server stores it as such.
func integral(v float64) (int64, bool) {
	const exact = 1e15 // from there on its text has an exponent
	n := int64(v)
	return n, v > -exact && v < exact && float64(n) == v && !(v == 0 && math.Signbit(v))
}
