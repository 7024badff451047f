package driver

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
	"github.com/shardkey/shardkey/internal/sqltext"
)

// columnsKey names a table whose columns were read.
type columnsKey struct {
	schema, name string
	// unqualified: schema is the current database, the statement named none.
	unqualified bool
}

func newColumnsKey(schema, name, database string) columnsKey {
	if schema == "" {
		return columnsKey{database, name, true}
	}
	return columnsKey{schema, name, false}
}

// columnCache keeps tables' columns for a short time: any process may alter a
// table. Its zero value is ready; many goroutines use it.
type columnCache struct {
	now     func() time.Time // nil: time.Now
	mu      sync.Mutex
	columns map[columnsKey]columnsRead
	// shared are the lists of columns that there are: those of one logical table
	// mostly have the same. bytes is about what all of it occupies.
	shared map[string][]string
	bytes  int
	keys   map[[3]string]*keyColumn
}

// columnsRead are a table's columns as they were at a time.
type columnsRead struct {
	names []string
	at    time.Time
}

const (
	// maxColumnTables and maxColumnBytes bound the cache; past them everything is
	// read again.
	maxColumnTables = 10000
	maxColumnBytes  = 16 << 20
	// maxColumnsAge is how long cached columns are used: one
	// query for a table in that time costs little beside the INSERTs.
	maxColumnsAge = 10 * time.Second
)

func (c *columnCache) time() time.Time {
	if c.now != nil {
		return c.now()
	}
	return time.Now()
}

func (c *columnCache) get(key columnsKey) ([]string, bool) {
	now := c.time()
	c.mu.Lock()
	defer c.mu.Unlock()
	read, ok := c.columns[key]
	if !ok || now.Sub(read.at) > maxColumnsAge {
		return nil, false
	}
	return read.names, true
}

func (c *columnCache) put(key columnsKey, names []string) {
	now := c.time()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.columns == nil || len(c.columns) >= maxColumnTables || c.bytes > maxColumnBytes {
		c.columns, c.shared, c.bytes = map[columnsKey]columnsRead{}, map[string][]string{}, 0
	}
	if _, again := c.columns[key]; !again {
		const entry = 200
		c.bytes += entry + len(key.schema) + len(key.name)
	}
	c.columns[key] = columnsRead{c.share(names), now}
}

// share returns the list that is kept already, where an equal one is.
func (c *columnCache) share(names []string) []string {
	text := strings.Join(names, "\x00")
	kept, ok := c.shared[text]
	if !ok {
		const header = 16
		kept = names
		c.shared[text] = names
		c.bytes += 2*len(text) + header*len(names)
	}
	return kept
}

func (c *columnCache) forget(key columnsKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.columns, key)
}

func (c *columnCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.columns, c.shared, c.bytes = nil, nil, 0
	for _, key := range c.keys {
		key.known.Store(nil)
	}
}

// forgetColumns is called before a statement that may alter tables. What may
// make a temporary table, which hides another from this session alone, also ends
// the sharing of columns with other sessions.
func (s *session) forgetColumns(query string) {
	query = strings.ToUpper(query)
	mentions := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(query, word) })
	}
	hidden := mentions("TEMPORARY", "EXECUTE", "CALL")
	if !hidden && !mentions("ALTER", "CREATE", "DROP", "RENAME", "TRUNCATE") {
		return
	}
	s.columns.clear()
	if hidden {
		s.columns = &columnCache{now: s.columns.now}
	}
}

// columnsOf returns the columns of a table, from the cache if they are there.
func (s *session) columnsOf(ctx context.Context, key columnsKey) (names []string, cached bool, err error) {
	if names, cached = s.columns.get(key); cached {
		return names, true, nil
	}
	schema := key.schema
	if key.unqualified && s.databaseKnown && s.database == schema {
		schema = ""
	}
	if names, err = s.readColumns(ctx, schema, key.name); err == nil {
		s.columns.put(key, names)
		if shared, ok := s.columns.get(key); ok {
			names = shared // the plan keeps it too
		}
	}
	return names, false, err
}

