package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rule"
)

type tableCheck struct {
	*database
	logical *rule.Table
	actual  *schema.Table
	column  *schema.Column // nil when it does not exist
	keys    futureKeys
}

func (x *tableCheck) add(severity Severity, check, what, why, fix string) {
	f := Finding{Severity: severity, Check: check, What: what, Why: why, Fix: fix,
		Table: x.logical.Logical, Column: x.logical.Column, Actual: []string{x.schema.Shown(x.actual)}}
	x.database.add(f)
}

func (x *tableCheck) quoted() string { return x.schema.Quoted(x.actual) }

// alter returns an ALTER TABLE of the table, with the quoted name of its key column for %[1]s.
func (x *tableCheck) alter(format string, args ...any) string {
	args = append([]any{sqltoken.QuoteIdentifier(x.logical.Column)}, args...)
	return "ALTER TABLE " + x.quoted() + " " + fmt.Sprintf(format, args...) + ";"
}

func (x *tableCheck) grant(rights string) string {
	return x.server.grant(rights, x.actual.Schema, x.actual.Name)
}

// statements returns a fix of SQL, if the user may see the definitions that it is made of.
func (x *tableCheck) statements(list []string, err error) (fix string, other error) {
	switch {
	case refused(err):
		return "-- the user may not see the definitions that the statements need: " + trimPrefix(err), nil
	case err != nil || len(list) == 0:
		return "", err
	}
	return strings.Join(list, ";\n") + ";", nil
}

