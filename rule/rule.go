package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/spi"
)

// Rule is a checked sharding rule: which column of which table is filled by
// which generator. It is a description without anything live in it, never
// changes, and may be shared by any number of connectors. Make one with
// [Load], [Parse] or [New]; the zero Rule is refused by [Rule.Open].
type Rule struct {
	file       string
	tables     []table
	generators []makeSpec
	assigners  []makeSpec
	names      names
}

// table is one logical table that has a key column.
type table struct {
	name      word
	column    string
	generator int // index in Rule.generators
	fill      bool
	actual    []string // the first actual tables' names, to show
	count     int      // how many actual tables there are
}

// Name is the file's name, or the name that [Parse] was given.
func (r *Rule) Name() string { return r.file }

// TableInfo is what a rule understood of one logical table.
type TableInfo struct {
	Logical      string   // as the rule writes it
	Column       string   // the key column
	Generator    string   // the generator's name
	Type         string   // the generator's type, in upper case; empty for one made in Go
	FillExplicit bool     // whether NULL, 0, DEFAULT and '' are filled
	Actual       []string // the first 16 actual tables, in the rule's order
	ActualCount  int      // how many actual tables there are
}

// Tables lists the tables that have a key column, in the rule's order.
func (r *Rule) Tables() []TableInfo {
	infos := make([]TableInfo, 0, len(r.tables))
	for _, t := range r.tables {
		g := r.generators[t.generator]
		infos = append(infos, TableInfo{
			Logical: t.name.text, Column: t.column,
			Generator: g.name.text, Type: strings.ToUpper(g.typ.text),
			FillExplicit: t.fill, Actual: slices.Clone(t.actual), ActualCount: t.count,
		})
	}
	return infos
}

// String tells the whole rule, one line a table, without any property's value.
func (r *Rule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rule %s", r.file)
	for _, t := range r.Tables() {
		b.WriteString("\n  " + t.String())
	}
	return b.String()
}

// String tells the table in one line.
func (t TableInfo) String() string {
	s := fmt.Sprintf("table %s: column %s from %s", t.Logical, t.Column, t.Generator)
	if t.Type != "" && t.Type != t.Generator {
		s += " (" + t.Type + ")"
	}
	if !t.FillExplicit {
		s += ", explicit keys kept"
	}
	switch {
	case t.ActualCount > 4:
		s += fmt.Sprintf(", %d actual tables: %s, …", t.ActualCount, strings.Join(t.Actual[:4], ", "))
	case t.ActualCount > 1 || t.Actual[0] != t.Logical:
		s += ", actual tables: " + strings.Join(t.Actual, ", ")
	}
	return s
}

// Table is a table of live [Generators]: what an INSERT into it needs.
type Table struct {
	Logical string // the logical table's name, as the rule writes it
	Column  string // the key column's name
	// FillExplicit says that a NULL, 0, DEFAULT or empty text that is given for the
	// key is filled; otherwise it is kept.
	FillExplicit  bool
	GeneratorName string
	Generator     spi.KeyGenerator
}

// Health tells how the generators are, by their names, as far as they tell
// (spi.HealthReporter). Worker-id assigners that tell are there as
// "workerIdAssigners.NAME".
func (g *Generators) Health() map[string]spi.Health {
	health := map[string]spi.Health{}
	for i, spec := range g.rule.generators {
		if h, ok := g.generators[i].(spi.HealthReporter); ok {
			health[spec.name.text] = h.Health()
		}
	}
	g.assigners.each(func(spec makeSpec, a spi.WorkerIDAssigner) {
		if h, ok := a.(spi.HealthReporter); ok {
			health["workerIdAssigners."+spec.name.text] = h.Health()
		}
	})
	return health
}

// Describe tells the whole rule as it lives, for logs: one line for the rule,
// each generator, each worker-id assigner in use and each table. It shows no
// property's value but what generators tell of themselves (spi.Describer).
func (g *Generators) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rule %s", g.rule.file)
	for i, spec := range g.rule.generators {
		fmt.Fprintf(&b, "\n  key generator %s: %s", spec.name.text, describe(spec, g.generators[i]))
	}
	g.assigners.each(func(spec makeSpec, a spi.WorkerIDAssigner) {
		fmt.Fprintf(&b, "\n  worker-id assigner %s: %s", spec.name.text, describe(spec, a))
	})
	for _, t := range g.rule.Tables() {
		b.WriteString("\n  " + t.String())
	}
	return b.String()
}

func describe(spec makeSpec, v any) string {
	if d, ok := v.(spi.Describer); ok {
		return d.Describe()
	}
	if spec.ready != nil {
		return fmt.Sprintf("%T", v)
	}
	return strings.ToUpper(spec.typ.text)
}
