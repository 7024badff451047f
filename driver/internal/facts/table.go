package facts

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Table is what is known of a table. It doesn't change.
type Table struct {
	*Reading
	// Opaque: its triggers are unknown. It is a view, or the server didn't answer. Conclusions about
	// its rows must come from the rows.
	Opaque bool
	// Versioned: MariaDB keeps the history of its rows.
	Versioned bool

	triggers []trigger
	// mayHaveOther: a column that the server doesn't show may have AUTO_INCREMENT.
	mayHaveOther bool
	assumed      bool
	unanswered   bool
	zones        []*time.Location
	columns      []*Column
	// absent stands for a column that the server doesn't show.
	absent atomic.Pointer[Column]
}

type trigger struct{ timing, event, body string }

// Column returns the facts about a column.
func (t *Table) Column(name string) *Column {
	for _, c := range t.columns {
		if c.Field == name {
			return c
		}
	}
	for _, c := range t.columns {
		if strings.EqualFold(c.Field, name) {
			return c
		}
	}
	c := t.absent.Load()
	if c == nil || c.Field != name {
		c = &Column{Field: name, Type: columntype.Parse("")}
		t.complete(c)
		t.absent.Store(c)
	}
	return c
}

// complete sets the facts about the table that affect the column.
func (t *Table) complete(c *Column) {
	c.Zones, c.Assumed, c.Unanswered, c.Versioned = t.zones, t.assumed, t.unanswered, t.Versioned
	c.HasTriggers, c.Triggered, c.MaySkip = t.Opaque || len(t.triggers) > 0, t.Opaque, t.Opaque
	for _, of := range t.triggers {
		c.ReadsLastID = c.ReadsLastID || sqltoken.MentionsLastInsertID(of.body)
		if of.timing == "BEFORE" && strings.Contains(of.event, "INSERT") {
			c.Triggered = c.Triggered || ContainsName(of.body, c.Field)
			c.MaySkip = c.MaySkip || maySkip.MatchString(of.body) || sqltoken.MayCallFunctions(of.body)
		}
	}
	for _, other := range t.columns {
		c.OtherHasAutoIncrement = c.OtherHasAutoIncrement || other != c && other.AutoIncrement
	}
	c.MayHaveOther = !c.OtherHasAutoIncrement && !c.AutoIncrement && (t.mayHaveOther || t.Opaque)
	c.Plain = !c.OtherHasAutoIncrement && !c.MayHaveOther && !c.Triggered && !c.ReadsLastID && c.HoldsAll()
}

// Types returns the types of the columns, by their names in lower case.
func (t *Table) Types() map[string]string {
	types := map[string]string{}
	for _, c := range t.columns {
		types[strings.ToLower(c.Field)] = c.Text
	}
	return types
}

// as returns the facts as those of another reading.
func (t *Table) as(r *Reading) *Table {
	return &Table{Reading: r, Opaque: t.Opaque, Versioned: t.Versioned, unanswered: t.unanswered, triggers: t.triggers, mayHaveOther: t.mayHaveOther,
		assumed: t.assumed, zones: t.zones, columns: t.columns}
}

// Server is the session that asks about a table.
type Server interface {
	// Rows calls each for every row of a query. The row's values are valid until each returns.
	Rows(ctx context.Context, query string, each func(row []driver.Value)) error
	// IsFatal reports whether an error isn't the server's answer.
	IsFatal(ctx context.Context, err error) bool
	// ShowsTables reports whether the server has the information_schema of MySQL or MariaDB.
	ShowsTables(ctx context.Context) (bool, error)
	// HasOwnTables reports whether the session may have temporary tables.
	HasOwnTables() bool
	// Assumes reports whether there is no server. The table's columns then store values as they are
	// written. The table's database is empty if the statement names none.
	Assumes(of Name) bool
	// TimeZones are the possible time zones of the times in arguments.
	TimeZones() []*time.Location
}