func (x *tableCheck) look() error {
	x.rights()
	switch {
	case x.actual.IsView:
		x.add(Info, "table", "it is a view", "its table is not examined; use that table in the rule: "+
			"INSERTs through a view with another name get no keys", "")
		return nil
	case x.column == nil:
		x.noColumn()
		return nil
	case x.column.Generated != "":
		x.add(Error, "key-column", "the server computes the column: "+sqltoken.Printable(x.column.Generated),
			"an INSERT can't set it; use another column in the rule", "")
		return nil
	}
	x.shardingColumns()
	x.uniqueness()
	x.trigger()
	for _, check := range []func() error{x.backEnds, x.width, x.autoIncrement, x.references, x.maximum} {
		if err := check(); refused(err) {
			x.add(Warning, "rights", "part of it cannot be examined: "+trimPrefix(err),
				"there may be problems that doctor can't see", x.grant("SELECT"))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// backEnds reports that the tables behind one of the Spider engine are not examined.
func (x *tableCheck) backEnds() error {
	if !x.actual.IsSpider() {
		return nil
	}
	names, err := x.schema.BackEnds(x.ctx, x.conn, x.actual)
	if err != nil {
		return err
	}
	x.add(Info, "table",
		"its engine is SPIDER, and the tables on its back ends were not examined: "+joined(names),
		"an INSERT fails if a back end's column can't hold the key",
		"-- also examine each back end, with its own DSN")
	return nil
}

func (x *tableCheck) rights() {
	for _, r := range []struct {
		right    string
		severity Severity
		why      string
	}{
		{"INSERT", Error, "no row can be inserted"},
		{"SELECT", Warning, "INSERTs without a column list, INSERT IGNORE and ON DUPLICATE KEY UPDATE " +
			"query the table, and fail"},
	} {
		if !x.server.grants.has(r.right, x.actual.Schema, x.actual.Name, x.logical.Column) {
			x.add(r.severity, "rights", x.server.lacks(r.right), r.why, x.grant(r.right))
		}
	}
}

func (x *tableCheck) noColumn() {
	const why = "an INSERT with a generated key fails"
	if len(x.actual.Columns) == 0 {
		x.add(Error, "key-column", "the user may not see the table's columns", why, x.grant("SELECT, INSERT"))
		return
	}
	x.add(Error, "key-column", "the key column does not exist", why,
		"-- set column in the rule, or add the column, and set the keys of existing rows:\n"+
			x.alter("ADD COLUMN %s %s NOT NULL FIRST", x.keys.sqlType()))
}

// shardingColumns checks that the columns exist by which the rule distributes the table's rows.
func (x *tableCheck) shardingColumns() {
	if x.logical.Sharding == nil {
		return
	}
	for _, name := range x.logical.Sharding.Columns {
		if x.actual.Column(name) == nil {
			x.add(Error, "sharding-column", "the sharding column "+name+" does not exist",
				"shardkey can't check that rows are inserted into the right table, and queries by the column fail",
				"-- set shardingColumn in the rule, or add the column")
		}
	}
}

func (x *tableCheck) uniqueness() {
	alone, with := x.actual.Uniqueness(x.column.Name)
	switch {
	case alone:
	case with != nil:
		x.add(Info, "unique",
			fmt.Sprintf("the key is unique only together with other columns: (%s)", joined(with)),
			"the server accepts duplicate keys; a table partitioned by another column allows no other index", "")
	default:
		fix := x.alter("ADD PRIMARY KEY (%s)")
		if x.actual.PrimaryKey() != nil {
			fix = x.alter("ADD UNIQUE KEY (%s)")
		}
		x.add(Warning, "unique", "no unique index has the key column",
			"the server accepts duplicate keys", fix)
	}
}

// width checks that the column's type holds the keys that will be generated.
func (x *tableCheck) width() error {
	unfit, soon := x.keys.unfit(x.column.Holds())
	if unfit == nil && soon == nil {
		x.collation()
		return nil
	}
	changes := x.schema.Connected([]schema.Change{x.keys.change(x.actual, x.column)})
	for _, c := range x.schema.ReferringByName(x.actual, x.logical.Logical, x.column.Name) {
		known := slices.ContainsFunc(changes, func(o schema.Change) bool { return o.ColumnOf == c })
		if now, later := x.keys.unfit(c.Column.Holds()); !known && !x.isKey(c) && (now != nil || later != nil) {
			changes = append(changes, x.keys.change(c.Table, c.Column))
		}
	}
	fix, err := x.statements(x.schema.Widen(x.ctx, x.conn, changes))
	if err != nil {
		return err
	}
	of := fmt.Sprintf("the column is %s, which cannot hold the key", x.column.Type)
	if unfit == nil {
		x.add(Warning, "key-type", fmt.Sprintf("%ss of generator %s from %s on", of, x.logical.GeneratorName, soon.from),
			"INSERTs are then refused", fix)
		return nil
	}
	x.add(Error, "key-type", fmt.Sprintf("%s %s of generator %s", of, shownKey(unfit), x.logical.GeneratorName),
		"shardkey refuses the INSERT: the server would refuse the key, or truncate all keys to the same value", fix)
	return nil
}

func shownKey(key any) string {
	literal, ok := sqltoken.AppendLiteral(nil, key)
	if !ok {
		return fmt.Sprint(key)
	}
	return string(literal)
}

// collation warns where keys that differ are equal to the column.
func (x *tableCheck) collation() {
	if !x.keys.caseMatters || !strings.HasSuffix(x.column.Collation, "_ci") {
		return
	}
	x.add(Warning, "key-type",
		fmt.Sprintf("the column's collation %s ignores case", x.column.Collation),
		"keys that differ only in case are duplicates to the server",
		x.alter("MODIFY %s %s CHARACTER SET ascii COLLATE ascii_bin NOT NULL", x.column.Type))
}

func (x *tableCheck) autoIncrement() error {
	auto := x.actual.AutoIncrement()
	if auto == nil {
		return nil
	}
	if auto != x.column {
		x.add(Info, "auto-increment", fmt.Sprintf("column %s, not the key, has AUTO_INCREMENT", auto.Shown()),
			"LastInsertId returns the value of that column; driver.WithKeys returns the keys", "")
		return nil
	}
	fix := ""
	if unfit, _ := x.keys.unfit(auto.Holds()); unfit == nil { // else its type comes first
		linked := schema.ColumnOf{Table: x.actual, Column: auto}
		statement, err := x.schema.WithoutAuto(x.ctx, x.conn, schema.Change{ColumnOf: linked, Type: auto.Type})
		if fix, err = x.statements([]string{statement}, err); err != nil {
			return err
		}
		if x.schema.IsLinked(linked) {
			fix = "SET foreign_key_checks = 0; " + fix + " SET foreign_key_checks = 1;"
		}
		fix += " -- when all programs insert through shardkey"
	}
	x.add(Info, "auto-increment", "the key column still has AUTO_INCREMENT",
		"other programs and LOAD DATA get MAX + 1 instead of an error, which can collide with a later key", fix)
	return nil
}

// references examines the columns that refer to the key, by a foreign key or by their name.
func (x *tableCheck) references() error {
	if unfit, _ := x.keys.unfit(x.column.Holds()); unfit != nil {
		return nil // they are widened with it
	}
	linked := map[*schema.Column]bool{}
	for _, fk := range x.schema.ForeignKeys {
		for i := range fk.Columns {
			c := fk.Child.Column(fk.Columns[i])
			if fk.Parent != x.actual || !strings.EqualFold(fk.ParentCols[i], x.column.Name) || c == nil {
				continue
			}
			linked[c] = true
			if err := x.reference(fk.Child, c, Error, "foreign-key", "the foreign key "+sqltoken.Printable(fk.Name)+" of"); err != nil {
				return err
			}
		}
	}
	for _, c := range x.schema.ReferringByName(x.actual, x.logical.Logical, x.column.Name) {
		if linked[c.Column] || x.isKey(c) {
			continue
		}
		if err := x.reference(c.Table, c.Column, Warning, "reference", "from its name a reference to the key:"); err != nil {
			return err
		}
	}
	return nil
}

// isKey reports whether a column is itself the key of a sharded table.
func (x *tableCheck) isKey(c schema.ColumnOf) bool {
	t := x.live.Lookup(c.Table.Schema, c.Table.Name)
	return t != nil && strings.EqualFold(t.Column, c.Column.Name)
}

func (x *tableCheck) reference(t *schema.Table, c *schema.Column, severity Severity, check, how string) error {
	unfit, _ := x.keys.unfit(c.Holds())
	if unfit == nil {
		return nil
	}
	fix, err := x.statements(x.schema.Widen(x.ctx, x.conn, []schema.Change{x.keys.change(t, c)}))
	if err != nil {
		return err
	}
	x.add(severity, check,
		fmt.Sprintf("%s column %s of %s is %s, which cannot hold the key %s",
			how, c.Shown(), x.schema.Shown(t), c.Type, shownKey(unfit)),
		"rows that refer to a new key cannot be stored, or are truncated", fix)
	return nil
}

// trigger reports triggers that may give rows another key.
func (x *tableCheck) trigger() {
	for _, tr := range x.triggers[[2]string{strings.ToLower(x.actual.Schema), strings.ToLower(x.actual.Name)}] {
		if strings.Contains(tr.body, strings.ToLower(x.column.Name)) {
			x.add(Info, "trigger", fmt.Sprintf("the trigger %s before INSERT names the key column", sqltoken.Printable(tr.name)),
				"it may change keys, so shardkey reads them from the table after each INSERT", "")
		}
	}
}

// maximum reads the greatest key of the table, and compares it with the keys that will be generated.
func (x *tableCheck) maximum() error {
	if !x.column.IsInteger() || !x.keys.isInteger ||
		!x.server.grants.has("SELECT", x.actual.Schema, x.actual.Name, x.column.Name) {
		return nil
	}
	if !x.actual.Leads(x.column.Name) {
		fix := ""
		if _, with := x.actual.Uniqueness(x.column.Name); with != nil { // else the unique index that is proposed is one
			fix = x.alter("ADD INDEX (%s)")
		}
		x.add(Info, "max-key", "no index begins with the key column, so the greatest key was not checked",
			"the query would read the whole table, as does any query by the key", fix)
		return nil
	}
	query := "SELECT MAX(" + sqltoken.QuoteIdentifier(x.column.Name) + ") FROM " + x.quoted()
	row, err := schema.Row(x.ctx, x.conn, query, 1)
	if err != nil {
		return err
	}
	key, err := strconv.ParseUint(row[0], 10, 64)
	if err != nil {
		return nil // no rows, or a negative key
	}
	x.note(key)
	if what, why, fix := x.keys.greatest(key, x.now()); what != "" {
		x.add(Error, "max-key", what, why, fix)
	}
	return nil
}

// note keeps the greatest key of a generator's tables.
func (x *tableCheck) note(key uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	name := strings.ToLower(x.logical.GeneratorName)
	if have, ok := x.newest[name]; !ok || key > have.key {
		x.newest[name] = newestKey{key, x.name, x.schema.Shown(x.actual), x.column.Holds().High}
	}
}
