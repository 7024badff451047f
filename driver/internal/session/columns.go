package session

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// Table identifies a table whose columns were read.
type Table struct {
	schema, name string
	// unqualified: the statement names no schema, so schema is the current database.
	unqualified bool
}

// Table returns the table that a statement names in the current database.
func (s *Session) Table(ctx context.Context, schema, name string) (Table, error) {
	if schema != "" {
		return Table{schema: schema, name: name}, nil
	}
	database, err := s.currentDatabase(ctx)
	return Table{schema: database, name: name, unqualified: true}, err
}

// Names reports whether the statement still means this table. The current database may have
// changed.
func (s *Session) Names(ctx context.Context, t Table) (bool, error) {
	if !t.unqualified {
		return true, nil
	}
	database, err := s.currentDatabase(ctx)
	return err == nil && database == t.schema, err
}

// tables caches facts about tables. Its zero value is ready to use. It is safe for concurrent use.
type tables struct {
	mu    sync.Mutex
	known map[Table]*knownTable
}

// knownTable has the facts about one table: the names and types of its columns at a certain time,
// and the columns whose facts matter. A table that statements name without a schema has the empty
// schema, which needs no query for the current database.
type knownTable struct {
	names   recent[[]string]
	types   recent[map[string]string] // by the names of columns in lower case
	columns []*Column
}

// recent is a value that was read at a certain time.
type recent[T any] struct {
	value T
	at    time.Time
}

func readNow[T any](value T) recent[T] { return recent[T]{value, time.Now()} }

// get returns the value, the zero value if it is unknown or too old.
func (r recent[T]) get() (value T) {
	if time.Since(r.at) <= maxAge {
		value = r.value
	}
	return value
}

const (
	// maxTables limits the cache. Beyond it the cache is emptied.
	maxTables = 10000
	// maxAge is how long the names and types of columns are used, since another process may alter the
	// table. One query per table in this time costs little compared with the INSERTs.
	maxAge = 10 * time.Second
)

// at calls f with the facts about a table, while no other goroutine uses them.
func (t *tables) at(of Table, f func(*knownTable)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.known[of]
	if known == nil {
		if t.known == nil || len(t.known) >= maxTables {
			t.known = map[Table]*knownTable{}
		}
		known = &knownTable{}
		t.known[of] = known
	}
	f(known)
}

// names returns the names of a table's columns, nil if they are unknown or too old.
func (t *tables) names(of Table) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.known[of]; known != nil {
		return known.names.get()
	}
	return nil // and no entry: a session's own cache has few tables
}

// putNames stores the names of a table's columns; nil makes them outdated.
func (t *tables) putNames(of Table, names []string) {
	t.at(of, func(known *knownTable) { known.names = readNow(names) })
}

// column returns a column of a table, which many sessions share.
func (t *tables) column(schema, table, name string) (c *Column) {
	t.at(Table{schema, table, schema == ""}, func(known *knownTable) {
		i := slices.IndexFunc(known.columns, func(c *Column) bool { return c.name == name })
		if i < 0 {
			i = len(known.columns)
			known.columns = append(known.columns, &Column{schema: schema, table: table, name: name})
		}
		c = known.columns[i]
	})
	return c
}

// clear makes all facts outdated, including those of columns in use.
func (t *tables) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, known := range t.known {
		known.names, known.types = recent[[]string]{}, recent[map[string]string]{}
		for _, c := range known.columns {
			c.known.Store(nil)
		}
	}
}

// copyTo copies all facts, however old they are.
func (t *tables) copyTo(to *tables) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to.known = make(map[Table]*knownTable, len(t.known))
	for of, known := range t.known {
		own := &knownTable{names: readNow(known.names.value)}
		for _, c := range known.columns {
			column := &Column{schema: c.schema, table: c.table, name: c.name}
			column.known.Store(c.known.Load())
			own.columns = append(own.columns, column)
		}
		to.known[of] = own
	}
}

// database returns the current database of the tables, empty if there are several.
func (t *tables) database() (database string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for of := range t.known {
		switch {
		case !of.unqualified || of.schema == "":
		case database != "" && of.schema != database:
			return ""
		default:
			database = of.schema
		}
	}
	return database
}

// Columns returns the names of a table's columns, from the cache if possible. They are in the
// session's character set, so sessions share only names in ASCII.
func (s *Session) Columns(ctx context.Context, t Table) (names []string, cached bool, err error) {
	for _, cache := range []*tables{s.tables, s.own} {
		if names = cache.names(t); names != nil {
			return names, true, nil
		}
	}
	schema := t.schema
	if t.unqualified && s.databaseKnown && s.database == schema {
		schema = ""
	}
	if names, err = s.readColumns(ctx, schema, t.name); err != nil {
		return nil, false, err
	}
	if sqltoken.IsASCII(strings.Join(names, "")) {
		s.tables.putNames(t, names)
	} else {
		s.own.putNames(t, names)
	}
	return names, false, nil
}

