package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/spi"
)

// Rule is a checked sharding rule: which column of which table is filled by
// which generator. It is a description that holds nothing live, never
// changes, and may be shared by any number of connectors. Make one with
// [Load], [Parse] or [New]; [Rule.Open] refuses the zero Rule.
type Rule struct {
	file       string
	source     source // what it was read from; zero for a rule built in Go
	tables     []Table
	nodes      []written // of tables, in their order
	keyless    []string  // the logical tables without a key
	sources    []string  // the data sources of the sharded tables, sorted
	spread     string    // a sharded table that a databaseStrategy spreads over data sources that no data node names
	generators []makeSpec
	assigners  []makeSpec
	names      names
	warnings   []*Error
}

// Table is a logical table that has a key column.
type Table struct {
	// Logical is the logical table's name as written in the rule.
	Logical string
	// Column is the key column's name.
	Column string
	// GeneratorName is the generator's name in the rule, and GeneratorType its
	// type in upper case, empty for a generator built in Go.
	GeneratorName, GeneratorType string
	// Generator is the live generator: nil in [Rule.Tables], set in what
	// [Live.Lookup] returns.
	Generator spi.KeyGenerator
	// ExplicitKeys is how a NULL, 0, DEFAULT or empty string is handled that a
	// statement gives as key: "fill" or "keep".
	ExplicitKeys string
	// Consecutive reports whether the integer keys of one statement must be
	// consecutive, as LastInsertId's readers take them to be.
	Consecutive bool
	// Unlisted is how an INSERT is handled into an unlisted table that looks like one of
	// this table's: "refuse", "warn", "pass", or "" where that is the connection's to say.
	Unlisted string
	// ShardGuard is how a row is handled that does not belong in the actual table that its
	// INSERT names: "refuse", "warn" or "off".
	ShardGuard string
	// Gene is what the keys carry of another column of their rows; nil when they
	// carry nothing.
	Gene *Gene
	// Actual are the names of the first 16 actual tables, in the rule's order,
	// and ActualCount is how many actual tables there are.
	Actual      []string
	ActualCount int
	// Sharding says how the table's rows are spread over its actual tables; nil
	// when the rule does not say it.
	Sharding *Sharding
	// Patterns are the actual tables that may come at run time, as they are
	// written: t_order_${*}.
	Patterns []string
}

// Name returns the file's name, or the name that [Parse] was given.
func (r *Rule) Name() string { return r.file }

// Tables returns the tables that have a key column, in the rule's order.
func (r *Rule) Tables() []Table {
	tables := slices.Clone(r.tables)
	for i := range tables {
		tables[i] = tables[i].clone()
	}
	return tables
}

func (t Table) clone() Table {
	t.Actual, t.Patterns = slices.Clone(t.Actual), slices.Clone(t.Patterns)
	return t
}

// DataSources returns the names of the data sources in which the rule has tables
// with a key, sorted. It is empty when no data node names one.
func (r *Rule) DataSources() []string { return slices.Clone(r.sources) }

// Warnings returns what is likely wrong with the rule although it can be used:
// keys that are ignored, tables that cannot be listed, keys that would fill few
// of the shards. They stand in the rule's order.
func (r *Rule) Warnings() []*Error { return slices.Clone(r.warnings) }

// String describes the rule, one line a table, without any property's value.
func (r *Rule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rule %s", r.file)
	r.describeTables(&b)
	return b.String()
}

func (r *Rule) describeTables(b *strings.Builder) {
	for _, t := range r.tables {
		b.WriteString("\n  " + t.String())
	}
	for _, name := range r.keyless {
		b.WriteString("\n  table " + name + ": no key (nothing fills it)")
	}
}

// String describes the table in one line.
func (t Table) String() string {
	s := fmt.Sprintf("table %s: column %s from %s", t.Logical, t.Column, t.GeneratorName)
	if t.GeneratorType != "" && t.GeneratorType != t.GeneratorName {
		s += " (" + t.GeneratorType + ")"
	}
	if t.ExplicitKeys == "keep" {
		s += ", explicit keys kept"
	}
	if t.Consecutive {
		s += ", keys of a batch consecutive"
	}
	if t.Unlisted != "" {
		s += ", unlisted: " + t.Unlisted
	}
	if t.ShardGuard == "warn" || t.ShardGuard == "off" {
		s += ", shardGuard: " + t.ShardGuard
	}
	if t.Gene != nil {
		s += fmt.Sprintf(", whose lowest %d bits are %s", t.Gene.Bits, t.Gene)
	}
	for _, p := range t.Patterns {
		s += ", actual tables like " + p
	}
	switch {
	case t.ActualCount > 4:
		s += fmt.Sprintf(", %d actual tables: %s, …", t.ActualCount, strings.Join(t.Actual[:4], ", "))
	case t.ActualCount > 1 || t.ActualCount == 1 && t.Actual[0] != t.Logical:
		s += ", actual tables: " + strings.Join(t.Actual, ", ")
	}
	return s
}
