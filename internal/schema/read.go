package schema

import (
	"cmp"
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Queryer is a *sql.Conn or a *sql.DB.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Read reads the connection's own schema and the others that are named. Views, and
// tables that the user has no right on, have no columns.
func Read(ctx context.Context, q Queryer, others ...string) (*Database, error) {
	d := &Database{byName: map[[2]string]*Table{}, definitions: map[*Table]Definitions{}}
	own, err := Row(ctx, q, "SELECT DATABASE()", 1)
	if err != nil {
		return nil, err
	}
	d.Name = own[0]
	var schemas []string
	for _, name := range append([]string{d.Name}, others...) {
		if name != "" && !slices.ContainsFunc(schemas, func(s string) bool { return strings.EqualFold(s, name) }) {
			schemas = append(schemas, name)
		}
	}
	if len(schemas) == 0 {
		return d, nil
	}
	for _, step := range []func(context.Context, Queryer, string) error{d.readTables, d.readForeignKeys, d.readIndexes} {
		for _, schema := range schemas {
			if err := step(ctx, q, schema); err != nil {
				return nil, err
			}
		}
	}
	for _, schema := range d.withOutside(schemas) {
		if err := d.readColumns(ctx, q, schema); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(d.Tables, func(a, b *Table) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
	d.readShards(ctx, q)
	return d, ctx.Err()
}

// Rows calls each with the columns of each row of a query, NULL as an empty string.
func Rows(ctx context.Context, q Queryer, query string, each func(row []string)) error {
	return namedRows(ctx, q, query, func(_, row []string) { each(row) })
}

// Row returns the first n columns of a query's last row, which are empty if there is none.
func Row(ctx context.Context, q Queryer, query string, n int) ([]string, error) {
	last := make([]string, n)
	err := Rows(ctx, q, query, func(row []string) { copy(last, row) })
	return last, err
}

// namedRows is Rows with the names of the columns.
func namedRows(ctx context.Context, q Queryer, query string, each func(names, row []string)) error {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	values, fields, row := make([]sql.NullString, len(names)), make([]any, len(names)), make([]string, len(names))
	for i := range values {
		fields[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(fields...); err != nil {
			return err
		}
		for i, v := range values {
			row[i] = v.String
		}
		each(names, row)
	}
	return rows.Err()
}

// Literal is a text for a statement, the same in every sql_mode.
func Literal(text string) string {
	literal, _ := sqltoken.AppendLiteral(nil, text)
	return string(literal)
}

func (d *Database) add(t *Table) *Table {
	d.Tables = append(d.Tables, t)
	d.byName[[2]string{strings.ToLower(t.Schema), strings.ToLower(t.Name)}] = t
	return t
}

// The queries of information_schema compare the schema by =, and for one schema each:
// vtgate finds nothing by IN or OR. Its rows name the database of a shard in place of
// the schema, so the name that was asked for is the one that counts.

func (d *Database) readTables(ctx context.Context, q Queryer, schema string) error {
	return Rows(ctx, q, "SELECT TABLE_NAME, TABLE_TYPE, ENGINE, CREATE_OPTIONS"+
		" FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+Literal(schema),
		func(row []string) {
			if row[1] == "SEQUENCE" || strings.HasPrefix(row[1], "TEMPORARY") {
				return
			}
			d.add(&Table{
				Schema: schema, Name: row[0], IsView: strings.HasSuffix(row[1], "VIEW"), Engine: row[2],
				Partitioned: strings.Contains(row[3], "partitioned"),
			})
		})
}

// readForeignKeys reads those of a schema's tables and those of other schemas that
// reference it, and adds the other tables that they connect.
func (d *Database) readForeignKeys(ctx context.Context, q Queryer, schema string) error {
	for _, column := range []string{"TABLE_SCHEMA", "REFERENCED_TABLE_SCHEMA"} {
		known := map[[3]string]*ForeignKey{}
		for _, fk := range d.ForeignKeys {
			known[[3]string{fk.Child.Schema, fk.Child.Name, fk.Name}] = nil // it is complete
		}
		err := Rows(ctx, q, "SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME,"+
			" REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE"+
			" WHERE REFERENCED_TABLE_NAME IS NOT NULL AND "+column+" = "+Literal(schema)+
			" ORDER BY TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION",
			func(row []string) {
				asked := row[0]
				if column != "TABLE_SCHEMA" {
					asked = row[4]
				}
				for _, i := range []int{0, 4} {
					if row[i] == asked {
						row[i] = schema
					}
				}
				key := [3]string{row[0], row[1], row[2]}
				fk, ok := known[key]
				if !ok {
					fk = &ForeignKey{Name: row[2], Child: d.orOutside(row[0], row[1]), Parent: d.orOutside(row[4], row[5])}
					known[key] = fk
					d.ForeignKeys = append(d.ForeignKeys, fk)
				}
				if fk != nil {
					fk.Columns, fk.ParentCols = append(fk.Columns, row[3]), append(fk.ParentCols, row[6])
				}
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// orOutside finds a table, or adds one that a foreign key connects.
func (d *Database) orOutside(schema, name string) *Table {
	if t := d.Table(schema, name); t != nil {
		return t
	}
	return d.add(&Table{Schema: schema, Name: name, Outside: true})
}

// withOutside adds the schemas of the tables that are there for a foreign key.
func (d *Database) withOutside(schemas []string) []string {
	all := slices.Clone(schemas)
	for _, t := range d.Tables {
		if t.Outside && !slices.Contains(all, t.Schema) {
			all = append(all, t.Schema)
		}
	}
	return all
}

// readColumns reads the columns of a schema's tables.
func (d *Database) readColumns(ctx context.Context, q Queryer, schema string) error {
	return namedRows(ctx, q, "SELECT * FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "+Literal(schema)+
		" ORDER BY TABLE_NAME, ORDINAL_POSITION",
		func(names, row []string) {
			of := map[string]string{}
			for i, name := range names {
				of[strings.ToUpper(name)] = row[i]
			}
			if t := d.Table(schema, of["TABLE_NAME"]); t != nil {
				t.Columns = append(t.Columns, &Column{
					Name: of["COLUMN_NAME"], Type: of["COLUMN_TYPE"], Collation: of["COLLATION_NAME"],
					Nullable: of["IS_NULLABLE"] == "YES", Generated: of["GENERATION_EXPRESSION"],
					AutoIncrement: strings.Contains(strings.ToLower(of["EXTRA"]), "auto_increment"),
				})
			}
		})
}

func (d *Database) readIndexes(ctx context.Context, q Queryer, schema string) error {
	return Rows(ctx, q, "SELECT TABLE_NAME, INDEX_NAME, NON_UNIQUE, COLUMN_NAME"+
		" FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = "+Literal(schema)+
		" ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX",
		func(row []string) {
			t := d.Table(schema, row[0])
			if t == nil {
				return
			}
			last := len(t.Indexes) - 1
			if last < 0 || t.Indexes[last].Name != row[1] {
				t.Indexes = append(t.Indexes, &Index{Name: row[1], Unique: row[2] == "0"})
				last++
			}
			x := t.Indexes[last]
			x.Columns = append(x.Columns, row[3])
		})
}

// readShards asks for Vitess' shards of the own schema. Other servers refuse the
// statement, and have none.
func (d *Database) readShards(ctx context.Context, q Queryer) {
	_ = Rows(ctx, q, "SHOW VITESS_SHARDS", func(row []string) {
		keyspace, shard, found := strings.Cut(row[0], "/")
		if found && strings.EqualFold(keyspace, d.Name) {
			d.Shards = append(d.Shards, shard)
		}
	})
}

// BackEnds are the servers that hold the rows of a table of the Spider engine, as its
// definition names them; nil for other tables.
func (d *Database) BackEnds(ctx context.Context, q Queryer, t *Table) (names []string, err error) {
	if !t.IsSpider() {
		return nil, nil
	}
	defs, err := d.Definitions(ctx, q, t)
	for _, m := range spiderServer.FindAllStringSubmatch(defs.Text, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names, err
}

var spiderServer = regexp.MustCompile(`(?i)\b(?:srv|server|remote_server|host)\s*=?\s*["']([^"']+)["']`)

// PrepareSession makes SHOW CREATE TABLE of a connection write names and texts in
// the one way that this package reads.
func PrepareSession(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SET SESSION sql_mode = ''")
	if err == nil {
		_, _ = conn.ExecContext(ctx, "SET SESSION sql_quote_show_create = 1") // the default; not every server has it
	}
	return err
}

// Definitions are the parts of a table's definition that a statement repeats, by their names in
// lower case.
type Definitions struct {
	Columns map[string]string // "bigint NOT NULL COMMENT 'x'"
	Rules   map[string]string // of foreign keys: " ON DELETE CASCADE", or ""
	Text    string            // of SHOW CREATE TABLE
}

// Definitions reads those of a table, once, on a connection that [PrepareSession] prepared.
func (d *Database) Definitions(ctx context.Context, q Queryer, t *Table) (Definitions, error) {
	if defs, known := d.definitions[t]; known {
		return defs, nil
	}
	row, err := Row(ctx, q, "SHOW CREATE TABLE "+sqltoken.QuoteTable(t.Schema, t.Name), 2)
	if err != nil {
		return Definitions{}, err
	}
	defs := Definitions{columnsIn(row[1]), map[string]string{}, row[1]}
	err = Rows(ctx, q, "SELECT CONSTRAINT_NAME, DELETE_RULE, UPDATE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS"+
		" WHERE CONSTRAINT_SCHEMA = "+Literal(t.Schema)+" AND TABLE_NAME = "+Literal(t.Name),
		func(row []string) {
			defs.Rules[strings.ToLower(row[0])] = onChange("DELETE", row[1]) + onChange("UPDATE", row[2])
		})
	if err == nil {
		d.definitions[t] = defs
	}
	return defs, err
}

// onChange returns the clause of a foreign key's rule, without the default: NO ACTION and RESTRICT are
// the same to the servers.
func onChange(event, rule string) string {
	if rule == "CASCADE" || strings.HasPrefix(rule, "SET ") {
		return " ON " + event + " " + rule
	}
	return ""
}

// columnsIn returns the columns' definitions in the text of SHOW CREATE TABLE, in which they come
// first. A name may have any characters, line feeds too. Foreign keys aren't read here, since
// MariaDB doesn't double the backquotes of their names.
func columnsIn(text string) map[string]string {
	columns := map[string]string{}
	var name sqltoken.Token // of the column that is read; none before the first
	depth := 0
	lx := sqltoken.NewLexer(text, 0, sqltoken.UTF8)
	for t := lx.Next(); t.Kind != sqltoken.EOF && t.Kind != sqltoken.Bad; t = lx.Next() {
		switch word := text[t.Start:t.End]; {
		case word == "(":
			depth++
		case word == ")":
			depth--
		}
		ends := depth == 0 || depth == 1 && text[t.Start:t.End] == ","
		switch {
		case depth == 1 && name.End == 0 && t.Kind == sqltoken.Quoted:
			name = t
		case depth == 1 && name.End == 0 && text[t.Start:t.End] != "(":
			return columns
		case ends && name.End > 0:
			column := sqltoken.UnquoteIdentifier(text[name.Start:name.End])
			columns[strings.ToLower(column)] = strings.TrimSpace(text[name.End:t.Start])
			name = sqltoken.Token{}
		}
	}
	return columns
}

var (
	typeAtStart = regexp.MustCompile(`^\w+(?:\([^)]*\))?(?: unsigned)?(?: zerofill)?`)
	autoWord    = regexp.MustCompile(` AUTO_INCREMENT\b`)
	inTexts     = regexp.MustCompile(`'(?:[^'\\]|\\.|'')*'`)
)

// withType returns a column's definition with another type, and all else as it is.
func withType(definition, typ string) string {
	if end := typeAtStart.FindStringIndex(definition); end != nil {
		return typ + definition[end[1]:]
	}
	return definition
}

func withoutAutoIncrement(definition string) string {
	outside := inTexts.ReplaceAllStringFunc(definition, func(text string) string { return strings.Repeat("x", len(text)) })
	if at := autoWord.FindStringIndex(outside); at != nil {
		return definition[:at[0]] + definition[at[1]:]
	}
	return definition
}