// ColumnTypes returns the types of a table's columns as the server shows them, by their names in
// lower case. It returns none if the server doesn't show them.
func (s *Session) ColumnTypes(ctx context.Context, schema, name string) (map[string]string, error) {
	t, err := s.Table(ctx, schema, name)
	if err != nil {
		return nil, err
	}
	var types map[string]string
	if s.tables.at(t, func(known *knownTable) { types = known.types.get() }); types != nil {
		return types, nil
	}
	types = map[string]string{}
	err = s.queryRows(ctx, "SHOW COLUMNS FROM "+sqltoken.QuoteTable(schema, name), func(row []driver.Value) {
		const field, typ = 0, 1
		if len(row) > typ {
			types[strings.ToLower(Text(row[field]))] = Text(row[typ])
		}
	})
	if err != nil && IsFatal(ctx, err) {
		return nil, err
	}
	s.tables.at(t, func(known *knownTable) { known.types = readNow(types) })
	return types, nil
}

// ForgetColumns makes the names of a table's columns outdated.
func (s *Session) ForgetColumns(t Table) {
	s.tables.putNames(t, nil)
	s.own.putNames(t, nil)
}

// readColumns queries the columns of an INSERT without a column list: all in order, with generated
// columns and without invisible ones. A SELECT returns these (MySQL and MariaDB, "Invisible
// Columns"), also for temporary tables. SHOW returns them for a user with another privilege than
// SELECT (MySQL manual, "SHOW COLUMNS Statement"). For a missing table the error is the server's.
func (s *Session) readColumns(ctx context.Context, schema, name string) ([]string, error) {
	const tableDenied, columnDenied = 1142, 1143
	table := sqltoken.QuoteTable(schema, name)
	columns, err := s.columnsOfResult(ctx, "SELECT * FROM "+table+" LIMIT 0", name)
	if base.IsServerError(err, tableDenied, columnDenied) {
		columns, err = s.columnsShown(ctx, table)
	}
	switch {
	case err != nil && !IsFatal(ctx, err) && !errors.As(err, new(*mysql.MySQLError)):
		return nil, unreadableColumns(table, err)
	case err == nil && len(columns) == 0:
		return nil, fmt.Errorf("%w: table %s has no columns", rewrite.ErrUnsupportedStatement, table)
	case err == nil && slices.ContainsFunc(columns, isWide):
		return nil, unreadableColumns(table, errWide)
	case err == nil && !sqltoken.IsASCII(strings.Join(columns, "")):
		err = s.checkCharsets(ctx, table)
	}
	return columns, err
}

// checkCharsets returns an error if the names that the server returns are in another character set
// than the statement that will contain them.
func (s *Session) checkCharsets(ctx context.Context, table string) error {
	row, err := s.askRow(ctx, "SELECT REPLACE(@@character_set_client, 'mb3', '') = REPLACE(IFNULL(@@character_set_results, 'utf8'), 'mb3', ''), "+
		"@@character_set_client LIKE 'utf8%' AND IFNULL(@@character_set_results, 'utf8') LIKE 'utf8%' LIMIT 1")
	if err == nil && len(row) == 2 && Text(row[0]) != "1" && Text(row[1]) != "1" {
		err = unreadableColumns(table, errors.New("character_set_results is not character_set_client; SET NAMES utf8mb4"))
	}
	return err
}

func unreadableColumns(table string, err error) error {
	return fmt.Errorf("%w: the columns of table %s cannot be read; name them in the statement: %w",
		rewrite.ErrUnsupportedStatement, table, err)
}

// columnsShown returns the columns of a table whose rows the user can't read.
func (s *Session) columnsShown(ctx context.Context, table string) (columns []string, err error) {
	const field, extra = 0, 5
	err = s.queryRows(ctx, "SHOW COLUMNS FROM "+table, func(row []driver.Value) {
		if len(row) > extra && !strings.Contains(Text(row[extra]), "INVISIBLE") {
			columns = append(columns, Text(row[field]))
		}
	})
	return columns, err
}

// columnsOfResult returns the names of a query's columns, without the table's name that
// columnsWithAlias of go-sql-driver adds.
func (s *Session) columnsOfResult(ctx context.Context, query, table string) ([]string, error) {
	rows, err := s.ask(ctx, query)
	if err != nil {
		return nil, err
	}
	columns, prefix := slices.Clone(rows.Columns()), len(table)+len(".")
	if !slices.ContainsFunc(columns, func(name string) bool {
		return len(name) <= prefix || !strings.EqualFold(name[:prefix], table+".")
	}) {
		for i := range columns {
			columns[i] = columns[i][prefix:]
		}
	}
	return columns, cmp.Or(s.Base.ReadRows(rows, func([]driver.Value) {}), s.setTransactionAgain(ctx))
}
