package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/policy"
	"github.com/shardkey/shardkey/spi"
)

// Rule is a checked sharding rule. It specifies the key column of each table and the generator of
// its keys. A Rule never changes, has no connections or goroutines, and may be shared by any number
// of connectors. Make one with [Load], [Parse] or [New]. [Rule.Open] returns an error for the zero
// Rule.
type Rule struct {
	file       string
	source     source // zero for a rule built in Go
	tables     []Table
	nodes      []written // parallel to tables
	keyless    []string  // logical tables without a key
	sources    []string  // data sources of the sharded tables, sorted
	spread     string    // a table with a databaseStrategy over data sources that no data node names, or ""
	generators components
	assigners  components

	index    tableIndex
	warnings []*Error
	hash     string
}

// Table is a logical table that has a key column.
type Table struct {
	// Logical is the name of the logical table as the rule spells it.
	Logical string
	// Column is the key column's name.
	Column string
	// GeneratorName is the name of the generator in the rule. GeneratorType is its type in upper
	// case, or "" for a generator built in Go.
	GeneratorName, GeneratorType string
	// Generator is the open generator. It is set in the tables that [Live.Lookup] returns, and nil
	// in [Rule.Tables].
	Generator spi.KeyGenerator
	// ExplicitKeys specifies how to handle a NULL, 0, DEFAULT or empty string as the key of a row:
	// "fill" or "keep". See [KeyConfig].
	ExplicitKeys string
	// Consecutive reports whether the integer keys of one statement must be consecutive. Programs
	// that compute keys from LastInsertId rely on that.
	Consecutive bool
	// Unlisted specifies how to handle an INSERT into an unlisted table with a name like this
	// table's: "refuse", "warn" or "pass"; see [KeyConfig].
	Unlisted string
	// ShardGuard specifies how to handle a row that doesn't belong in the actual table that its
	// INSERT names: "refuse", "warn" or "off".
	ShardGuard string
	// ShardBits describes the shard bits of the keys. It is nil if the keys have none.
	ShardBits *ShardBits
	// Actual are the names of the first 16 actual tables, in the rule's order. ActualCount is the
	// number of all actual tables.
	Actual      []string
	ActualCount int
	// Sharding describes how the table's rows are distributed over its actual tables. It is nil if
	// the rule doesn't specify that.
	Sharding *Sharding
	// Patterns are the data nodes for tables that may be created at run time, as written, for
	// example t_order_${*}.
	Patterns []string
}

// Name returns the path given to [Load] or the name given to [Parse], or "rule" for a rule from
// [New].
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

// DataSources returns the names of the data sources that contain tables with a key, sorted. It is
// empty if no data node names a data source.
func (r *Rule) DataSources() []string { return slices.Clone(r.sources) }

// Warnings returns probable mistakes in the rule, in the order of the file. Examples are ignored
// keys, tables that can't be listed, and tables that no row reaches.
func (r *Rule) Warnings() []*Error { return slices.Clone(r.warnings) }

// String describes the rule, with one line for each table. It contains no property values.
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
		b.WriteString("\n  table " + name + ": no generated key")
	}
}

// String describes the table in one line.
func (t Table) String() string {
	s := fmt.Sprintf("table %s: column %s from %s", t.Logical, t.Column, t.GeneratorName)
	if t.GeneratorType != "" && t.GeneratorType != t.GeneratorName {
		s += " (" + t.GeneratorType + ")"
	}
	if t.ExplicitKeys == policy.Keep {
		s += ", explicit keys kept"
	}
	if t.Consecutive {
		s += ", consecutive keys in a batch"
	}
	if t.Unlisted != "" && t.Unlisted != defaultUnlisted(t.ActualCount > 1 || len(t.Patterns) > 0) {
		s += ", unlisted: " + t.Unlisted
	}
	if t.ShardGuard == policy.Warn || t.ShardGuard == policy.Off {
		s += ", shardGuard: " + t.ShardGuard
	}
	if t.ShardBits != nil {
		s += fmt.Sprintf(", shard bits: lowest %d, %s", t.ShardBits.Bits, t.ShardBits)
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
