package driver

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/shardkey/shardkey/rewrite"
)

// stmt is a prepared statement as the user wrote it. Behind it is the base's
// statement, or a fill when the text inserts into a ruled table; which of both
// is found out anew when the connector's rule has been replaced.
type stmt struct {
	conn   *conn
	query  string
	rules  *ruleSet // the rule that inner was planned with
	filled bool     // inner is a fill
	class  rewrite.Class
	inner  baseStmt
}

var (
	_ driver.Stmt              = (*stmt)(nil)
	_ driver.StmtExecContext   = (*stmt)(nil)
	_ driver.StmtQueryContext  = (*stmt)(nil)
	_ driver.NamedValueChecker = (*stmt)(nil)
	_ columnConverter          = (*stmt)(nil)
)

// prepare plans the text with the current rule and prepares what comes of it.
// The statement that was there before is closed.
func (s *stmt) prepare(ctx context.Context) error {
	for {
		rules := s.conn.connector.rules.Load()
		f, err := s.conn.fillFor(ctx, s.query)
		if err != nil {
			return err
		}
		if f == nil && s.inner.Stmt != nil && !s.filled {
			s.rules = rules // still the base's own statement
			return nil
		}
		inner, err := s.prepareInner(ctx, f)
		if s.conn.again(ctx, &err) {
			continue
		}
		if err != nil {
			return err
		}
		old := s.inner.Stmt
		s.rules, s.filled, s.inner = rules, f != nil, newBaseStmt(inner)
		if old != nil {
			return old.Close()
		}
		return nil
	}
}

func (s *stmt) prepareInner(ctx context.Context, f *fill) (driver.Stmt, error) {
	if f == nil {
		return s.conn.base.prepareContext(ctx, s.query)
	}
	return f.prepare(ctx, s.conn)
}

// again tells whether to execute once more, planned anew.
func (s *stmt) again(ctx context.Context, err *error) bool {
	if !s.conn.again(ctx, err) {
		return false
	}
	s.rules = nil
	return true
}

// ready plans the statement anew when the rule was replaced, and tells the
// session about a text that passes.
func (s *stmt) ready(ctx context.Context) error {
	keysOf(ctx).reset()
	if s.rules != s.conn.connector.rules.Load() {
		if err := s.prepare(ctx); err != nil {
			return err
		}
	}
	if !s.filled {
		return s.conn.passed(ctx, s.query, s.class)
	}
	return nil
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	for {
		if err := s.ready(ctx); err != nil {
			return nil, err
		}
		if res, err := s.inner.execContext(ctx, args); !s.again(ctx, &err) {
			return res, err
		}
	}
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	for {
		if err := s.ready(ctx); err != nil {
			return nil, err
		}
		if rows, err := s.inner.queryContext(ctx, args); !s.again(ctx, &err) {
			return rows, err
		}
	}
}

// Exec is ExecContext without a context.
//
// Deprecated: use ExecContext.
func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	ctx := context.Background()
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if s.filled {
		return s.ExecContext(ctx, valuesToNamed(args))
	}
	return s.inner.exec(args)
}

// Query is QueryContext without a context.
//
// Deprecated: use QueryContext.
func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	ctx := context.Background()
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if s.filled {
		return s.QueryContext(ctx, valuesToNamed(args))
	}
	return s.inner.query(args)
}

// NumInput is the base's count, less the placeholders that a fill added.
func (s *stmt) NumInput() int { return s.inner.Stmt.NumInput() }

func (s *stmt) CheckNamedValue(nv *driver.NamedValue) error {
	return s.inner.checkNamedValue(&s.conn.base, nv)
}

func (s *stmt) ColumnConverter(idx int) driver.ValueConverter {
	return s.inner.columnConverter(idx)
}

func (s *stmt) Close() error { return s.inner.Stmt.Close() }

