package fill

import (
	"context"
	"fmt"

	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// Next returns n keys before their INSERT. If keys have shard bits, values are those of their column: one
// for all keys, or one for each. name is the table's name, and a the actual table, which may be nil.
func (t *Table) Next(ctx context.Context, name string, a *ActualTable, n int, values []any) ([]any, error) {
	var one [1]int64
	var made rewrite.Keys
	var err error
	switch {
	case t.shardBits != nil:
		made, err = t.nextWithBits(ctx, name, a, n, values)
	case len(values) > 0:
		err = NoKeys(name, "its keys have no shard bits; pass no values", nil)
	default:
		err = (&Filler{Table: t, Actual: a}).generate(ctx, n, &made, &one)
	}
	if err != nil {
		return nil, err
	}
	t.Counts.notInserted(n)
	keys := make([]any, n)
	for i := range keys {
		keys[i] = made.At(i)
	}
	return keys, nil
}

// nextWithBits searches keys with the shard bits of the given values.
func (t *Table) nextWithBits(ctx context.Context, name string, a *ActualTable, n int, values []any) (rewrite.Keys, error) {
	wrong := func(err error, format string, args ...any) (rewrite.Keys, error) {
		return rewrite.Keys{}, NoKeys(name, fmt.Sprintf(format, args...), err)
	}
	if len(values) != 1 && len(values) != n {
		return wrong(nil, "its keys have shard bits of column %s: expected one value, "+
			"or one for each of %d keys, found %d", t.shardBits.Column, n, len(values))
	}
	b := t.newBitsSearch(name, n)
	var of rowBits
	for i := range n {
		if i < len(values) {
			v, err := bitsArg(sqltoken.PlainValue(values[i]))
			if err == nil {
				of.value = v
				of.bits, err = t.shardBits.Of(v)
			}
			if err != nil {
				return wrong(err, "value %d is invalid for column %s", i+1, t.shardBits.Column)
			}
		}
		if err := a.guardBits(ctx, i, of, nil); err != nil {
			return rewrite.Keys{}, err
		}
		b.add(of.bits)
	}
	return b.make(ctx, nil)
}
