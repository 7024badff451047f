package base

import (
	"context"
	"database/sql/driver"
	"fmt"
)

type (
	columnConverter interface {
		ColumnConverter(idx int) driver.ValueConverter
	}
	stmtExecer interface {
		Exec(args []driver.Value) (driver.Result, error)
	}
	stmtQueryer interface {
		Query(args []driver.Value) (driver.Rows, error)
	}
)

// Stmt is a prepared statement of the underlying driver with its optional interfaces. The zero
// value has no statement.
type Stmt struct {
	driver.Stmt
	conn    *Conn
	inputs  int    // the result of NumInput
	changes uint32 // of the connection's session before the statement was prepared; see statements
	reuse   Reuse
	// own are the types of a program's executions, nil if the cache may not have its statement. mixed:
	// the types have changed, so only the program may execute it. before are the types that earlier
	// users have fixed, except where own has one.
	own, before argTypes
	mixed       bool
	execCtx     driver.StmtExecContext
	queryCtx    driver.StmtQueryContext
	checker     driver.NamedValueChecker
	converter   columnConverter
}

// NewStmt returns the Stmt of a statement that a connection's driver prepared.
func NewStmt(conn *Conn, stmt driver.Stmt) Stmt {
	s := Stmt{Stmt: stmt, conn: conn, inputs: stmt.NumInput(), changes: conn.cached.changes}
	s.execCtx, _ = stmt.(driver.StmtExecContext)
	s.queryCtx, _ = stmt.(driver.StmtQueryContext)
	s.checker, _ = stmt.(driver.NamedValueChecker)
	s.converter, _ = stmt.(columnConverter)
	return s
}

// Send executes the statement.
func (s *Stmt) Send(ctx context.Context, args []driver.NamedValue, want Want) (r Reply, err error) {
	switch {
	case want == WantResult && s.execCtx != nil:
		r.Result, err = s.execCtx.ExecContext(ctx, args)
	case want == WantRows && s.queryCtx != nil:
		r.Rows, err = answered(s.queryCtx.QueryContext(ctx, args))
	case want == WantResult:
		r.Result, err = withoutContext(ctx, args, s.Stmt.(stmtExecer).Exec)
	default:
		r.Rows, err = answered(withoutContext(ctx, args, s.Stmt.(stmtQueryer).Query))
	}
	return r, s.conn.noted(err)
}

// ExecContext is Send for a caller that doesn't read rows.
func (s *Stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	r, err := s.Send(ctx, args, WantResult)
	return r.Result, err
}

// QueryContext is Send for a caller that reads rows.
func (s *Stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	r, err := s.Send(ctx, args, WantRows)
	return r.Rows, err
}

// CheckArgs checks and converts arguments as database/sql does before it executes a statement. The
// last added arguments are keys, which errors about the number of arguments don't count. It
// converts only if the driver prepares all queries, since the connection has converted the others.
func (s *Stmt) CheckArgs(args []driver.NamedValue, added int) error {
	if want := s.inputs; want >= 0 && want != len(args) {
		return ArgCountError(want-added, len(args)-added)
	}
	if !s.conn.PreparesAll() {
		return nil
	}
	for i := range args {
		if err := s.convert(&args[i]); err != nil {
			return fmt.Errorf("sql: converting argument %s type: %w", argName(args[i]), err)
		}
	}
	return nil
}

// convert calls CheckNamedValue and then the converter, as database/sql does.
func (s *Stmt) convert(nv *driver.NamedValue) (err error) {
	if err = s.CheckNamedValue(nv); err != driver.ErrSkip {
		return err
	}
	nv.Value, err = s.ColumnConverter(nv.Ordinal - 1).ConvertValue(nv.Value)
	return err
}

// CheckNamedValue converts an argument as database/sql does. It calls the statement's checker or
// the connection's. If both skip or are missing, it uses the default converter. For a statement
// with a converter it returns driver.ErrSkip, so that database/sql calls the converter.
func (s *Stmt) CheckNamedValue(nv *driver.NamedValue) (err error) {
	if s.checker != nil {
		err = s.checker.CheckNamedValue(nv)
	} else {
		err = s.conn.CheckNamedValue(nv)
	}
	if err == driver.ErrSkip && s.converter == nil {
		err = DefaultConvert(nv)
	}
	return err
}

// ColumnConverter returns the converter for an argument that CheckNamedValue skips.
func (s *Stmt) ColumnConverter(idx int) driver.ValueConverter {
	if s.converter == nil {
		return driver.DefaultParameterConverter
	}
	return s.converter.ColumnConverter(idx)
}

func argName(nv driver.NamedValue) string {
	if nv.Name != "" {
		return fmt.Sprintf("with name %q", nv.Name)
	}
	return fmt.Sprintf("$%d", nv.Ordinal)
}

// ArgCountError returns an error with the message of database/sql.
func ArgCountError(want, got int) error {
	return fmt.Errorf("sql: expected %d arguments, got %d", want, got)
}