// learner builds a Table from a server's answers.
type learner struct {
	*Table
	server  Server
	tableIs string // TABLE_TYPE of information_schema; empty if there is no such table
	hasKey  bool   // the table shows a primary key
	missing bool   // the server says that there is no such table
}

// Learn asks a server about the table that a statement names. schema is empty if the statement names
// none. An error isn't about the table. The facts are remembered in the entry, unless the server didn't
// answer.
func Learn(ctx context.Context, s Server, e *Entry, schema, name string) (*Table, error) {
	t := &Table{Reading: e.Begin(), assumed: s.Assumes(Name{schema, name}), zones: s.TimeZones()}
	if t.assumed {
		return t, nil
	}
	l := &learner{Table: t, server: s}
	answered, err := l.ask(ctx, schema, name)
	if err != nil && s.IsFatal(ctx, err) {
		return nil, err
	}
	t.Opaque, t.unanswered = t.Opaque || !answered, !answered && !l.missing
	for _, c := range t.columns {
		t.complete(c)
	}
	if answered {
		e.Put(t)
	}
	return t, nil
}

// ask asks in the way that the server supports, and reports whether it answered.
func (l *learner) ask(ctx context.Context, schema, name string) (answered bool, err error) {
	switch lists, err := l.server.ShowsTables(ctx); {
	case err != nil:
		return false, err
	case lists:
		return l.listed(ctx, schema, name)
	}
	return l.shown(ctx, schema, name)
}

// rows calls each for every row of a query, and reports whether the server answered.
func (l *learner) rows(ctx context.Context, query string, each func(row []driver.Value)) (bool, error) {
	err := l.server.Rows(ctx, query, each)
	l.missing = l.missing || sqlerr.Is(err, sqlerr.UnknownDatabase, sqlerr.UnknownTable)
	if err != nil && l.server.IsFatal(ctx, err) {
		return false, err
	}
	return err == nil, nil
}

// listed asks MySQL or MariaDB by one query, whose answer depends on no variable of the session: the
// LIMITs precede sql_select_limit, and bytes aren't converted to character_set_results. SHOW is
// subject to both.
func (l *learner) listed(ctx context.Context, schema, name string) (answered bool, err error) {
	answered, err = l.rows(ctx, listing(schema, name), l.add)
	if !answered || err != nil {
		return false, err
	}
	if l.server.HasOwnTables() { // which information_schema doesn't have
		listed := l.columns
		l.columns = nil
		if answered, err = l.showColumns(ctx, schema, name); !answered || err != nil {
			return false, err
		}
		if n := len(l.columns); n == 0 || n < len(listed) && slices.EqualFunc(listed[:n], l.columns, (*Column).isSame) {
			return false, nil // sql_select_limit has hidden columns
		}
		l.mayHaveOther = !slices.EqualFunc(listed, l.columns, (*Column).isSame)
	} else if l.tableIs == "" {
		return false, nil
	}
	l.Versioned = l.tableIs == "SYSTEM VERSIONED"
	l.Opaque = strings.HasSuffix(l.tableIs, "VIEW")
	// A generated invisible primary key of MySQL has AUTO_INCREMENT, and a session may hide it.
	l.mayHaveOther = l.mayHaveOther || l.Opaque || !l.hasKey && len(l.columns) > 0
	return true, nil
}

// Kinds of rows of a listing.
const (
	tableRow   = "1"
	columnRow  = "2"
	triggerRow = "3"
)

