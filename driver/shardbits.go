package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
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
// row. They are known as 基因法 ("gene method"); see [rule.ShardBits]. The driver makes
// keys until one has the row's shard bits.

// shardBitsBase is above all remainders and offsets of expressions, and its shard bits are 0. A key with the
// shard bits b is shardBitsBase | b.
const shardBitsBase = 1 << 52

// bitsSearch searches keys for rows by their shard bits.
type bitsSearch struct {
	keySearch[int64]
	bits int
	rows int
	at   []int32 // the group for each value of the shard bits, from 1; nil for a single row
}

// newBitsSearch returns a bitsSearch for about n rows.
func (t *keyedTable) newBitsSearch(name string, n int) *bitsSearch {
	r := &bitsSearch{keySearch: keySearch[int64]{name: name}, bits: t.shardBits.Bits}
	if n > 1 {
		r.at = make([]int32, 1<<r.bits)
	}
	return r
}

// add adds the next row, with its shard bits.
func (r *bitsSearch) add(bits int64) {
	row := r.rows
	r.rows++
	if r.at != nil {
		if i := r.at[bits]; i > 0 {
			r.groups[i-1].rows = append(r.groups[i-1].rows, row)
			return
		}
		r.at[bits] = int32(len(r.groups) + 1)
	}
	mask := int64(1)<<r.bits - 1
	r.begin(func(key int64) bool { return key >= 0 && key&mask == bits }, 1<<r.bits)
	r.keySearch.add(row)
}

// make makes the keys.
func (r *bitsSearch) make(ctx context.Context, t *keyedTable, one *[1]int64) (rewrite.Keys, error) {
	if mask := int64(1)<<r.bits - 1; r.at != nil {
		r.groupOf = func(key int64) int { return int(r.at[key&mask]) - 1 }
	}
	return t.searchInts(ctx, &r.keySearch, r.rows, one)
}

// withBitsColumn returns the columns whose values a plan must know, with the column of the shard bits
// added, and the index of that column.
func withBitsColumn(columns []string, bits *rule.ShardBits) ([]string, int) {
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

// bitsOf returns the shard bits of a row.
func (e *execution) bitsOf(ctx context.Context, k *insertion, row int) (g rowBits, err error) {
	in, t := k.in, k.table
	v := e.plan.Value(row, k.bitsAt)
	value := v.Literal
	switch v.From {
	case rewrite.Unknown:
		return g, t.noShardBits(in, row, "it is missing, DEFAULT or an expression", nil)
	case rewrite.Argument:
		if e.user[v.Arg].Value == (unknownArg{}) {
			return g, errUndecided
		}
		if value, err = bitsArg(e.user[v.Arg].Value); err != nil {
			return g, t.noShardBits(in, row, err.Error(), nil)
		}
	}
	if text, ok := value.(string); ok {
		known, err := e.session.Column(ctx, in.Schema, in.Name, t.rule.ShardBits.Column)
		if err != nil {
			return g, err
		}
		if known.Assumed && facts.MayBeNumber(text) {
			return g, errUndecided // the column may store it as an integer
		}
		if value = textIn(known, text); value == nil {
			return g, t.noShardBits(in, row, fmt.Sprintf("its type is %s and the value is not an integer", known.Text), nil)
		}
	}
	return t.bitsOf(in, row, value)
}

// textIn returns a string as a column of known type stores it: as an integer in a numeric column.
// It returns nil if that is unknown.
func textIn(column *facts.Column, text string) any {
	if column.Form != columntype.Integer {
		return text
	}
	return sqltoken.ParseInteger(strings.TrimSpace(text), 10)
}

// bitsOf returns the shard bits of a value.
func (t *keyedTable) bitsOf(in *rewrite.Insert, row int, value any) (rowBits, error) {
	bits, err := t.rule.ShardBits.Of(value)
	if err != nil {
		reason := err.Error()
		if cause := errors.Unwrap(err); cause != nil {
			reason = cause.Error()
		}
		return rowBits{}, t.noShardBits(in, row, "the value has no shard bits: "+reason, err)
	}
	return rowBits{bits, value}, nil
}

func (t *keyedTable) noShardBits(in *rewrite.Insert, row int, reason string, cause error) error {
	column := t.rule.ShardBits.Column
	return refuse(ReasonNoShardBits, StatementError{
		Table: nameOf(in), Row: row + 1, Column: column, Err: cause,
		Message: fmt.Sprintf("cannot take the key's shard bits from column %s: %s; set %s to an integer or a string, or set the key",
			column, reason, column),
	})
}

// nameOf returns the table's name in the statement.
func nameOf(in *rewrite.Insert) string { return tableName(in.Schema, in.Name) }

// bitsArg returns a bound value as the column stores it.
func bitsArg(bound driver.Value) (any, error) {
	if value, ok := shardValue(bound); ok {
		return value, nil
	}
	if text, ok := sqltoken.PlainValue(bound).([]byte); ok && utf8.Valid(text) {
		return string(text), nil
	}
	return nil, fmt.Errorf("a %T has no shard bits", bound)
}

// checkBits returns the error for a row whose shard bits belong to another table. It returns nil if
// the rule only logs such rows. values are the row's values of Columns, nil if one is unknown.
func (x *actualTable) checkBits(ctx context.Context, logger *slog.Logger, row int, g rowBits, values []any) error {
	switch {
	case x == nil || x.key < 0 || !x.looks():
		return nil
	case x.belongs != nil:
		if x.belongs(shardBitsBase | g.bits) {
			return nil
		}
		values = make([]any, 1)
	case values == nil:
		return nil
	}
	values[x.key] = shardBitsBase | g.bits
	place, here, err := x.Place(values)
	if cause, ok := errors.AsType[*rule.PlaceError](err); here || ok && cause.Unknown {
		return nil
	}
	wrong := wrongShard(x.name, &WrongShardError{
		Columns: []string{x.table.rule.ShardBits.Column}, Values: []any{g.value}, Meant: place, Err: err,
	})
	wrong.Row = row + 1
	return x.table.judge(ctx, logger, &x.warned, wrong)
}

// searchBits returns the rows that need a key, with their shard bits. It skips rows that only an
// execution can decide on.
func (e *execution) searchBits(ctx context.Context, k *insertion, n int) (*bitsSearch, error) {
	x := k.shard
	rows := k.table.newBitsSearch(nameOf(k.in), n)
	for row := range k.in.Rows {
		if !k.isGenerated(row) {
			continue
		}
		g, err := e.bitsOf(ctx, k, row)
		if err == errUndecided {
			continue
		}
		if err != nil {
			return nil, err
		}
		var values []any
		if x != nil && x.key >= 0 && x.belongs == nil {
			values, _ = e.shardValues(nil, k, row)
			if at := k.bitsAt; values != nil && at < len(values) {
				values[at] = g.value
			}
		}
		if err := x.checkBits(ctx, e.plan.rules.logger, row, g, values); err != nil {
			return nil, err
		}
		rows.add(g.bits)
	}
	return rows, nil
}
