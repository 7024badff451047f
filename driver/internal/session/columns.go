package session

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// Table identifies a table whose columns were read.
type Table struct {
	facts.Name
	// unqualified: the statement names no schema, so Database is the current one.
	unqualified bool
}

// Table returns the table that a statement names in the current database.
func (s *Session) Table(ctx context.Context, schema, name string) (Table, error) {
	database, err := s.databaseOf(ctx, schema)
	return Table{facts.Name{Database: database, Table: name}, schema == ""}, err
}

// databaseOf returns the database of a table that a statement names.
func (s *Session) databaseOf(ctx context.Context, schema string) (string, error) {
	if schema != "" {
		return schema, nil
	}
	return s.currentDatabase(ctx)
}

// Names reports whether the statement still means this table. The current database may have
// changed.
func (s *Session) Names(ctx context.Context, t Table) (bool, error) {
	if !t.unqualified {
		return true, nil
	}
	database, err := s.currentDatabase(ctx)
	return err == nil && database == t.Database, err
}

// Facts returns what is known of a table. It asks the server if that is nothing, or too old.
func (s *Session) Facts(ctx context.Context, schema, name string) (*facts.Table, error) {
	database := schema
	if database == "" {
		if !s.databaseKnown {
			if _, err := s.currentDatabase(ctx); err != nil {
				return nil, err
			}
		}
		database = s.database
	}
	e := s.entry(facts.Name{Database: database, Table: name})
	if t := e.Table(); t != nil {
		return t, nil
	}
	return facts.Learn(ctx, s, e, schema, name)
}

// Column returns what is known of a column; see Facts.
func (s *Session) Column(ctx context.Context, schema, table, column string) (*facts.Column, error) {
	t, err := s.Facts(ctx, schema, table)
	if err != nil {
		return nil, err
	}
	return t.Column(column), nil
}

// AskFacts is Facts that asks the server, since the table may have been altered.
func (s *Session) AskFacts(ctx context.Context, schema, name string) (*facts.Table, error) {
	e, err := s.entryOf(ctx, schema, name)
	if err != nil {
		return nil, err
	}
	return facts.Learn(ctx, s, e, schema, name)
}

// KeyColumn returns what is known of the key column of an insert's table.
func (s *Session) KeyColumn(ctx context.Context, in *rewrite.Insert) (*facts.Column, error) {
	t, err := s.Facts(ctx, in.Schema, in.Name)
	if err != nil {
		return nil, err
	}
	return t.Column(in.Table.Key), nil
}

func (s *Session) entryOf(ctx context.Context, schema, name string) (*facts.Entry, error) {
	database, err := s.databaseOf(ctx, schema)
	if err != nil {
		return nil, err
	}
	return s.entry(facts.Name{Database: database, Table: name}), nil
}

// usedTables are the entries of the tables that a session used last, which it finds without a lock.
type usedTables struct {
	all  [4]usedTable
	next uint8
}

type usedTable struct {
	facts.Name
	entry *facts.Entry
}

// entry returns a table's entry in the session's store.
func (s *Session) entry(n facts.Name) *facts.Entry {
	for i := range s.used.all {
		if u := &s.used.all[i]; u.Table == n.Table && u.Database == n.Database && u.entry != nil {
			return u.entry
		}
	}
	e := s.tables.Entry(n)
	s.used.all[s.used.next%uint8(len(s.used.all))] = usedTable{n, e}
	s.used.next++
	return e
}

// Session implements facts.Server.
var _ facts.Server = (*Session)(nil)

// Rows implements facts.Server.
func (s *Session) Rows(ctx context.Context, query string, each func([]driver.Value)) error {
	return s.queryRows(ctx, query, each)
}

// IsFatal implements facts.Server.
func (s *Session) IsFatal(ctx context.Context, err error) bool { return IsFatal(ctx, err) }

// ShowsTables implements facts.Server.
func (s *Session) ShowsTables(ctx context.Context) (bool, error) {
	server, err := s.Server(ctx)
	if err != nil && IsFatal(ctx, err) {
		return false, err
	}
	return err != nil || server.ReportsKeys, nil // MySQL and MariaDB may answer in UTF-16
}

// HasOwnTables implements facts.Server.
func (s *Session) HasOwnTables() bool { return s.tables != &s.cache.tables }

// TimeZones implements facts.Server.
func (s *Session) TimeZones() []*time.Location { return s.Client().Zones }

// ReadsUTF8 implements facts.Charsets.
func (s *Session) ReadsUTF8(ctx context.Context) bool {
	_, charset, err := s.Mode(ctx)
	return err == nil && charset == sqltoken.UTF8
}

// Columns returns the names of a table's columns, from the cache if possible. They are in the
// session's character set, so sessions share only names in ASCII.
func (s *Session) Columns(ctx context.Context, t Table) (names []string, cached bool, err error) {
	shared, own := s.entry(t.Name), s.own.Entry(t.Name)
	for _, e := range []*facts.Entry{shared, own} {
		if names = e.Names(); names != nil {
			return names, true, nil
		}
	}
	schema := t.Database
	if t.unqualified && s.databaseKnown && s.database == schema {
		schema = ""
	}
	begun, ownBegun := shared.Begin(), own.Begin()
	if names, err = s.readColumns(ctx, schema, t.Name.Table); err != nil {
		return nil, false, err
	}
	if sqltoken.IsASCII(strings.Join(names, "")) {
		shared.PutNames(names, begun)
	} else {
		own.PutNames(names, ownBegun)
	}
	return names, false, nil
}

// ForgetColumns makes the facts about a table outdated.
func (s *Session) ForgetColumns(t Table) {
	s.entry(t.Name).Forget()
	s.own.Entry(t.Name).Forget()
}

// readColumns queries the columns of an INSERT without a column list: all in order, with generated
// columns and without invisible ones. A SELECT returns these (MySQL and MariaDB, "Invisible
// Columns"), also for temporary tables. SHOW returns them for a user with another privilege than
// SELECT (MySQL manual, "SHOW COLUMNS Statement"). For a missing table the error is the server's.
func (s *Session) readColumns(ctx context.Context, schema, name string) ([]string, error) {
	table := sqltoken.QuoteTable(schema, name)
	columns, err := s.columnsOfResult(ctx, "SELECT * FROM "+table+" LIMIT 0", name)
	if sqlerr.Is(err, sqlerr.TableDenied, sqlerr.ColumnDenied) {
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
	if s.assumed != nil && s.assumed.Columns != nil {
		return s.assumed.Columns, nil
	}
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
	return columns, cmp.Or(s.Base.ReadRows(rows, func([]driver.Value) {}), s.SetTransactionAgain(ctx))
}
