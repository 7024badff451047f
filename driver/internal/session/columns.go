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
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/internal/sqltext"
)

// Table names a table whose columns were read.
type Table struct {
	schema, name string
	// unqualified: the statement names no schema, and schema is the current database.
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

// Names reports whether the table is still the one that its statement names: the current
// database may be another one.
func (s *Session) Names(ctx context.Context, t Table) (bool, error) {
	if !t.unqualified {
		return true, nil
	}
	database, err := s.currentDatabase(ctx)
	return err == nil && database == t.schema, err
}

// tables keeps what is known of tables. Its zero value is ready; many goroutines use it.
type tables struct {
	mu    sync.Mutex
	known map[Table]*knownTable
	bytes int // about what the names of columns occupy
}

// knownTable is what is known of one table: the names of its columns, as they were at a
// time, and the columns whose types matter. The columns of a table that statements name
// without schema stand under the empty schema: finding them needs no current database.
type knownTable struct {
	names   []string
	at      time.Time
	columns []*Column
}

const (
	// maxTables and maxNamesBytes bound the cache; past them everything is read again.
	maxTables     = 10000
	maxNamesBytes = 16 << 20
	// maxNamesAge is how long the names of columns are used, as any process may alter a
	// table: one query for a table in that time costs little compared with the INSERTs.
	maxNamesAge = 10 * time.Second
)

// names returns the names of a table's columns, nil if they are not known or too old.
func (t *tables) names(of Table) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.known[of]; known != nil && time.Since(known.at) <= maxNamesAge {
		return known.names
	}
	return nil
}

// putNames keeps the names of a table's columns, and returns them: the slice that there was
// before, if it is equal.
func (t *tables) putNames(of Table, names []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bytes > maxNamesBytes {
		t.dropNames()
	}
	known := t.entry(of)
	if known.at = time.Now(); !slices.Equal(known.names, names) {
		t.bytes += sizeOf(names) - sizeOf(known.names)
		known.names = names
	}
	return known.names
}

// sizeOf is about what a list of names occupies.
func sizeOf(names []string) (size int) {
	const header = 16
	for _, name := range names {
		size += header + len(name)
	}
	return size
}

// expire lets the names of a table's columns be read again.
func (t *tables) expire(of Table) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.known[of]; known != nil {
		known.at = time.Time{}
	}
}

// column returns a column of a table, which many sessions share.
func (t *tables) column(schema, table, name string) *Column {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.entry(Table{schema, table, schema == ""})
	for _, c := range known.columns {
		if c.name == name {
			return c
		}
	}
	c := &Column{schema: schema, table: table, name: name}
	known.columns = append(known.columns, c)
	return c
}

// entry returns what is known of a table, under the lock.
func (t *tables) entry(of Table) *knownTable {
	known := t.known[of]
	if known == nil {
		if t.known == nil || len(t.known) >= maxTables {
			t.known, t.bytes = map[Table]*knownTable{}, 0
		}
		known = &knownTable{}
		t.known[of] = known
	}
	return known
}

// dropNames drops the names of all columns, under the lock.
func (t *tables) dropNames() {
	t.bytes = 0
	for _, known := range t.known {
		known.names, known.at = nil, time.Time{}
	}
}

// clear lets everything be asked again, also about the columns that are in use.
func (t *tables) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropNames()
	for _, known := range t.known {
		for _, c := range known.columns {
			c.known.Store(nil)
		}
	}
}

// copyTo copies what is known, however long ago the names of columns were read.
func (t *tables) copyTo(to *tables) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	to.known, to.bytes = make(map[Table]*knownTable, len(t.known)), t.bytes
	for of, known := range t.known {
		own := &knownTable{names: known.names, at: now}
		for _, c := range known.columns {
			column := &Column{schema: c.schema, table: c.table, name: c.name}
			column.known.Store(c.known.Load())
			own.columns = append(own.columns, column)
		}
		to.known[of] = own
	}
}

// database returns the current database in which tables were looked for, empty if there are
// several.
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

// ExpireColumns lets the names of all tables' columns be read again, as they are anyway
// after a while.
func (c *Cache) ExpireColumns() {
	c.tables.mu.Lock()
	defer c.tables.mu.Unlock()
	for _, known := range c.tables.known {
		known.at = time.Time{}
	}
}

// Columns returns the names of a table's columns, from the cache if they are there.
func (s *Session) Columns(ctx context.Context, t Table) (names []string, cached bool, err error) {
	if names = s.tables.names(t); names != nil {
		return names, true, nil
	}
	schema := t.schema
	if t.unqualified && s.databaseKnown && s.database == schema {
		schema = ""
	}
	if names, err = s.readColumns(ctx, schema, t.name); err != nil {
		return nil, false, err
	}
	return s.tables.putNames(t, names), false, nil
}

// ForgetColumns lets the names of a table's columns be read again.
func (s *Session) ForgetColumns(t Table) { s.tables.expire(t) }

// readColumns asks the server for the columns that an INSERT without column list means: all
// in order, generated ones included, invisible ones not. Those are a SELECT's, which sees
// temporary tables; a user who may not SELECT gets them from SHOW. The error for a table
// that doesn't exist is the server's own.
func (s *Session) readColumns(ctx context.Context, schema, name string) ([]string, error) {
	const tableDenied, columnDenied = 1142, 1143
	table := sqltext.QuoteTable(schema, name)
	columns, err := s.columnsOfResult(ctx, "SELECT * FROM "+table+" LIMIT 0")
	if base.IsServerError(err, tableDenied, columnDenied) {
		columns, err = s.columnsShown(ctx, table)
	}
	var my *mysql.MySQLError
	switch {
	case err != nil && !IsFatal(ctx, err) && !errors.As(err, &my):
		return nil, unreadableColumns(table, err)
	case err == nil && len(columns) == 0:
		return nil, fmt.Errorf("%w: table %s has no columns", rewrite.ErrUnsupportedStatement, table)
	case err == nil && slices.ContainsFunc(columns, isWide):
		return nil, unreadableColumns(table, errWide)
	}
	return columns, err
}

func unreadableColumns(table string, err error) error {
	return fmt.Errorf("%w: the columns of table %s cannot be read; name them in the statement: %w",
		rewrite.ErrUnsupportedStatement, table, err)
}

// columnsShown are the columns of a table whose rows the user may not see.
func (s *Session) columnsShown(ctx context.Context, table string) (columns []string, err error) {
	const field, extra = 0, 5
	err = s.queryRows(ctx, "SHOW COLUMNS FROM "+table, func(row []driver.Value) {
		if len(row) > extra && !strings.Contains(Text(row[extra]), "INVISIBLE") {
			columns = append(columns, Text(row[field]))
		}
	})
	return columns, err
}

func (s *Session) columnsOfResult(ctx context.Context, query string) ([]string, error) {
	rows, err := s.ask(ctx, query)
	if err != nil {
		return nil, err
	}
	columns := slices.Clone(rows.Columns())
	return columns, cmp.Or(rows.Close(), s.setTransactionAgain(ctx))
}
