package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// genes returns how many of a key's lowest bits are a gene.
func (f *decodeFlags) genes(bits keyBits) (int, error) {
	switch given := f.fs.Changed("gene-bits"); {
	case given && f.rule != "":
		return 0, usagef("-rule says what -gene-bits says too: give one of the two")
	case given && (f.geneBits < 1 || f.geneBits > 16):
		return 0, usagef("-gene-bits %d is not in 1..16", f.geneBits)
	case given && f.guess:
		return 0, usagef("-guess shows no genes: leave -gene-bits out")
	case given:
		return f.geneBits, nil
	}
	with, _ := bits.(ruleBits)
	return with.geneBits, nil
}

func formatGene(gene *int64, bits int) string {
	if gene == nil {
		return "-"
	}
	return fmt.Sprintf("%d of %d", *gene, 1<<bits)
}

// noted are the columns whose values a plan shall know: those by which the table is
// sharded, and the one whose gene its keys carry.
func noted(t *rule.Table) (columns []string) {
	if t.Sharding != nil {
		columns = t.Sharding.Columns
	}
	if t.Gene != nil && !slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, t.Gene.Column) }) {
		columns = append(slices.Clone(columns), t.Gene.Column)
	}
	return columns
}

// geneGiven tells how a row gives the gene of its key.
func geneGiven(plan *rewrite.Plan, in *rewrite.Insert, t *rule.Table, row int) (kind rewrite.GivenKind, param int, value any) {
	at := slices.IndexFunc(in.Table.Sharding, func(c string) bool { return strings.EqualFold(c, t.Gene.Column) })
	return plan.Given(in, at, row)
}

// withoutGene returns the error for a row that needs a key, of which the text shows that it
// has no gene, or that of another table than the actual one that is named.
func withoutGene(plan *rewrite.Plan, in *rewrite.Insert, t *rule.Table) error {
	if t.Gene == nil || in.Refused {
		return nil
	}
	none := func(row int, reason string, err error) error {
		return &driver.GeneError{Row: row + 1, Table: in.Name, Column: t.Gene.Column, Reason: reason, Err: err}
	}
	if in.Source != nil {
		if !in.KeepsSource() && !slices.ContainsFunc(in.Source.Columns, func(c string) bool { return strings.EqualFold(c, t.Gene.Column) }) {
			return none(0, "the query's rows have no such column", nil)
		}
		return nil
	}
	for row := range in.Rows() {
		if kind, _ := in.Slot(row); kind != rewrite.SlotFill && kind != rewrite.SlotExpression {
			continue
		}
		kind, _, value := geneGiven(plan, in, t, row)
		switch {
		case kind == rewrite.GivenUnknown:
			return none(row, "the row does not tell its value: it is left out, DEFAULT or an expression", nil)
		case kind == rewrite.GivenParam, mayBeNumber(value):
			continue
		}
		gene, err := t.Gene.Of(value)
		if err != nil {
			return none(row, plain(errors.Unwrap(err)), err)
		}
		if err := otherShard(in, t, row, value, gene); err != nil {
			return err
		}
	}
	return nil
}

// otherShard returns the error for a row whose key alone decides on its table, where its
// gene says another one than is named.
func otherShard(in *rewrite.Insert, t *rule.Table, row int, value any, gene int64) error {
	shard := t.Sharding.Shard(in.Schema, in.Name)
	if shard == nil || t.ShardGuard != "refuse" || len(shard.Columns) != 1 || !strings.EqualFold(shard.Columns[0], t.Column) {
		return nil
	}
	const far = 1 << 52 // any number with gene 0
	place, here, err := shard.Place([]any{int64(far | gene)})
	if here {
		return nil
	}
	return &driver.WrongShardError{Row: row + 1, Columns: []string{t.Gene.Column}, Values: []any{value}, Table: in.Name, Meant: place, Err: err}
}

// mayBeNumber reports whether a value is a text that is a number in a column of
// integers.
func mayBeNumber(value any) bool {
	text, ok := value.(string)
	return ok && sqltext.ParseInteger(strings.TrimSpace(text), 10) != nil
}

// explainGenes says what the generated keys of an INSERT carry. Adjacent rows with the same
// share a line.
func explainGenes(w io.Writer, plan *rewrite.Plan, in *rewrite.Insert, t *rule.Table) {
	switch {
	case t.Gene == nil || in.Refused:
		return
	case in.Source != nil:
		fmt.Fprintf(w, "  the lowest %d bits of a generated key are %s, of its row\n", t.Gene.Bits, t.Gene)
		return
	}
	for first := 0; first < in.Rows(); {
		gene := geneFate(plan, in, t, first)
		last := first
		for last+1 < in.Rows() && geneFate(plan, in, t, last+1) == gene {
			last++
		}
		if gene != "" {
			fmt.Fprintf(w, "  %s: the lowest %d bits of a generated key are %s\n", rowsText(first, last), t.Gene.Bits, gene)
		}
		first = last + 1
	}
}

func geneFate(plan *rewrite.Plan, in *rewrite.Insert, t *rule.Table, row int) string {
	if kind, _ := in.Slot(row); kind != rewrite.SlotFill && kind != rewrite.SlotExpression && kind != rewrite.SlotParam {
		return ""
	}
	switch kind, param, value := geneGiven(plan, in, t, row); {
	case kind == rewrite.GivenParam:
		return fmt.Sprintf("%s, of argument %d", t.Gene, param+1)
	case kind == rewrite.GivenUnknown:
		return ""
	case mayBeNumber(value):
		return fmt.Sprintf("%s, of %q as the column holds it", t.Gene, value)
	default:
		gene, err := t.Gene.Of(value)
		if err != nil {
			return ""
		}
		return fmt.Sprintf("%d: %s", gene, t.Gene)
	}
}