// readColumns asks the server for the columns that an INSERT without column
// list means: all in order, generated ones included, invisible ones not. Those
// are a SELECT's, which sees temporary tables; a user who may not SELECT gets
// them from SHOW. The error for a table that is not there is the server's own.
func (s *session) readColumns(ctx context.Context, schema, name string) ([]string, error) {
	table := sqltext.QuoteTable(schema, name)
	columns, err := s.columnsOfResult(ctx, "SELECT * FROM "+table+" LIMIT 0")
	if base.IsServerError(err, tableDenied, columnDenied) {
		columns, err = s.columnsShown(ctx, table)
	}
	var my *mysql.MySQLError
	switch {
	case err != nil && !isFatal(ctx, err) && !errors.As(err, &my):
		return nil, unreadableColumns(table, err)
	case err == nil && len(columns) == 0:
		return nil, fmt.Errorf("%w: table %s has no columns", ErrUnsupportedStatement, table)
	case err == nil && slices.ContainsFunc(columns, isWide):
		return nil, unreadableColumns(table, errWide)
	}
	return columns, err
}

func unreadableColumns(table string, err error) error {
	return fmt.Errorf("%w: the columns of table %s cannot be read; name them in the statement: %w", ErrUnsupportedStatement, table, err)
}

// columnsShown are the columns of a table whose rows the user may not see.
func (s *session) columnsShown(ctx context.Context, table string) (columns []string, err error) {
	const field, extra = 0, 5
	err = s.queryRows(ctx, "SHOW COLUMNS FROM "+table, func(row []driver.Value) {
		if len(row) > extra && !strings.Contains(text(row[extra]), "INVISIBLE") {
			columns = append(columns, text(row[field]))
		}
	})
	return columns, err
}

func (s *session) columnsOfResult(ctx context.Context, query string) ([]string, error) {
	rows, err := s.ask(ctx, query)
	if err != nil {
		return nil, err
	}
	columns := append([]string(nil), rows.Columns()...)
	return columns, cmp.Or(rows.Close(), s.setTransactionAgain(ctx))
}

const unknownTable = 1146

// staleError is an error of the server that may come from outdated columns with
// which a text was planned. Methods that plan read them again; see conn.again.
type staleError struct {
	plan *plan
	error
}

// failed is called with an error of the server about a statement that was not
// executed. It marks one that says that columns are wrong, and returns errReplan
// where the assignment of the key to itself is what the server refuses. An error of a
// string of several statements is returned as it is: its first statements have run.
func (p *plan) failed(err error) error {
	if p.Statements > 1 {
		return err
	}
	const (
		columnNotNull   = 1048
		unknownDatabase = 1049
		unknownColumn   = 1054
		columnCount     = 1136
		notUpdatable    = 1348
		noDefault       = 1364
		notInsertableTo = 1471
	)
	switch {
	case base.IsServerError(err, columnNotNull, unknownDatabase, unknownColumn, columnCount, unknownTable, noDefault):
		if len(p.columns) > 0 {
			return &staleError{p, err}
		}
	case base.IsServerError(err, columnDenied, notUpdatable, notInsertableTo), base.IsServerError(err, notSupported): // by Vitess, of a sharding column
		if p.unguard() {
			return errReplan
		}
	}
	return err
}

// unguard forgets a plan with guarded upserts, whose tables' upserts are not
// guarded from now on. It returns false when there are none.
func (p *plan) unguard() (guarded bool) {
	for i := range p.Inserts {
		if p.Inserts[i].Guarded {
			p.targets[i].table.unguarded.Store(true)
			guarded = true
		}
	}
	if guarded {
		p.rules.plans.remove(p.key)
	}
	return guarded
}

// columnsChanged reads the columns of a plan's tables again and reports whether
// they have changed. If so, the plan is forgotten.
func (s *session) columnsChanged(ctx context.Context, p *plan) bool {
	for key := range p.columns {
		s.columns.forget(key)
	}
	hold, err := p.columnsHold(ctx, s)
	if !hold {
		p.rules.plans.remove(p.key)
	}
	return !hold && err == nil
}

// columnsHold reports whether the columns that a plan depends on are what its
// tables have.
func (p *plan) columnsHold(ctx context.Context, s *session) (bool, error) {
	for key, old := range p.columns {
		columns, _, err := s.columnsOf(ctx, key)
		if err != nil || !slices.Equal(columns, old) {
			return false, err
		}
	}
	return true, nil
}
