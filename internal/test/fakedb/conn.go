package fakedb

import (
	"context"
	"database/sql/driver"
	"errors"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// Conn has the methods of a connection of kind Minimal.
type Conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

// conn is a connection of kind Minimal. The other kinds embed it.
type conn struct{ s *Server }

// errNoContext is the error of methods without a context, which a caller of these types needn't call.
var errNoContext = errors.New("fakedb: use the method with a context")

func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, errNoContext }
func (c *conn) Begin() (driver.Tx, error)           { return nil, errNoContext }

func (c *conn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	s := c.s
	if s.Quiet {
		return quietStmt{rowsOf(query)}, nil
	}
	if _, err := s.call("prepareContext %s", query); err != nil {
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
	case Uncounted:
		return uncountedStmt{st}, nil
	case Direct, Skipping, StmtCheck:
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

func (c *conn) BeginTx(_ context.Context, opts driver.TxOptions) (driver.Tx, error) {
	call := "beginTx"
	if opts.ReadOnly || opts.Isolation != 0 {
		call = "beginTx with options"
	}
	_, err := c.s.call("%s", call)
	return tx{c.s}, err
}

type tx struct{ s *Server }

func (t tx) Commit() error   { _, err := t.s.call("commit"); return err }
func (t tx) Rollback() error { _, err := t.s.call("rollback"); return err }

type resetConn struct{ *conn }

func (rc *resetConn) ResetSession(context.Context) error { _, err := rc.s.call("reset"); return err }

type validConn struct{ *conn }

func (vc *validConn) IsValid() bool { _, err := vc.s.call("valid"); return err == nil }

// skips reports whether a statement has to be prepared.
func (c *conn) skips(method string, args []driver.NamedValue) bool {
	if c.s.Kind != Skipping || len(args) == 0 {
		return false
	}
	if !c.s.Quiet {
		_, _ = c.s.note("%s skips", method)
	}
	return true
}

func (c *conn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.skips("execContext", args) {
		return nil, driver.ErrSkip
	}
	if c.s.Quiet {
		return affected(rowsOf(query)), nil
	}
	return c.s.exec("execContext", query, args)
}

func (c *conn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.skips("queryContext", args) {
		return nil, driver.ErrSkip
	}
	if c.s.Quiet && !asksTable(query) {
		return noRows{}, nil
	}
	return c.s.query("queryContext", query, args)
}

type checkConn struct{ *conn }

func (cc *checkConn) CheckNamedValue(nv *driver.NamedValue) error { return cc.s.check("conn", nv) }

type fullConn struct{ checkConn }

func (fc *fullConn) Ping(context.Context) error         { _, err := fc.s.call("ping"); return err }
func (fc *fullConn) ResetSession(context.Context) error { _, err := fc.s.call("reset"); return err }
func (fc *fullConn) IsValid() bool                      { _, err := fc.s.call("valid"); return err == nil }

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

func (st *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errNoContext }
func (st *stmt) Query([]driver.Value) (driver.Rows, error)  { return nil, errNoContext }

func (st *stmt) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	if st.closed {
		return nil, errClosed
	}
	return st.s.exec("stmt execContext", st.query, args)
}

func (st *stmt) QueryContext(_ context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if st.closed {
		return nil, errClosed
	}
	return st.s.query("stmt queryContext", st.query, args)
}

type uncountedStmt struct{ *stmt }

func (uncountedStmt) NumInput() int { return -1 }

type checkerStmt struct{ *stmt }

func (st checkerStmt) CheckNamedValue(nv *driver.NamedValue) error { return st.s.check("stmt", nv) }

// quietStmt is a statement of a quiet server.
type quietStmt struct{ rows int64 }

func (quietStmt) Close() error                               { return nil }
func (quietStmt) NumInput() int                              { return -1 }
func (quietStmt) Exec([]driver.Value) (driver.Result, error) { return nil, errNoContext }
func (quietStmt) Query([]driver.Value) (driver.Rows, error)  { return nil, errNoContext }
func (quietStmt) CheckNamedValue(*driver.NamedValue) error   { return nil }

func (st quietStmt) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	return affected(st.rows), nil
}

func (quietStmt) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	return noRows{}, nil
}
