package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// The keys of some tables carry a gene: their lowest bits are the shard of another
// column of the row ([rule.Gene]). A row's key is then one of those that fit its gene,
// as it is one of those that fit the actual table that is named.

// geneFit are the keys with one gene.
type geneFit struct{ mask, gene int64 }

func (f *geneFit) Has(key int64) bool { return key >= 0 && key&f.mask == f.gene }

func (f *geneFit) Next(from, to int64) (key int64, ok bool) {
	from = max(from, 0)
	step := (f.gene - from) & f.mask
	if from > to || step > to-from {
		return 0, false
	}
	return from + step, true
}

func (f *geneFit) Run(n int64) int64 {
	if n < 1 || n > math.MaxInt32 {
		return 0
	}
	return n * (f.mask + 1)
}

// far is a number beyond all remainders and offsets of expressions, whose gene is 0: a
// key with a gene is far | gene.
const far = 1 << 52

// geneFits are the keys of each gene, by the number of its bits; made when they are
// needed first.
var geneFits [16 + 1]struct {
	once sync.Once
	fits []geneFit
}

func fitsOfGenes(bits int) []geneFit {
	all := &geneFits[bits]
	all.once.Do(func() {
		all.fits = make([]geneFit, 1<<bits)
		for gene := range all.fits {
			all.fits[gene] = geneFit{mask: int64(len(all.fits) - 1), gene: int64(gene)}
		}
	})
	return all.fits
}

// bothFit are the keys that are in both sets, where neither decides alone.
type bothFit struct {
	gene  *geneFit
	table spi.KeyFit
}

func (f bothFit) Has(key int64) bool { return f.gene.Has(key) && f.table.Has(key) }
func (f bothFit) Run(int64) int64    { return 0 }

func (f bothFit) Next(from, to int64) (key int64, ok bool) {
	for range 1 << 16 {
		if key, ok = f.gene.Next(from, to); !ok || f.table.Has(key) || key == math.MaxInt64 {
			return key, ok && f.table.Has(key)
		}
		from = key + 1
	}
	return 0, false
}

// isByGene reports whether the gene alone decides which keys belong into a table.
func isByGene(fit spi.KeyFit, gene *rule.Gene) bool {
	e, ok := fit.(interface{ Modulus() (int64, []int64) })
	if !ok {
		return false
	}
	mod, _ := e.Modulus()
	return mod > 0 && 1<<gene.Bits%mod == 0
}

// GeneError is the error for a row whose key cannot be made because it would carry the
// shard of another column of the row ([rule.Gene]), which the INSERT does not tell: the
// column is left out, or its value is NULL, DEFAULT or an expression. It was not sent.
// [ErrUnsupportedStatement] is in its chain.
type GeneError struct {
	Row    int    // the row's number in its INSERT, from 1
	Table  string // as the INSERT names it
	Column string // whose shard the key would carry
	Reason string
	Err    error // the cause, as a [*rule.PlaceError]; may be nil
}

func (e *GeneError) Error() string {
	return fmt.Sprintf("%v: row %d of %s: its key carries the shard of %s, and %s; give %s an integer or a text, written or bound, or give the key",
		ErrUnsupportedStatement, e.Row, e.Table, e.Column, e.Reason, e.Column)
}

func (e *GeneError) Unwrap() []error {
	if e.Err != nil {
		return []error{ErrUnsupportedStatement, e.Err}
	}
	return []error{ErrUnsupportedStatement}
}

