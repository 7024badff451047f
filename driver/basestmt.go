package driver

import (
	"context"
	"database/sql/driver"
)

// baseStmt is a prepared statement, of the base or a fill of ours, with its
// optional interfaces, found once.
type baseStmt struct {
	driver.Stmt
	execCtx   driver.StmtExecContext
	queryCtx  driver.StmtQueryContext
	checker   driver.NamedValueChecker
	converter columnConverter
}

func newBaseStmt(stmt driver.Stmt) baseStmt {
	s := baseStmt{Stmt: stmt}
	s.execCtx, _ = stmt.(driver.StmtExecContext)
	s.queryCtx, _ = stmt.(driver.StmtQueryContext)
	s.checker, _ = stmt.(driver.NamedValueChecker)
	s.converter, _ = stmt.(columnConverter)
	return s
}

func (s *baseStmt) execContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if s.execCtx != nil {
		return s.execCtx.ExecContext(ctx, args)
	}
	values, err := namedToValues(args)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.exec(values)
}

func (s *baseStmt) queryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if s.queryCtx != nil {
		return s.queryCtx.QueryContext(ctx, args)
	}
	values, err := namedToValues(args)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.query(values)
}

// exec and query are the deprecated doors, which every statement has.
func (s *baseStmt) exec(values []driver.Value) (driver.Result, error) {
	return s.Stmt.(interface {
		Exec(args []driver.Value) (driver.Result, error)
	}).Exec(values)
}

func (s *baseStmt) query(values []driver.Value) (driver.Rows, error) {
	return s.Stmt.(interface {
		Query(args []driver.Value) (driver.Rows, error)
	}).Query(values)
}

// checkNamedValue does what database/sql does with an argument of this
// statement: the statement's checker, else the connection's, and where they
// skip or are not there, the statement's converter or the default one. A
// statement with a converter gets driver.ErrSkip for the last step, so that
// database/sql itself asks it.
func (s *baseStmt) checkNamedValue(conn *baseConn, nv *driver.NamedValue) error {
	var err error
	if s.checker != nil {
		err = s.checker.CheckNamedValue(nv)
	} else {
		err = conn.checkNamedValue(nv)
	}
	if err != driver.ErrSkip || s.converter != nil {
		return err
	}
	return defaultCheck(nv)
}

// columnConverter is asked only where checkNamedValue skips.
func (s *baseStmt) columnConverter(idx int) driver.ValueConverter {
	if s.converter == nil {
		return driver.DefaultParameterConverter
	}
	return s.converter.ColumnConverter(idx)
}

func defaultCheck(nv *driver.NamedValue) (err error) {
	nv.Value, err = driver.DefaultParameterConverter.ConvertValue(nv.Value)
	return err
}
