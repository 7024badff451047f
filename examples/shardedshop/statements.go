package main

import (
	"context"
	"database/sql/driver"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"
)

// statements counts the tables of the SELECTs and UPDATEs that reach the databases.
// Many goroutines may use it.
type statements struct {
	mu      sync.Mutex
	names   []string // tables, since the last take
	queries int      // SELECTs so far
	tables  int      // that these named
}

var ordersTable = regexp.MustCompile(`orders\w*`)

func (s *statements) add(query string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.HasPrefix(query, "SELECT") && !strings.HasPrefix(query, "UPDATE") {
		return // an INSERT, or what shardkey asks of a table before the first
	}
	found := ordersTable.FindAllString(query, -1)
	slices.Sort(found)
	found = slices.Compact(found)
	if strings.HasPrefix(query, "SELECT") && len(found) > 0 {
		s.queries++
		s.tables += len(found)
	}
	s.names = append(s.names, found...)
}

// take returns the tables since it was called last.
func (s *statements) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := strings.Join(s.names, " ")
	s.names = nil
	return names
}

// watch returns a connector that counts what the base of another is sent.
func (s *statements) watch(base driver.Connector) driver.Connector { return watched{base, s} }

func mysqlConnector(dsn string) (driver.Connector, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	return mysql.NewConnector(cfg)
}

type watched struct {
	driver.Connector
	sent *statements
}

func (w watched) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := w.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return watchedConn{c.(mysqlConn), w.sent}, nil
}

// mysqlConn is what go-sql-driver's connections are.
type mysqlConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type watchedConn struct {
	mysqlConn
	sent *statements
}

func (c watchedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	res, err := c.mysqlConn.ExecContext(ctx, query, args)
	if err != driver.ErrSkip { // else it is prepared
		c.sent.add(query)
	}
	return res, err
}

func (c watchedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.mysqlConn.QueryContext(ctx, query, args)
	if err != driver.ErrSkip {
		c.sent.add(query)
	}
	return rows, err
}

func (c watchedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.mysqlConn.PrepareContext(ctx, query)
	c.sent.add(query)
	return s, err
}