// withGene returns the columns whose values a plan must know, with that of the gene, and
// its place among them.
func withGene(columns []string, gene *rule.Gene) ([]string, int) {
	i := slices.IndexFunc(columns, func(c string) bool { return strings.EqualFold(c, gene.Column) })
	if i >= 0 {
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
func (p *plan) geneOf(ctx context.Context, s *session.Session, of *target, row int, user []driver.NamedValue) (g rowGene, err error) {
	in, t := of.in, of.table
	kind, param, value := p.Given(in, of.geneAt, row)
	switch kind {
	case rewrite.GivenUnknown:
		return g, t.noGene(in, row, "the row does not tell its value: it is left out, DEFAULT or an expression", nil)
	case rewrite.GivenParam:
		if value, err = geneArg(user[param].Value); err != nil {
			return g, t.noGene(in, row, err.Error(), nil)
		}
	}
	if text, ok := value.(string); ok {
		column := of.geneColumn
		known, err := column.Learn(ctx, s)
		if err != nil {
			return g, err
		}
		if value = textIn(known, text); value == nil {
			return g, t.noGene(in, row, fmt.Sprintf("of %s there is none: it is no integer, and the column is %s", shownValue(text), known.Text), nil)
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
		return rowGene{}, t.noGene(in, row, "of "+shownValue(value)+" there is none: "+reason, err)
	}
	return rowGene{gene, value}, nil
}

func (t *table) noGene(in *rewrite.Insert, row int, reason string, cause error) error {
	return &GeneError{Row: row + 1, Table: nameOf(in), Column: t.rule.Gene.Column, Reason: reason, Err: cause}
}

// nameOf is the table's name as the text has it.
func nameOf(in *rewrite.Insert) string {
	if in.Schema == "" {
		return in.Name
	}
	return in.Schema + "." + in.Name
}

// geneArg is a bound value as the column holds it.
func geneArg(bound driver.Value) (any, error) {
	if value, ok := shardValue(bound); ok {
		return value, nil
	}
	if text, ok := plainKey(bound).([]byte); ok && utf8.Valid(text) {
		return string(text), nil
	}
	return nil, fmt.Errorf("of its %T there is none", bound)
}

// fitOf returns the keys for a row: those with its gene that belong into the actual
// table that is named, x, where keys are to fit it. values are the row's in x.Columns, nil
// where not all are known.
func (t *table) fitOf(ctx context.Context, logger shardLogger, x *shard, row int, g rowGene, values []any) (spi.KeyFit, error) {
	own := &t.genes[g.gene]
	if x == nil || !x.fits {
		return own, nil
	}
	fit, byGene := x.fit, x.byGene
	if fit == nil {
		if values == nil {
			return own, nil
		}
		var err error
		if fit, err = x.Fit(t.rule.Column, values); err != nil {
			return nil, err
		}
		byGene = isByGene(fit, t.rule.Gene)
	}
	switch {
	case !byGene:
		return bothFit{own, fit}, nil
	case fit.Has(far|g.gene) || !x.looks():
		return own, nil
	}
	return own, x.wrongGene(ctx, logger, row, g, values)
}

// wrongGene returns the error for a row whose gene is that of another table, and nil where it
// is only to be logged.
func (x *shard) wrongGene(ctx context.Context, logger shardLogger, row int, g rowGene, values []any) error {
	if values = slices.Clone(values); values == nil {
		values = make([]any, len(x.Columns))
	}
	values[x.key] = far | g.gene
	place, _, err := x.Place(values)
	return x.table.judge(ctx, logger, &x.warned, &WrongShardError{Row: row + 1, Columns: []string{x.table.rule.Gene.Column}, Values: []any{g.value}, Table: x.name, Meant: place, Err: err})
}

// geneKeys makes the n keys of an insert's rows, each with the gene of its row.
func (e *execution) geneKeys(ctx context.Context, k *insertion, n int) (keys rewrite.Keys, err error) {
	x := k.shard
	fits := make([]spi.KeyFit, 0, n)
	for row := range k.in.Rows() {
		if !k.isGenerated(row) {
			continue
		}
		g, err := e.plan.geneOf(ctx, e.session, k.target, row, e.user)
		if err != nil {
			return keys, err
		}
		var values []any
		if x != nil && x.fits && x.fit == nil {
			values, _ = x.values(nil, e.plan, k.in, row, e.user)
			if at := k.geneAt; values != nil && at < len(values) {
				values[at] = g.value
			}
		}
		fit, err := k.table.fitOf(ctx, e.plan.rules.logger, x, row, g, values)
		if err != nil {
			return keys, err
		}
		fits = append(fits, fit)
	}
	if n == 1 {
		keys.Ints = k.one[:]
	} else {
		keys.Ints = make([]int64, n)
	}
	return keys, k.table.generateEach(ctx, keys.Ints, fits)
}

// geneColumn returns the place, among the columns that a query gives, of what the keys'
// gene is of, whose type is known afterwards.
func (r *insertSelect) geneColumn(ctx context.Context) (int, error) {
	at := slices.IndexFunc(r.in.Source.Columns, func(c string) bool { return strings.EqualFold(c, r.table.rule.Gene.Column) })
	if at < 0 {
		return 0, r.table.noGene(r.in, 0, "the query's rows have no such column", nil)
	}
	_, err := r.plan.targets[0].geneColumn.Learn(ctx, r.Session)
	return at, err
}

// isText matches the types of columns of text.
var isText = regexp.MustCompile(`^((var)?char|(tiny|medium|long)?text|enum)\b`)

// fitOfRow returns the keys for a row of a query, by its value of the gene's column. It is
// taken as the column holds it.
func (r *insertSelect) fitOfRow(ctx context.Context, row int, shown driver.Value) (spi.KeyFit, error) {
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
			return nil, r.table.noGene(r.in, row, fmt.Sprintf("of what a column of type %q holds there is none", known.Text), nil)
		}
	}
	g, err := r.table.geneOf(r.in, row, value)
	if err != nil {
		return nil, err
	}
	return r.table.fitOf(ctx, r.plan.rules.logger, r.plan.targets[0].shard, row, g, nil)
}

// generateEach fills keys, each with one that fits, and counts them. Keys that follow each
// other and have the same fit are one reservation.
func (t *table) generateEach(ctx context.Context, keys []int64, fits []spi.KeyFit) (err error) {
	start := t.counts.start()
	defer func() { t.counts.made(start, len(keys), err) }()
	defer t.keysFailed(&err)
	for from := 0; from < len(keys); {
		to := from + 1
		for to < len(keys) && fits[to] == fits[from] {
			to++
		}
		if err := t.choose(ctx, keys[from:to], fits[from]); err != nil {
			return err
		}
		from = to
	}
	return nil
}
