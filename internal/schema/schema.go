// Package schema reads what the tables of a database look like, and writes the
// statements that change the types of their columns. It writes nothing itself.
package schema

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/sqltoken"
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
		return sqltoken.QuoteIdentifier(t.Name)
	}
	return sqltoken.QuoteTable(t.Schema, t.Name)
}

// Shown is the table's name for output outside of quotes, as Quoted has it.
func (d *Database) Shown(t *Table) string {
	if t.Schema == d.Name {
		return sqltoken.Printable(t.Name)
	}
	return sqltoken.Printable(t.Schema) + "." + sqltoken.Printable(t.Name)
}

// Shown is the column's name for output outside of quotes.
func (co *Column) Shown() string { return sqltoken.Printable(co.Name) }

// Column finds a column by its name, without case; nil when there is none.
func (t *Table) Column(name string) *Column {
	return first(t.Columns, func(c *Column) bool { return strings.EqualFold(c.Name, name) })
}

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

// IsState reports whether the table has the columns of one in which generators and worker-ID
// assigners keep their state. Its name is configurable.
func (t *Table) IsState() bool {
	has := func(a, b string) bool { return t.Column(a) != nil && t.Column(b) != nil }
	return has("namespace", "worker_id") || has("biz_tag", "max_id") || has("id", "stub") && len(t.Columns) == 2
}

// Leads reports whether an index begins with the column, so that its maximum is found
// at once.
func (t *Table) Leads(column string) bool {
	return slices.ContainsFunc(t.Indexes, func(x *Index) bool { return strings.EqualFold(x.Columns[0], column) })
}

// ColumnOf is a column of a table.
type ColumnOf struct {
	Table  *Table
	Column *Column
}

// Change gives a column another type.
type Change struct {
	ColumnOf
	Type string // "bigint unsigned"
}

var intName = regexp.MustCompile(`^(?:tiny|small|medium|big)?int(?:eger)?`)

var displayWidth = regexp.MustCompile(`^((?:tiny|small|medium|big)?int)\(\d+\)`)

// plainType is a type without what does not matter to a foreign key.
func plainType(typ string) string {
	return strings.TrimSuffix(displayWidth.ReplaceAllString(strings.ToLower(typ), "$1"), " zerofill")
}

// Bigint is the type that a column of integers becomes, with its sign as it is.
func Bigint(c *Column) string {
	switch typ := strings.ToLower(c.Type); {
	case strings.Contains(typ, "zerofill"): // to its width
		return intName.ReplaceAllString(typ, "bigint")
	case strings.Contains(typ, "unsigned"):
		return "bigint unsigned"
	}
	return "bigint"
}

// Connected returns the columns that must have the type of one of these, which are
// among them: foreign keys lead from one to the next, in either direction.
func (d *Database) Connected(changes []Change) []Change {
	all := slices.Clone(changes)
	has := func(c ColumnOf) bool {
		return slices.ContainsFunc(all, func(known Change) bool { return known.ColumnOf == c })
	}
	for i := 0; i < len(all); i++ {
		for _, fk := range d.ForeignKeys {
			for j := range fk.Columns {
				child := ColumnOf{fk.Child, fk.Child.Column(fk.Columns[j])}
				parent := ColumnOf{fk.Parent, fk.Parent.Column(fk.ParentCols[j])}
				if child.Column == nil || parent.Column == nil {
					continue // the user may not see it
				}
				for _, pair := range [][2]ColumnOf{{child, parent}, {parent, child}} {
					if pair[0] == all[i].ColumnOf && !has(pair[1]) {
						all = append(all, Change{pair[1], plainType(all[i].Type)})
					}
				}
			}
		}
	}
	return all
}

// commonNames are those of keys that say nothing of their table.
var commonNames = []string{"id", "key", "pk", "uid", "uuid", "no", "num", "code"}