// fillStmt is a prepared statement of a text with keys to fill. The base's
// statement behind it has a placeholder for each key beside the user's.
type fillStmt struct {
	fill *fill
	conn *conn
	base baseStmt
}

var (
	_ driver.Stmt              = (*fillStmt)(nil)
	_ driver.StmtExecContext   = (*fillStmt)(nil)
	_ driver.StmtQueryContext  = (*fillStmt)(nil)
	_ driver.NamedValueChecker = (*fillStmt)(nil)
	_ columnConverter          = (*fillStmt)(nil)
)

// prepare prepares the text with placeholders for its keys.
func (f *fill) prepare(ctx context.Context, c *conn) (driver.Stmt, error) {
	text, added := f.plan.BindText(), f.added
	if f.source() != nil {
		text, added = f.key.text, 0 // prepared for its check and count alone
	}
	if n := f.plan.Params() + added; n > maxPlaceholders {
		return nil, errTooManyPlaceholders(f.plan.Params(), added)
	}
	base, err := c.base.prepareContext(ctx, text)
	if err != nil {
		return nil, f.failed(err)
	}
	s := &fillStmt{fill: f, conn: c, base: newBaseStmt(base)}
	if n := base.NumInput(); n >= 0 && n != f.plan.Params()+added {
		_ = base.Close()
		return nil, fmt.Errorf("%w: the server counts %d placeholders where %d are expected", ErrUnsupportedStatement, n, f.plan.Params()+added)
	}
	return s, nil
}

// NumInput is the number of the user's placeholders: the base's count less
// ours.
func (s *fillStmt) NumInput() int {
	n := s.base.NumInput()
	if n < 0 || s.fill.source() != nil {
		return n
	}
	return n - s.fill.added
}

func (s *fillStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	f := s.fill
	if !f.rules.acquire() {
		return nil, errReplan
	}
	defer f.rules.release()
	if in := f.source(); in != nil {
		return f.execSource(ctx, s.conn, in, args)
	}
	e, err := s.begin(ctx, args)
	if err != nil {
		return nil, err
	}
	res, err := s.base.execContext(ctx, e.args)
	if err != nil {
		return nil, f.failed(err)
	}
	return e.settle(ctx, res)
}

func (s *fillStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	f := s.fill
	if !f.rules.acquire() {
		return nil, errReplan
	}
	defer f.rules.release()
	if in := f.source(); in != nil {
		return f.querySource(ctx, s.conn, in, args)
	}
	e, err := s.begin(ctx, args)
	if err != nil {
		return nil, err
	}
	rows, err := s.base.queryContext(ctx, e.args)
	if err != nil {
		return nil, f.failed(err)
	}
	e.settleRows()
	return rows, nil
}

// begin generates the keys and binds them.
func (s *fillStmt) begin(ctx context.Context, args []driver.NamedValue) (*execution, error) {
	if n := s.fill.plan.Params(); len(args) != n {
		return nil, argCountError(n, len(args))
	}
	e, err := s.fill.newExecution(ctx, s.conn, args)
	if err != nil {
		return nil, err
	}
	if e.args, err = e.bindArgs(true); err != nil {
		return nil, err
	}
	return e, s.base.checkArgs(&s.conn.base, e.args, s.fill.added)
}

// Exec is ExecContext without a context.
//
// Deprecated: use ExecContext.
func (s *fillStmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), valuesToNamed(args))
}

// Query is QueryContext without a context.
//
// Deprecated: use QueryContext.
func (s *fillStmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), valuesToNamed(args))
}

func (s *fillStmt) CheckNamedValue(nv *driver.NamedValue) error {
	return s.base.checkNamedValue(&s.conn.base, nv)
}

// ColumnConverter is asked for the user's arguments; the base knows them by
// their place among the keys.
func (s *fillStmt) ColumnConverter(idx int) driver.ValueConverter {
	return s.base.columnConverter(idx + s.fill.plan.FillsBefore(idx))
}

func (s *fillStmt) Close() error { return s.base.Close() }
