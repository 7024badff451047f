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
// row. Identifiers call them a gene, after 基因法 ("gene method"); see [rule.ShardBits]. The driver draws
// keys until one has the row's shard bits.

// shardBitsBase is above all remainders and offsets of expressions, and its shard bits are 0. A key with the
// shard bits b is shardBitsBase | b.
const shardBitsBase = 1 << 52

// geneRows draws keys for rows by their shard bits.
type geneRows struct {
	keySearch[int64]
	bits int
	rows int
	at   []int32 // the lot for each value of the shard bits, from 1; nil for a single row
}

// newGeneRows returns a geneRows for about n rows.
func (t *keyedTable) newGeneRows(name string, n int) *geneRows {
	r := &geneRows{keySearch: keySearch[int64]{name: name}, bits: t.gene.Bits}
	if n > 1 {
		r.at = make([]int32, 1<<r.bits)
	}
	return r
}

// add adds the next row, with its shard bits.
func (r *geneRows) add(gene int64) {
	row := r.rows
	r.rows++
	if r.at != nil {
		if i := r.at[gene]; i > 0 {
			r.lots[i-1].rows = append(r.lots[i-1].rows, row)
			return
		}
		r.at[gene] = int32(len(r.lots) + 1)
	}
	mask := int64(1)<<r.bits - 1
	r.start(func(key int64) bool { return key >= 0 && key&mask == gene }, 1<<r.bits)
	r.keySearch.add(row)
}

// make draws the keys.
func (r *geneRows) make(ctx context.Context, t *keyedTable, one *[1]int64) (rewrite.Keys, error) {
	if mask := int64(1)<<r.bits - 1; r.at != nil {
		r.lotOf = func(key int64) int { return int(r.at[key&mask]) - 1 }
	}
	return t.drawInts(ctx, &r.keySearch, r.rows, one)
}

// withGene returns the columns whose values a plan must know, with the column of the shard bits
// added, and the index of that column.
func withGene(columns []string, gene *rule.ShardBits) ([]string, int) {
	if i := indexOf(columns, gene.Column); i >= 0 {
		return columns, i
	}
	return append(slices.Clone(columns), gene.Column), len(columns)
}

// rowGene is a row's shard bits.
type rowGene struct {
	gene  int64
	value any // the column's value: an integer or a string
}

// geneOf returns the shard bits of a row.
func (e *execution) geneOf(ctx context.Context, k *insertion, row int) (g rowGene, err error) {
	in, t := k.in, k.table
	v := e.plan.Value(row, k.geneAt)
	value := v.Literal
	switch v.From {
	case rewrite.Unknown:
		return g, t.noGene(in, row, "it is missing, DEFAULT or an expression", nil)
	case rewrite.Argument:
		if e.user[v.Arg].Value == (unknownArg{}) {
			return g, errUndecided
		}
		if value, err = geneArg(e.user[v.Arg].Value); err != nil {
			return g, t.noGene(in, row, err.Error(), nil)
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
			return g, t.noGene(in, row, fmt.Sprintf("its type is %s and the value is not an integer", known.Text), nil)
		}
	}
	return t.geneOf(in, row, value)
}

// textIn returns a string as a column of known type stores it: as an integer in a numeric column.
// It returns nil if that is unknown.
func textIn(column *facts.Column, text string) any {
	if column.Form != columntype.Integer {
		return text
	}
	return sqltoken.ParseInteger(strings.TrimSpace(text), 10)
}

// geneOf returns the shard bits of a value.
func (t *keyedTable) geneOf(in *rewrite.Insert, row int, value any) (rowGene, error) {
	gene, err := t.rule.ShardBits.Of(value)
	if err != nil {
		reason := err.Error()
		if cause := errors.Unwrap(err); cause != nil {
			reason = cause.Error()
		}
		return rowGene{}, t.noGene(in, row, "the value has no shard bits: "+reason, err)
	}
	return rowGene{gene, value}, nil
}

func (t *keyedTable) noGene(in *rewrite.Insert, row int, reason string, cause error) error {
	column := t.rule.ShardBits.Column
	return refuse(reasonNoGene, StatementError{
		Table: nameOf(in), Row: row + 1, Column: column, Err: cause,
		Message: fmt.Sprintf("cannot take the key's shard bits from column %s: %s; set %s to an integer or a string, or set the key",
			column, reason, column),
	})
}

// nameOf returns the table's name in the statement.
func nameOf(in *rewrite.Insert) string { return tableName(in.Schema, in.Name) }

// geneArg returns a bound value as the column stores it.
func geneArg(bound driver.Value) (any, error) {
	if value, ok := shardValue(bound); ok {
		return value, nil
	}
	if text, ok := sqltoken.PlainValue(bound).([]byte); ok && utf8.Valid(text) {
		return string(text), nil
	}
	return nil, fmt.Errorf("a %T has no shard bits", bound)
}

// checkGene returns the error for a row whose shard bits belong to another table. It returns nil if
// the rule only logs such rows. values are the row's values of Columns, nil if one is unknown.
func (x *actualTable) checkGene(ctx context.Context, logger *slog.Logger, row int, g rowGene, values []any) error {
	switch {
	case x == nil || x.key < 0 || !x.looks():
		return nil
	case x.belongs != nil:
		if x.belongs(shardBitsBase | g.gene) {
			return nil
		}
		values = make([]any, 1)
	case values == nil:
		return nil
	}
	values[x.key] = shardBitsBase | g.gene
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

// geneRows returns the rows that need a key, with their shard bits. It skips rows that only an
// execution can decide on.
func (e *execution) geneRows(ctx context.Context, k *insertion, n int) (*geneRows, error) {
	x := k.shard
	rows := k.table.newGeneRows(nameOf(k.in), n)
	for row := range k.in.Rows {
		if !k.isGenerated(row) {
			continue
		}
		g, err := e.geneOf(ctx, k, row)
		if err == errUndecided {
			continue
		}
		if err != nil {
			return nil, err
		}
		var values []any
		if x != nil && x.key >= 0 && x.belongs == nil {
			values, _ = e.shardValues(nil, k, row)
			if at := k.geneAt; values != nil && at < len(values) {
				values[at] = g.value
			}
		}
		if err := x.checkGene(ctx, e.plan.rules.logger, row, g, values); err != nil {
			return nil, err
		}
		rows.add(g.gene)
	}
	return rows, nil
}
