package fakedb

import (
	"context"
	"database/sql/driver"
	"errors"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// conn is a connection of kind Minimal. The other kinds embed it.
type conn struct{ s *Server }

func (c *conn) Prepare(query string) (driver.Stmt, error) { return c.prepare("prepare", query) }

func (c *conn) prepare(method, query string) (driver.Stmt, error) {
	s := c.s
	if s.Quiet {
		return quietStmt{rowsOf(query)}, nil
	}
	if _, err := s.call("%s %s", method, query); err != nil {
		return nil, err
	}
	if s.Stmt != nil {
		if st, err := s.Stmt(query); err != driver.ErrSkip {
			return st, err
		}
	}
	if s.Statements > 0 && s.Stmts >= s.Statements {
		return nil, &mysql.MySQLError{Number: 1461, Message: "Can't create more than max_prepared_stmt_count statements"}
	}
	s.add(&s.Stmts, 1)
	s.add(&s.Prepared, 1)
	st := &stmt{s: s, query: query}
	switch s.Kind {
	case Legacy:
		return converterStmt{st}, nil
	case Uncounted:
		return uncountedStmt{converterStmt{st}}, nil
	case Direct, Skipping:
		return fullStmt{checkerStmt{st}}, nil
	case StmtCheck:
		return checkerStmt{st}, nil
	}
	return st, nil
}

func (c *conn) Close() error {
	if !c.s.Quiet {
		_, _ = c.s.note("close")
		c.s.add(&c.s.Conns, -1)
	}
	return nil
}

func (c *conn) Begin() (driver.Tx, error) { return c.begin("begin") }

func (c *conn) begin(call string) (driver.Tx, error) {
	_, err := c.s.call("%s", call)
	return tx{c.s}, err
}

type tx struct{ s *Server }

func (t tx) Commit() error   { _, err := t.s.call("commit"); return err }
func (t tx) Rollback() error { _, err := t.s.call("rollback"); return err }

type legacyConn struct{ *conn }

func (c *legacyConn) Exec(query string, args []driver.Value) (driver.Result, error) {
	return c.s.exec("exec", query, args)
}

func (c *legacyConn) Query(query string, args []driver.Value) (driver.Rows, error) {
	return c.s.query("query", query, args)
}

type resetConn struct{ *conn }

func (c *resetConn) ResetSession(context.Context) error { _, err := c.s.call("reset"); return err }

type validConn struct{ *conn }

func (c *validConn) IsValid() bool { _, err := c.s.call("valid"); return err == nil }

type directConn struct{ *conn }

// skips reports whether a statement has to be prepared.
func (c *directConn) skips(method string, args []driver.NamedValue) bool {
	if c.s.Kind != Skipping || len(args) == 0 {
		return false
	}
	_, _ = c.s.note("%s skips", method)
	return true
}

func (c *directConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.s.Quiet {
		return driver.RowsAffected(rowsOf(query)), nil
	}
	if c.skips("execContext", args) {
		return nil, driver.ErrSkip
	}
	return c.s.exec("execContext", query, args)
}

func (c *directConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.s.Quiet && !asksTable(query) {
		return noRows{}, nil
	}
	if c.skips("queryContext", args) {
		return nil, driver.ErrSkip
	}
	return c.s.query("queryContext", query, args)
}

type checkConn struct{ directConn }

func (c *checkConn) CheckNamedValue(nv *driver.NamedValue) error { return c.s.check("conn", nv) }

type fullConn struct{ checkConn }

func (c *fullConn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return c.prepare("prepareContext", query)
}

func (c *fullConn) BeginTx(_ context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if opts.ReadOnly || opts.Isolation != 0 {
		return c.begin("beginTx with options")
	}
	return c.begin("beginTx")
}

func (c *fullConn) Ping(context.Context) error         { _, err := c.s.call("ping"); return err }
func (c *fullConn) ResetSession(context.Context) error { _, err := c.s.call("reset"); return err }
func (c *fullConn) IsValid() bool                      { _, err := c.s.call("valid"); return err == nil }

// Wide is a type that only a NamedValueChecker of this package accepts, and Removed one that it
// removes from the arguments.
type (
	Wide    struct{ N int }
	Removed struct{}
)

func (s *Server) check(of string, nv *driver.NamedValue) error {
	_, _ = s.note("%s checks %T", of, nv.Value)
	switch v := nv.Value.(type) {
	case Wide:
		nv.Value = int64(v.N)
		return nil
	case Removed:
		return driver.ErrRemoveArgument
	}
	return driver.ErrSkip
}

type stmt struct {
	s      *Server
	query  string
	closed bool
}

var errClosed = errors.New("fakedb: the statement is closed")

func (st *stmt) Close() error {
	_, _ = st.s.note("stmt close")
	if !st.closed {
		st.s.add(&st.s.Stmts, -1)
	}
	st.closed = true
	return nil
}

// noPlaceholder matches the parts of a query in which a question mark is no placeholder.
var noPlaceholder = regexp.MustCompile(`'[^']*'|/\*.*?\*/`)

func (st *stmt) NumInput() int {
	return strings.Count(noPlaceholder.ReplaceAllString(st.query, ""), "?")
}

func (st *stmt) Exec(args []driver.Value) (driver.Result, error) { return st.exec("stmt exec", args) }
func (st *stmt) Query(args []driver.Value) (driver.Rows, error)  { return st.rows("stmt query", args) }

func (st *stmt) exec(method string, args any) (driver.Result, error) {
	if st.closed {
		return nil, errClosed
	}
	return st.s.exec(method, st.query, args)
}

func (st *stmt) rows(method string, args any) (driver.Rows, error) {
	if st.closed {
		return nil, errClosed
	}
	return st.s.query(method, st.query, args)
}

type converterStmt struct{ *stmt }

func (st converterStmt) ColumnConverter(i int) driver.ValueConverter {
	_, _ = st.s.note("converter %d", i)
	return driver.DefaultParameterConverter
}

type uncountedStmt struct{ converterStmt }

func (uncountedStmt) NumInput() int { return -1 }

type checkerStmt struct{ *stmt }

func (st checkerStmt) CheckNamedValue(nv *driver.NamedValue) error { return st.s.check("stmt", nv) }

type fullStmt struct{ checkerStmt }

func (st fullStmt) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	return st.exec("stmt execContext", args)
}

func (st fullStmt) QueryContext(_ context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return st.rows("stmt queryContext", args)
}

// quietStmt is a statement of a quiet server.
type quietStmt struct{ rows int64 }

func (quietStmt) Close() error  { return nil }
func (quietStmt) NumInput() int { return -1 }
func (st quietStmt) Exec([]driver.Value) (driver.Result, error) {
	return driver.RowsAffected(st.rows), nil
}
func (quietStmt) Query([]driver.Value) (driver.Rows, error) { return noRows{}, nil }
func (quietStmt) CheckNamedValue(*driver.NamedValue) error  { return nil }

func (st quietStmt) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(st.rows), nil
}

func (quietStmt) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	return noRows{}, nil
}
