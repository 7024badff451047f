// Package schema reads what the tables of a database look like, and writes the
// statements that change the types of their columns. It writes nothing itself.
package schema

import (
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltext"
)

// Database is what one or more schemas of a server hold, as far as the user may
// see it.
type Database struct {
	// Name is the connection's own schema, empty for none.
	Name   string
	Tables []*Table // by schema and name
	// ForeignKeys are those of the tables, and those of other schemas' tables
	// that reference them.
	ForeignKeys []*ForeignKey
	// Shards are those of the own schema where the server is Vitess, which shows the
	// tables of one of them.
	Shards []string

	byName      map[[2]string]*Table // in lower case
	definitions map[*Table]Definitions
}

// Table is a table or a view.
type Table struct {
	Schema, Name string
	Engine       string
	IsView       bool
	Partitioned  bool
	Columns      []*Column
	Indexes      []*Index
	// Outside is a table of a schema that was not asked for, which is here because a
	// foreign key connects it.
	Outside bool
}

// IsSpider reports whether the table is the head of one whose rows are on other servers.
func (t *Table) IsSpider() bool { return strings.EqualFold(t.Engine, "SPIDER") }

// Column is a column of a table.
type Column struct {
	Name          string
	Type          string // as the server shows it: bigint(20) unsigned
	Collation     string // of texts
	Nullable      bool
	AutoIncrement bool
	Generated     string // the expression of a generated column
}

// Index is an index of a table.
type Index struct {
	Name    string
	Unique  bool
	Columns []string // in order; empty for an expression
}

// ForeignKey is a constraint of a table, the child.
type ForeignKey struct {
	Name       string
	Child      *Table
	Columns    []string
	Parent     *Table
	ParentCols []string
}

// Table finds a table by its name, without case; nil when there is none.
func (d *Database) Table(schema, name string) *Table {
	return d.byName[[2]string{strings.ToLower(schema), strings.ToLower(name)}]
}

// Quoted is the table's name for a statement on the connection: without its schema
// where that is the connection's own.
func (d *Database) Quoted(t *Table) string {
	if t.Schema == d.Name {
		return sqltext.QuoteIdentifier(t.Name)
	}
	return sqltext.QuoteTable(t.Schema, t.Name)
}

// Shown is the table's name for people, as Quoted has it.
func (d *Database) Shown(t *Table) string {
	if t.Schema == d.Name {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

// Column finds a column by its name, without case; nil when there is none.
func (t *Table) Column(name string) *Column {
	return first(t.Columns, func(c *Column) bool { return strings.EqualFold(c.Name, name) })
}

// first returns the first of a list that is as wanted, nil when there is none.
func first[T any](list []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}

// PrimaryKey returns the columns of the primary key, nil when there is none.
func (t *Table) PrimaryKey() []string {
	if x := first(t.Indexes, func(x *Index) bool { return x.Name == "PRIMARY" }); x != nil {
		return x.Columns
	}
	return nil
}

// AutoIncrement returns the column with AUTO_INCREMENT, nil when there is none.
func (t *Table) AutoIncrement() *Column {
	return first(t.Columns, func(c *Column) bool { return c.AutoIncrement })
}

// Uniqueness says what keeps the values of a column apart: alone is an index of
// the column by itself; else with has the columns of the shortest unique index that
// begins with it, or any that has it; nil when there is none.
func (t *Table) Uniqueness(column string) (alone bool, with []string) {
	for _, x := range t.Indexes {
		switch has := slices.ContainsFunc(x.Columns, func(c string) bool { return strings.EqualFold(c, column) }); {
		case !x.Unique || !has:
		case len(x.Columns) == 1:
			return true, nil
		case with == nil || len(x.Columns) < len(with):
			with = x.Columns
		}
	}
	return false, with
}

// Leads reports whether an index begins with the column, so that its maximum is found
// at once.
func (t *Table) Leads(column string) bool {
	return slices.ContainsFunc(t.Indexes, func(x *Index) bool { return strings.EqualFold(x.Columns[0], column) })
}