// Referring returns the names that a column has, by habit, which refers to the key of a
// table: the key's own name, or where that says nothing order_id for the id of t_order,
// or of orders, and category_id for that of categories.
func Referring(table, key string) (names []string) {
	if !slices.Contains(commonNames, strings.ToLower(key)) {
		return []string{key}
	}
	table = strings.ToLower(table)
	for _, prefix := range []string{"", "t_", "tb_", "tbl_"} {
		if rest, ok := strings.CutPrefix(table, prefix); ok && rest != "" {
			for _, base := range singulars(rest) {
				if name := base + "_" + key; !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// singulars returns a noun and what it may be the plural of.
func singulars(noun string) []string {
	all := []string{noun, strings.TrimSuffix(noun, "s"), strings.TrimSuffix(noun, "es")}
	if stem, ok := strings.CutSuffix(noun, "ies"); ok {
		all = append(all, stem+"y")
	}
	return all
}

// ReferringByName returns the columns of integers that by their name refer to the key of a
// table or of its logical table, whatever its case and underscores, other than the keys that the
// server counts, and views'.
func (d *Database) ReferringByName(t *Table, logical, key string) (list []ColumnOf) {
	names := append(Referring(logical, key), Referring(t.Name, key)...)
	for _, other := range d.Tables {
		if other.Outside || other.IsView || other == t {
			continue
		}
		for _, c := range other.Columns {
			isName := func(name string) bool { return strings.EqualFold(joined(name), joined(c.Name)) }
			if c.IsInteger() && !c.AutoIncrement && c.Generated == "" && slices.ContainsFunc(names, isName) {
				list = append(list, ColumnOf{other, c})
			}
		}
	}
	return list
}

// joined returns a name without underscores: order_id, orderId and OrderID name the same.
func joined(name string) string { return strings.ReplaceAll(name, "_", "") }

// Narrow returns the integer columns that are smaller than BIGINT and may hold a key of another
// table, although neither a foreign key nor AUTO_INCREMENT shows what they hold. TINYINT is left out
// as too small. skip reports the columns that are known.
func (d *Database) Narrow(skip func(ColumnOf) bool) (list []ColumnOf) {
	for _, t := range d.Tables {
		if t.Outside || t.IsView || t.IsState() {
			continue
		}
		for _, c := range t.Columns {
			of, most := ColumnOf{t, c}, c.Holds().High
			isSmall := c.IsInteger() && !c.AutoIncrement && c.Generated == "" && most > 1<<8 && most < 1<<62
			if isSmall && !d.IsLinked(of) && !skip(of) {
				list = append(list, of)
			}
		}
	}
	return list
}

// Names returns the names of columns with their types, once for tables that differ in the numbers at
// the end of their names.
func (d *Database) Names(columns []ColumnOf) (names []string) {
	for _, c := range columns {
		of := func(table string) string { return fmt.Sprintf("%s.%s (%s)", table, c.Column.Shown(), c.Column.Type) }
		base := strings.TrimRight(d.Shown(c.Table), "0123456789")
		isSibling := func(o ColumnOf) bool {
			return o.Table != c.Table && strings.TrimRight(d.Shown(o.Table), "0123456789") == base &&
				strings.EqualFold(o.Column.Name, c.Column.Name)
		}
		name := of(d.Shown(c.Table))
		if slices.ContainsFunc(columns, isSibling) {
			name = of(base + "…")
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Widen returns the statements that give columns other types, with those that foreign
// keys connect: the foreign keys are dropped before, and made again afterwards as
// they were. Everything else of the columns stays. A change to the type that a column
// has needs no statement. The connection is one that [PrepareSession] prepared.
func (d *Database) Widen(ctx context.Context, q Queryer, changes []Change) (statements []string, err error) {
	var modified []Change
	for _, c := range d.Connected(changes) {
		if plainType(c.Column.Type) != plainType(c.Type) {
			modified = append(modified, c)
		}
	}
	drop, change, add := clauses{}, clauses{}, clauses{}
	for _, fk := range d.ForeignKeys {
		if !slices.ContainsFunc(modified, func(c Change) bool { return fk.has(c.ColumnOf) }) {
			continue
		}
		drop.add(fk.Child, "DROP FOREIGN KEY "+sqltoken.QuoteIdentifier(fk.Name))
		defs, err := d.Definitions(ctx, q, fk.Child)
		if err != nil {
			return nil, err
		}
		add.add(fk.Child, "ADD "+fk.definition()+defs.Rules[strings.ToLower(fk.Name)])
	}
	for _, c := range modified {
		definition, err := d.definitionOf(ctx, q, c.ColumnOf)
		if err != nil {
			return nil, err
		}
		change.add(c.Table, "MODIFY "+sqltoken.QuoteIdentifier(c.Column.Name)+" "+withType(definition, c.Type))
	}
	for _, part := range []clauses{drop, change, add} {
		statements = append(statements, part.statements(d)...)
	}
	return statements, nil
}

// IsLinked reports whether a foreign key has the column.
func (d *Database) IsLinked(c ColumnOf) bool {
	return slices.ContainsFunc(d.ForeignKeys, func(fk *ForeignKey) bool { return fk.has(c) })
}

// WithoutAuto returns the statement that takes AUTO_INCREMENT off a column. MySQL runs
// it on a column that a foreign key has ([Database.IsLinked]) only with foreign_key_checks
// = 0, which is safe as its type stays.
func (d *Database) WithoutAuto(ctx context.Context, q Queryer, c Change) (string, error) {
	definition, err := d.definitionOf(ctx, q, c.ColumnOf)
	if err != nil {
		return "", err
	}
	if c.Type != "" && plainType(c.Column.Type) != plainType(c.Type) {
		definition = withType(definition, c.Type)
	}
	return "ALTER TABLE " + d.Quoted(c.Table) + " MODIFY " + sqltoken.QuoteIdentifier(c.Column.Name) + " " +
		withoutAutoIncrement(definition), nil
}

func (fk *ForeignKey) has(c ColumnOf) bool {
	isName := func(name string) bool { return strings.EqualFold(name, c.Column.Name) }
	named := func(t *Table, columns []string) bool { return t == c.Table && slices.ContainsFunc(columns, isName) }
	return named(fk.Child, fk.Columns) || named(fk.Parent, fk.ParentCols)
}

// definition returns the foreign key as a clause, without its rules.
func (fk *ForeignKey) definition() string {
	parent := sqltoken.QuoteIdentifier(fk.Parent.Name)
	if fk.Parent.Schema != fk.Child.Schema {
		parent = sqltoken.QuoteTable(fk.Parent.Schema, fk.Parent.Name)
	}
	list := func(names []string) string { return "(" + strings.Join(sqltoken.QuoteIdentifiers(names), ", ") + ")" }
	return "CONSTRAINT " + sqltoken.QuoteIdentifier(fk.Name) + " FOREIGN KEY " + list(fk.Columns) +
		" REFERENCES " + parent + " " + list(fk.ParentCols)
}

// definitionOf returns the definition of a column.
func (d *Database) definitionOf(ctx context.Context, q Queryer, c ColumnOf) (string, error) {
	defs, err := d.Definitions(ctx, q, c.Table)
	if err != nil {
		return "", err
	}
	definition := defs.Columns[strings.ToLower(c.Column.Name)]
	if definition == "" {
		err = fmt.Errorf("shardkey: SHOW CREATE TABLE does not show column %s of %s", c.Column.Shown(), d.Shown(c.Table))
	}
	return definition, err
}

// clauses are those of ALTER TABLE, by table.
type clauses map[*Table][]string

func (c clauses) add(t *Table, clause string) { c[t] = append(c[t], clause) }

// statements returns the statements in the order of the tables.
func (c clauses) statements(d *Database) (list []string) {
	for _, t := range d.Tables {
		if len(c[t]) > 0 {
			list = append(list, "ALTER TABLE "+d.Quoted(t)+" "+strings.Join(c[t], ", "))
		}
	}
	return list
}

// IsInteger reports whether a column's type is one of integers.
func (co *Column) IsInteger() bool { return intName.MatchString(strings.ToLower(co.Type)) }

// Holds returns which keys the column holds.
func (co *Column) Holds() *columntype.Type { return columntype.Parse(co.Type) }
