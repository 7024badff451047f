package base

import (
	"context"
	"database/sql/driver"
	"fmt"
	"reflect"
)

// contextStmt has the methods that a statement of the underlying driver must have.
type contextStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// Stmt is a prepared statement of the underlying driver with its optional interfaces. The zero
// value has no statement.
type Stmt struct {
	contextStmt
	conn    *Conn
	inputs  int    // the result of NumInput
	changes uint32 // of the connection's session before the statement was prepared; see statements
	how     How    // in which its types of arguments matter, if the cache may have it
	// own are the types of a program's executions, nil if the cache may not have its statement. mixed:
	// the types have changed, so only the program may execute it. before are the types that earlier
	// users have fixed, except where own has one.
	own, before argTypes
	mixed       bool
	checker     driver.NamedValueChecker
}

// NewStmt returns the Stmt of a statement that a connection's driver prepared. It closes a statement
// that lacks a method with a context.
func NewStmt(conn *Conn, stmt driver.Stmt) (Stmt, error) {
	with, ok := stmt.(contextStmt)
	if !ok {
		_ = stmt.Close()
		return Stmt{}, lacks(stmt, reflect.TypeFor[driver.StmtExecContext](), reflect.TypeFor[driver.StmtQueryContext]())
	}
	s := Stmt{contextStmt: with, conn: conn, inputs: stmt.NumInput(), changes: conn.cached.changes}
	s.checker, _ = stmt.(driver.NamedValueChecker)
	return s, nil
}

// IsZero reports whether s has no statement.
func (s *Stmt) IsZero() bool { return s.contextStmt == nil }

func (s *Stmt) send(ctx context.Context, r *Request) (reply Reply, err error) {
	if r.Rows {
		reply.Rows, err = answered(s.QueryContext(ctx, r.Args))
	} else {
		reply.Result, err = s.ExecContext(ctx, r.Args)
	}
	return reply, s.conn.noted(err)
}

// CheckArgs checks the number of arguments as database/sql does before it executes a statement. Of
// these, user are the program's, which the error counts.
func (s *Stmt) CheckArgs(args []driver.NamedValue, user int) error {
	if want := s.inputs; want >= 0 && want != len(args) {
		return ArgCountError(want-len(args)+user, user)
	}
	return nil
}

// CheckNamedValue converts an argument by the statement's checker or the connection's. It returns
// driver.ErrSkip for the default conversion.
func (s *Stmt) CheckNamedValue(nv *driver.NamedValue) error {
	if s.checker != nil {
		return s.checker.CheckNamedValue(nv)
	}
	return s.conn.CheckNamedValue(nv)
}

// ArgCountError returns an error with the message of database/sql.
func ArgCountError(want, got int) error {
	return fmt.Errorf("sql: expected %d arguments, got %d", want, got)
}
