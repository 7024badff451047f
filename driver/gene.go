package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rule"
)

// The keys of some tables carry a gene: their lowest bits are the shard of another
// column of the row ([rule.Gene]). A row's key is then one of those with its gene,
// as it is one of those that belong to the actual table that is named.

// far is a number beyond all remainders and offsets of expressions, whose gene is 0: a
// key with a gene is far | gene.
const far = 1 << 52

// geneRows draws keys for rows each of which has a gene.
type geneRows struct {
	draw[int64]
	bits int
	rows int
	at   []int32 // the lot of a gene, from 1; nil for a single row
}

// newGeneRows draws keys for about n rows.
func (t *table) newGeneRows(name string, n int) *geneRows {
	r := &geneRows{draw: draw[int64]{name: name}, bits: t.gene.Bits}
	if n > 1 {
		r.at = make([]int32, 1<<r.bits)
	}
	return r
}

// add adds the next row.
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
	r.draw.add(row)
}

// make draws the keys.
func (r *geneRows) make(ctx context.Context, t *table, one *[1]int64) (rewrite.Keys, error) {
	if mask := int64(1)<<r.bits - 1; r.at != nil {
		r.lotOf = func(key int64) int { return int(r.at[key&mask]) - 1 }
	}
	return t.drawInts(ctx, &r.draw, r.rows, one)
}

// withGene returns the columns whose values a plan must know, with that of the gene, and
// its place among them.
func withGene(columns []string, gene *rule.Gene) ([]string, int) {
	if i := indexOf(columns, gene.Column); i >= 0 {
		return columns, i
	}
	return append(slices.Clone(columns), gene.Column), len(columns)
}

// rowGene is a row's gene.
type rowGene struct {
	gene  int64
	value any // what it is of: an integer or a text
}

// geneOf returns the gene of a row.
func (e *execution) geneOf(ctx context.Context, k *insertion, row int) (g rowGene, err error) {
	in, t := k.in, k.table
	kind, param, value := e.plan.Given(in, k.geneAt, row)
	switch kind {
	case rewrite.GivenUnknown:
		return g, t.noGene(in, row, "the row does not have its value: it is left out, DEFAULT or an expression", nil)
	case rewrite.GivenParam:
		if e.user[param].Value == (unknownArg{}) {
			return g, errUndecided
		}
		if value, err = geneArg(e.user[param].Value); err != nil {
			return g, t.noGene(in, row, err.Error(), nil)
		}
	}
	if text, ok := value.(string); ok {
		known, err := k.geneColumn.Learn(ctx, e.session)
		if err != nil {
			return g, err
		}
		if known.Assumed && session.MayBeNumber(text) {
			return g, errUndecided // the column may hold an integer for it
		}
		if value = textIn(known, text); value == nil {
			return g, t.noGene(in, row, fmt.Sprintf("the value is not an integer, and the column is %s", known.Text), nil)
		}
	}
	return t.geneOf(in, row, value)
}

// textIn is a text as a column holds it, whose type is known: an integer in a column of
// numbers. It is nil when that cannot be said.
func textIn(column *session.ColumnFacts, text string) any {
	if column.Form != columntype.Integer {
		return text
	}
	return sqltext.ParseInteger(strings.TrimSpace(text), 10)
}

// geneOf returns the gene of a value.
func (t *table) geneOf(in *rewrite.Insert, row int, value any) (rowGene, error) {
	gene, err := t.rule.Gene.Of(value)
	if err != nil {
		reason := err.Error()
		if cause := errors.Unwrap(err); cause != nil {
			reason = cause.Error()
		}
		return rowGene{}, t.noGene(in, row, "the value has none: "+reason, err)
	}
	return rowGene{gene, value}, nil
}

func (t *table) noGene(in *rewrite.Insert, row int, reason string, cause error) error {
	column := t.rule.Gene.Column
	return &StatementError{
		Reason: reasonNoGene, Table: nameOf(in), Row: row + 1, Column: column, Err: cause,
		Message: fmt.Sprintf("its key carries the shard of %s, and %s; give %s an integer or a string, or give the key",
			column, reason, column),
	}
}

// nameOf is the table's name as the text has it.
func nameOf(in *rewrite.Insert) string { return tableName(in.Schema, in.Name) }

// geneArg is a bound value as the column holds it.
func geneArg(bound driver.Value) (any, error) {
	if value, ok := shardValue(bound); ok {
		return value, nil
	}
	if text, ok := plainKey(bound).([]byte); ok && utf8.Valid(text) {
		return string(text), nil
	}
	return nil, fmt.Errorf("a %T has none", bound)
}

// checkGene returns the error for a row whose gene is that of another table, and nil where it is
// only to be logged. values are the row's in Columns, nil where not all are known.
func (x *shard) checkGene(ctx context.Context, logger *slog.Logger, row int, g rowGene, values []any) error {
	switch {
	case x == nil || x.key < 0 || !x.looks():
		return nil
	case x.belongs != nil:
		if x.belongs(far | g.gene) {
			return nil
		}
		values = make([]any, 1)
	case values == nil:
		return nil
	}
	values[x.key] = far | g.gene
	place, here, err := x.Place(values)
	if cause, ok := errors.AsType[*rule.PlaceError](err); here || ok && cause.Unknown {
		return nil
	}
	wrong := wrongShard(x.name, &WrongShardError{
		Columns: []string{x.table.rule.Gene.Column}, Values: []any{g.value}, Meant: place, Err: err,
	})
	wrong.Row = row + 1
	return x.table.judge(ctx, logger, &x.warned, wrong)
}

// geneRows returns the rows that need a key, with the gene of each. A row about which only an
// execution can decide is left out.
func (e *execution) geneRows(ctx context.Context, k *insertion, n int) (*geneRows, error) {
	x := k.shard
	rows := k.table.newGeneRows(nameOf(k.in), n)
	for row := range k.in.Rows() {
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

// geneColumn returns the place, among the columns that a query gives, of what the keys'
// gene is of, whose type is known afterwards.
func (r *insertSelect) geneColumn(ctx context.Context) (int, error) {
	at := indexOf(r.in.Source.Columns, r.table.rule.Gene.Column)
	if at < 0 {
		return 0, r.table.noGene(r.in, -1, "the query's rows have no such column", nil)
	}
	_, err := r.plan.targets[0].geneColumn.Learn(ctx, r.Session)
	return at, err
}

// isText matches the types of columns of text.
var isText = regexp.MustCompile(`^((var)?char|(tiny|medium|long)?text|enum)\b`)

// addRow adds a row of a query, by its value of the gene's column. It is taken as the column
// holds it.
func (r *insertSelect) addRow(ctx context.Context, shown driver.Value) error {
	row := r.drawn.rows
	var value any
	if shown != nil {
		column := r.plan.targets[0].geneColumn
		known := column.Known()
		switch shown.(type) {
		case int64, uint64, string, []byte:
			if text := session.Text(shown); utf8.ValidString(text) && (known.Form == columntype.Integer || isText.MatchString(known.Text)) {
				value = textIn(known, text)
			}
		}
		if value == nil {
			return r.table.noGene(r.in, row, fmt.Sprintf("a value of a column of type %q has none", known.Text), nil)
		}
	}
	g, err := r.table.geneOf(r.in, row, value)
	if err != nil {
		return err
	}
	r.drawn.add(g.gene)
	return r.plan.targets[0].shard.checkGene(ctx, r.plan.rules.logger, row, g, nil)
}
