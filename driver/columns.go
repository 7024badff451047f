package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
)

// columnsKey is a table whose columns were read.
type columnsKey struct {
	schema, name string
	// unqualified: schema is the current database, not the statement's word.
	unqualified bool
}

func newColumnsKey(schema, name, database string) columnsKey {
	if schema == "" {
		return columnsKey{database, name, true}
	}
	return columnsKey{schema, name, false}
}

// columnCache keeps tables' columns until a statement fails for them.
type columnCache struct {
	mu      sync.Mutex
	columns map[columnsKey][]string
}

// maxColumnTables bounds the cache; past it everything is read anew.
const maxColumnTables = 10000

func (c *columnCache) get(key columnsKey) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	columns, ok := c.columns[key]
	return columns, ok
}

func (c *columnCache) put(key columnsKey, columns []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.columns == nil || len(c.columns) >= maxColumnTables {
		c.columns = map[columnsKey][]string{}
	}
	if len(columns) > 0 {
		c.columns[key] = columns
	} else {
		delete(c.columns, key)
	}
}

// readColumns asks the server for the columns that an INSERT without column
// list means: all in order, generated ones included, invisible ones not.
// Temporary tables are not in information_schema. The error for a table that is
// not there is the server's own.
func (s *session) readColumns(ctx context.Context, schema, name string) ([]string, error) {
	database := "DATABASE()"
	if schema != "" {
		database = sqlString(schema)
	}
	var columns []string
	err := s.queryRows(ctx, "SELECT COLUMN_NAME, EXTRA FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "+database+
		" AND TABLE_NAME = "+sqlString(name)+" ORDER BY ORDINAL_POSITION", func(row []driver.Value) {
		if len(row) == 2 && !strings.Contains(text(row[1]), "INVISIBLE") {
			columns = append(columns, text(row[0]))
		}
	})
	if err != nil && isFatal(ctx, err) {
		return nil, err
	}
	if err != nil || len(columns) == 0 {
		columns, err = s.columnsOfResult(ctx, "SELECT * FROM "+sqltext.QuoteTable(schema, name)+" LIMIT 0")
	}
	var my *mysql.MySQLError
	switch {
	case err != nil && !isFatal(ctx, err) && !errors.As(err, &my):
		return nil, fmt.Errorf("%w: the columns of table %s cannot be read; name them in the statement: %w",
			ErrUnsupportedStatement, sqltext.QuoteTable(schema, name), err)
	case err == nil && len(columns) == 0:
		return nil, fmt.Errorf("%w: table %s has no columns", ErrUnsupportedStatement, sqltext.QuoteTable(schema, name))
	}
	return columns, err
}

func (s *session) columnsOfResult(ctx context.Context, query string) ([]string, error) {
	rows, err := s.base.queryOrPrepare(ctx, query, nil, 0)
	if err != nil {
		return nil, err
	}
	columns := append([]string(nil), rows.Columns()...)
	return columns, rows.Close()
}

func sqlString(s string) string {
	b, _ := sqltext.AppendLiteral(nil, s)
	return string(b)
}

// staleError is an error of the server that the columns may explain with which
// a text was planned. Doors that plan look at them again; see conn.again.
type staleError struct {
	plan *plan
	error
}

// failed is called with an error of the server about a statement that was not
// executed. It marks one that says that columns are wrong, and returns errReplan
// where the assignment of the key to itself is what the server refuses.
func (p *plan) failed(err error) error {
	const (
		unknownColumn   = 1054
		columnCount     = 1136
		columnDenied    = 1143
		notUpdatable    = 1348
		notInsertableTo = 1471
	)
	var my *mysql.MySQLError
	if !errors.As(err, &my) {
		return err
	}
	switch my.Number {
	case unknownColumn, columnCount:
		if len(p.columns) > 0 {
			return &staleError{p, err}
		}
	case columnDenied, notUpdatable, notInsertableTo:
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
			p.tables[i].unguarded.Store(true)
			guarded = true
		}
	}
	if guarded {
		p.rules.plans.remove(p.key)
	}
	return guarded
}

// columnsChanged reads the columns of a plan's tables again, and reports whether
// they are others now. The plan is forgotten then.
func (s *session) columnsChanged(ctx context.Context, p *plan) bool {
	changed := false
	for key, old := range p.columns {
		schema := key.schema
		if key.unqualified {
			schema = ""
		}
		columns, err := s.readColumns(ctx, schema, key.name)
		if err != nil {
			return false
		}
		p.rules.plans.columns.put(key, columns)
		changed = changed || !slices.Equal(columns, old)
	}
	if changed {
		p.rules.plans.remove(p.key)
	}
	return changed
}

// maxKeysInQuestion is how many keys one question names.
const maxKeysInQuestion = 1000

// presentKeys asks, on the same connection, which keys are in the table. Nil is
// no key.
func (s *session) presentKeys(ctx context.Context, in *rewrite.Insert, keys []any) (map[string]bool, error) {
	present := map[string]bool{}
	column := sqltext.QuoteIdentifier(in.Table.KeyColumn)
	for chunk := range slices.Chunk(keys, maxKeysInQuestion) {
		query := []byte("SELECT " + column + " FROM " + sqltext.QuoteTable(in.Schema, in.Name) + " WHERE " + column + " IN (NULL")
		for _, key := range chunk {
			if key != nil {
				query, _ = sqltext.AppendLiteral(append(query, ", "...), key)
			}
		}
		err := s.queryRows(ctx, string(append(query, ')')), func(row []driver.Value) {
			present[text(row[0])] = true
		})
		if err != nil {
			return nil, err
		}
	}
	return present, nil
}
