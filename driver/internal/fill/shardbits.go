package fill

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// The keys of some tables have shard bits: their lowest bits are the shard of another column of the
// row. They are known as 基因法 ("gene method"); see [rule.ShardBits]. Keys are made until one has the
// row's shard bits.

// shardBitsBase is above all remainders and offsets of expressions, and its shard bits are 0. A key with the
// shard bits b is shardBitsBase | b.
const shardBitsBase = 1 << 52

// bitsSearch searches keys for rows by their shard bits.
type bitsSearch struct {
	search[int64]
	table *Table
	bits  int
	rows  int
	at    []int32 // the group for each value of the shard bits, from 1; nil for a single row
}

// newBitsSearch returns a bitsSearch for about n rows.
func (t *Table) newBitsSearch(name string, n int) *bitsSearch {
	b := &bitsSearch{search: search[int64]{name: name}, table: t, bits: t.shardBits.Bits}
	if n > 1 {
		b.at = make([]int32, 1<<b.bits)
	}
	return b
}

// add adds the next row, with its shard bits.
func (b *bitsSearch) add(bits int64) {
	row := b.rows
	b.rows++
	if b.at != nil {
		if i := b.at[bits]; i > 0 {
			b.groups[i-1].rows = append(b.groups[i-1].rows, row)
			return
		}
		b.at[bits] = int32(len(b.groups) + 1)
	}
	mask := int64(1)<<b.bits - 1
	b.begin(func(key int64) bool { return key >= 0 && key&mask == bits }, 1<<b.bits)
	b.search.add(row)
}

// make makes the keys.
func (b *bitsSearch) make(ctx context.Context, one *[1]int64) (rewrite.Keys, error) {
	if mask := int64(1)<<b.bits - 1; b.at != nil {
		b.groupOf = func(key int64) int { return int(b.at[key&mask]) - 1 }
	}
	return b.table.searchInts(ctx, &b.search, b.rows, one)
}

// WithBitsColumn returns the columns whose values a plan must know, with the column of the shard bits
// added, and the index of that column.
func WithBitsColumn(columns []string, bits *rule.ShardBits) ([]string, int) {
	if i := indexOf(columns, bits.Column); i >= 0 {
		return columns, i
	}
	return append(slices.Clone(columns), bits.Column), len(columns)
}

// rowBits is a row's shard bits.
type rowBits struct {
	bits  int64
	value any // the column's value: an integer or a string
}

// findBits searches keys with the rows' shard bits. It skips rows that only an execution can decide on.
func (r *rows) findBits(ctx context.Context) (maker, error) {
	a, b := r.Actual, r.Table.newBitsSearch(r.Name(), r.n)
	for row := range r.Insert.Rows {
		if !r.generates(row) {
			continue
		}
		of, err := r.bits(ctx, row)
		if err == errUndecided {
			continue
		}
		if err != nil {
			return nil, err
		}
		var values []any
		if a != nil && a.HasKey() && a.belongs == nil {
			values, _ = r.values(nil, row)
			if at := r.bitsAt; values != nil && at < len(values) {
				values[at] = of.value
			}
		}
		if err := a.guardBits(ctx, row, of, values); err != nil {
			return nil, err
		}
		b.add(of.bits)
	}
	return b.make, nil
}

// bits returns the shard bits of a row.
func (r *rows) bits(ctx context.Context, row int) (of rowBits, err error) {
	v := r.plan.Value(row, r.bitsAt)
	value := v.Literal
	switch v.From {
	case rewrite.Unknown:
		return of, r.noShardBits(row, "it is missing, DEFAULT or an expression", nil)
	case rewrite.Argument:
		if r.args[v.Arg].Value == (UnknownArg{}) {
			return of, errUndecided
		}
		if value, err = bitsArg(r.args[v.Arg].Value); err != nil {
			return of, r.noShardBits(row, err.Error(), nil)
		}
	}
	if text, ok := value.(string); ok {
		table, err := r.session.Facts(ctx, r.Insert.Schema, r.Insert.Name)
		if err != nil {
			return of, err
		}
		column := table.Column(r.Table.shardBits.Column)
		if column.Assumed && facts.MayBeNumber(text) {
			return of, errUndecided // the column may store it as an integer
		}
		if value = textIn(column, text); value == nil {
			return of, r.noShardBits(row, fmt.Sprintf("its type is %s and the value is not an integer", column.Text), nil)
		}
	}
	bits, err := r.Table.shardBits.Of(value)
	if err != nil {
		reason := err
		if cause := errors.Unwrap(err); cause != nil {
			reason = cause
		}
		return of, r.noShardBits(row, "the value has no shard bits: "+reason.Error(), err)
	}
	return rowBits{bits, value}, nil
}

// textIn returns a string as a column of known type stores it: as an integer in a numeric column.
// It returns nil if that is unknown.
func textIn(column *facts.Column, text string) any {
	if column.Form != columntype.Integer {
		return text
	}
	return sqltoken.ParseInteger(strings.TrimSpace(text), 10)
}

// bitsArg returns a bound value as the column stores it.
func bitsArg(bound driver.Value) (any, error) {
	if value, ok := stored(bound); ok {
		return value, nil
	}
	if text, ok := sqltoken.PlainValue(bound).([]byte); ok && utf8.Valid(text) {
		return string(text), nil
	}
	return nil, fmt.Errorf("a %T has no shard bits", bound)
}

// noShardBits returns the error for a row, from 0, or for all rows if it is −1.
func (f *Filler) noShardBits(row int, reason string, cause error) error {
	column := f.Table.shardBits.Column
	return refuse(noShardBits, rewrite.StatementError{
		Table: f.Name(), Row: row + 1, Column: column, Err: cause,
		Message: fmt.Sprintf("cannot take the key's shard bits from column %s: %s; set %s to an integer or a string, or set the key",
			column, reason, column),
	})
}

// guardBits returns the error for a row whose shard bits belong to another table. It returns nil if
// the rule only logs such rows. values are the row's values of Columns, nil if one is unknown. a may be nil.
func (a *ActualTable) guardBits(ctx context.Context, row int, of rowBits, values []any) error {
	switch {
	case a == nil || !a.HasKey() || !a.Guards():
		return nil
	case a.belongs != nil:
		if a.belongs(shardBitsBase | of.bits) {
			return nil
		}
		values = make([]any, 1)
	case values == nil:
		return nil
	}
	values[a.key] = shardBitsBase | of.bits
	place, here, err := a.Place(values)
	if cause, ok := errors.AsType[*rule.PlaceError](err); here || ok && cause.Unknown {
		return nil
	}
	wrong := wrongShard(a.name, &rule.WrongShardError{
		Columns: []string{a.table.Rule.ShardBits.Column}, Values: []any{of.value}, Meant: place, Err: err,
	})
	wrong.Row = row + 1
	return a.table.refuseOrLog(ctx, &a.warned, wrong)
}
