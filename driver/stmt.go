package driver

import (
	"context"
	"database/sql/driver"

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