// listing returns the query for a table, its columns and its triggers.
func listing(schema, name string) string {
	const most = " LIMIT 10000)"
	of := func(schemaColumn, nameColumn string, order ...string) string {
		database := "DATABASE()"
		if schema != "" {
			database = literal(schema)
		}
		return " WHERE " + schemaColumn + " = " + database + " AND " + nameColumn + " = " + literal(name) + strings.Join(order, "") + most
	}
	return "(SELECT CAST(" + tableRow + " AS BINARY), CAST(TABLE_TYPE AS BINARY), NULL c3, NULL c4, NULL c5, NULL c6, NULL c7 FROM information_schema.TABLES" +
		of("TABLE_SCHEMA", "TABLE_NAME") +
		" UNION ALL (SELECT CAST(" + columnRow + " AS BINARY), CAST(COLUMN_NAME AS BINARY), CAST(COLUMN_TYPE AS BINARY)," +
		" CAST(COLLATION_NAME AS BINARY), CAST(IS_NULLABLE AS BINARY), CAST(COLUMN_KEY AS BINARY), CAST(EXTRA AS BINARY)" +
		" FROM information_schema.COLUMNS" + of("TABLE_SCHEMA", "TABLE_NAME", " ORDER BY ORDINAL_POSITION") +
		" UNION ALL (SELECT CAST(" + triggerRow + " AS BINARY), CAST(ACTION_TIMING AS BINARY), CAST(EVENT_MANIPULATION AS BINARY)," +
		" CAST(ACTION_STATEMENT AS BINARY), NULL, NULL, NULL FROM information_schema.TRIGGERS" +
		of("EVENT_OBJECT_SCHEMA", "EVENT_OBJECT_TABLE") + " LIMIT 30000"
}

func literal(name string) string {
	quoted, _ := sqltoken.AppendLiteral(nil, name)
	return string(quoted)
}

// add adds a row of a listing.
func (l *learner) add(row []driver.Value) {
	if len(row) != 7 {
		return
	}
	switch base.Text(row[0]) {
	case tableRow:
		l.tableIs = base.Text(row[1])
	case columnRow:
		l.hasKey = l.hasKey || base.Text(row[5]) == "PRI"
		l.addColumn(base.Text(row[1]), base.Text(row[2]), base.Text(row[3]), base.Text(row[4]), base.Text(row[6]))
	case triggerRow:
		l.triggers = append(l.triggers, trigger{base.Text(row[1]), base.Text(row[2]), base.Text(row[3])})
	}
}

func (l *learner) addColumn(name, shown, collation, null, extra string) {
	c := &Column{Field: name, Collation: collation, NotNull: null == "NO",
		AutoIncrement: strings.Contains(strings.ToLower(extra), "auto_increment")}
	c.setType(shown)
	l.columns = append(l.columns, c)
}

// isSame reports whether two answers about a column are the same.
func (c *Column) isSame(other *Column) bool { return c.Field == other.Field && c.Text == other.Text }

// shown asks a server without the usual information_schema. One that refuses a query has no such
// facts, or is a mock.
func (l *learner) shown(ctx context.Context, schema, name string) (answered bool, err error) {
	if _, err := l.showColumns(ctx, schema, name); err != nil {
		return false, err
	}
	from := ""
	if schema != "" {
		from = " FROM " + sqltoken.QuoteIdentifier(schema)
	}
	_, err = l.rows(ctx, "SHOW TRIGGERS"+from+" WHERE `Table` = "+literal(name), func(row []driver.Value) {
		const event, body, timing = 1, 3, 4
		if len(row) > timing {
			l.triggers = append(l.triggers, trigger{base.Text(row[timing]), base.Text(row[event]), base.Text(row[body])})
		}
	})
	return !l.missing, err
}

// showColumns asks for the columns, also of a temporary table. It reports whether the answer is
// readable, since it is in character_set_results.
func (l *learner) showColumns(ctx context.Context, schema, name string) (answered bool, err error) {
	readable := true
	answered, err = l.rows(ctx, "SHOW FULL COLUMNS FROM "+sqltoken.QuoteTable(schema, name), func(row []driver.Value) {
		const field, typ, collation, null, extra = 0, 1, 2, 3, 6
		if len(row) <= collation {
			return
		}
		more := make([]driver.Value, extra+1)
		copy(more, row)
		if shown := base.Text(more[typ]); strings.ContainsAny(shown, "\x00@") {
			readable = false
		}
		l.addColumn(base.Text(more[field]), base.Text(more[typ]), base.Text(more[collation]), base.Text(more[null]), base.Text(more[extra]))
	})
	return answered && readable, err
}
