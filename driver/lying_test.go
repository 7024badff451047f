package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync"
)

// lyingBase is a driver whose server says whatever a test wants it to: numbers
// of rows that cannot be, rows without columns, nothing at all. Without
// anything set it answers each statement with one row affected, and each query
// with an error.
type lyingBase struct {
	result func(query string) (driver.Result, error)
	rows   func(query string) (driver.Rows, error)
	stmt   func(query string) (driver.Stmt, error) // nil: texts are executed directly

	mu    sync.Mutex
	calls []string
}

func (b *lyingBase) Connect(context.Context) (driver.Conn, error) { return &lyingConn{b}, nil }
func (b *lyingBase) Driver() driver.Driver                        { return fakeDriver{&fakeBase{kind: "minimal"}} }

func (b *lyingBase) log(query string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, query)
}

// sent returns the statements that contain a word.
func (b *lyingBase) sent(word string) (found []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, call := range b.calls {
		if strings.Contains(call, word) {
			found = append(found, call)
		}
	}
	return found
}

type lyingConn struct{ base *lyingBase }

func (c *lyingConn) Prepare(query string) (driver.Stmt, error) {
	if c.base.stmt == nil {
		return &lyingStmt{c, query}, nil
	}
	return c.base.stmt(query)
}

func (c *lyingConn) Close() error              { return nil }
func (c *lyingConn) Begin() (driver.Tx, error) { return nil, errors.New("no transactions") }

func (c *lyingConn) ExecContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	if c.base.log(query); c.base.result == nil {
		return driver.RowsAffected(1), nil
	}
	return c.base.result(query)
}

func (c *lyingConn) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	if c.base.log(query); c.base.rows == nil {
		return nil, errors.New("this server knows no questions")
	}
	return c.base.rows(query)
}

func (c *lyingConn) CheckNamedValue(*driver.NamedValue) error { return nil }

type lyingStmt struct {
	conn *lyingConn
	text string
}

func (s *lyingStmt) Close() error  { return nil }
func (s *lyingStmt) NumInput() int { return -1 }

func (s *lyingStmt) Exec([]driver.Value) (driver.Result, error) {
	return s.conn.ExecContext(context.Background(), s.text, nil)
}

func (s *lyingStmt) Query([]driver.Value) (driver.Rows, error) {
	return s.conn.QueryContext(context.Background(), s.text, nil)
}

// lyingResult is what a server says of a statement.
type lyingResult struct{ id, affected int64 }

func (r lyingResult) LastInsertId() (int64, error) { return r.id, nil }
func (r lyingResult) RowsAffected() (int64, error) { return r.affected, nil }

// answer is the rows of a query.
type answer struct {
	columns []string
	values  [][]driver.Value
}

func (a answer) rows() driver.Rows { return &lyingRows{a, 0} }

type lyingRows struct {
	answer
	next int
}

func (r *lyingRows) Columns() []string { return r.columns }
func (r *lyingRows) Close() error      { return nil }

func (r *lyingRows) Next(dest []driver.Value) error {
	if r.next == len(r.values) {
		return io.EOF
	}
	copy(dest, r.values[r.next])
	r.next++
	return nil
}
