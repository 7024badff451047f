package driver

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/rewrite"
)

// stmt is a prepared statement as the user wrote it. Behind it is the base's
// statement: of the same text, or, when that inserts into a sharded table, of one
// that has a placeholder for each key next to the user's. Which of both is found
// out again when the connector's rule has been replaced.
type stmt struct {
	conn  *conn
	query string
	class rewrite.Class
	// free: the text neither reads nor changes anything of the session.
	free   bool
	rules  *ruleSet // the rule that base was prepared with
	plan   *plan    // of a text that may insert
	base   base.Stmt
	inputs int // see NumInput
	// asks: the session has something to do before each execution.
	asks bool
}

var (
	_ driver.Stmt              = (*stmt)(nil)
	_ driver.StmtExecContext   = (*stmt)(nil)
	_ driver.StmtQueryContext  = (*stmt)(nil)
	_ driver.NamedValueChecker = (*stmt)(nil)
)

// prepare plans the text with the current rule and prepares what comes of it.
// The statement that was there before is closed.
func (s *stmt) prepare(ctx context.Context) error {
	for {
		rules := s.conn.connector.rules.Load()
		var p *plan
		var err error
		if s.class.MustParse() {
			if p, err = s.conn.planFor(ctx, s.query); err != nil {
				return err
			}
		}
		if !p.fills() && s.base.Stmt != nil && !s.plan.fills() {
			s.set(rules, p) // still the base's own statement
			return nil
		}
		prepared, err := s.prepareBase(ctx, p)
		if again, err := s.conn.again(ctx, err); again {
			continue
		} else if err != nil {
			return err
		}
		old := s.base.Stmt
		s.base = prepared
		s.set(rules, p)
		if old != nil {
			return old.Close()
		}
		return nil
	}
}

func (s *stmt) set(rules *ruleSet, p *plan) {
	s.rules, s.plan = rules, p
	if s.inputs = s.base.NumInput(); s.inputs >= 0 && s.plan.fills() && p.source() == nil {
		s.inputs -= p.added
	}
	s.asks = !s.plan.fills() && !s.free || p != nil && (len(p.columns) > 0 || p.Consulted&rewrite.NoAutoValueOnZero != 0)
}

// prepareBase prepares the text as it is, or with placeholders for its keys.
func (s *stmt) prepareBase(ctx context.Context, p *plan) (base.Stmt, error) {
	if !p.fills() {
		return s.conn.base.Prepare(ctx, s.query)
	}
	text, added := s.query, 0
	if p.source() == nil { // else it is prepared for its check and count alone
		text, added = p.BindText(), p.added
	}
	want := p.Params() + added
	if want > base.MaxPlaceholders {
		return base.Stmt{}, base.TooManyPlaceholders(p.Params(), added)
	}
	prepared, err := s.conn.base.Prepare(ctx, text)
	if err != nil {
		return base.Stmt{}, p.failed(err)
	}
	if n := prepared.NumInput(); n >= 0 && n != want {
		_ = prepared.Close()
		return base.Stmt{}, fmt.Errorf("%w: the server counts %d placeholders where %d are expected", ErrUnsupportedStatement, n, want)
	}
	return prepared, nil
}

// ready prepares the statement again when the rule was replaced, and makes the
// session ready for a text that passes; rows says that it is executed for rows.
func (s *stmt) ready(ctx context.Context, rows bool) (use session.Use, err error) {
	current := s.rules == s.conn.connector.rules.Load()
	if current && s.plan != nil && len(s.plan.columns) > 0 {
		s.conn.session.ForInsert = s.query
		current, err = s.plan.columnsHold(ctx, &s.conn.session)
		s.conn.session.ForInsert = ""
		if err != nil {
			return use, err
		}
	}
	if current && s.plan != nil && s.plan.Consulted&rewrite.NoAutoValueOnZero != 0 {
		// What a written 0 asks for, the servers decide with each execution.
		mode, _, err := s.conn.session.Mode(ctx)
		if err != nil {
			return use, err
		}
		current = (mode^s.plan.key.mode)&rewrite.NoAutoValueOnZero == 0
	}
	if !current {
		if err := s.prepare(ctx); err != nil {
			return use, err
		}
	}
	if s.free && !s.conn.session.PendingTransaction() || s.plan.fills() {
		return use, nil
	}
	return s.conn.session.BeforePass(ctx, s.query, s.class, s.plan.given(), rows)
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	r, err := s.run(ctx, args, base.WantResult)
	return r.Result, err
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	r, err := s.run(ctx, args, base.WantRows)
	return r.Rows, err
}

func (s *stmt) run(ctx context.Context, args []driver.NamedValue, want base.Want) (base.Reply, error) {
	out := keysOf(ctx)
	out.reset()
	for {
		var use session.Use
		if s.asks || s.rules != s.conn.connector.rules.Load() || s.conn.session.PendingTransaction() {
			var err error
			if use, err = s.ready(ctx, want == base.WantRows); err != nil {
				return base.Reply{}, s.conn.refused(ctx, err)
			}
		}
		if !s.plan.fills() {
			r, err := s.base.Send(ctx, args, want)
			s.conn.session.AfterPass(ctx, use, args, r.Result, err)
			return r, err
		}
		r, err := s.plan.execute(ctx, &s.conn.session, &s.base, out, args, want)
		if err == nil {
			s.conn.stale = 0
			return r, nil
		}
		if again, err := s.conn.again(ctx, err); !again {
			return r, s.conn.refused(ctx, err)
		}
		s.rules = nil
	}
}

// Exec is ExecContext without a context.
//
// Deprecated: use ExecContext.
func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), base.Named(args))
}

// Query is QueryContext without a context.
//
// Deprecated: use QueryContext.
func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), base.Named(args))
}

// NumInput is the base's count, less the placeholders of the keys.
func (s *stmt) NumInput() int { return s.inputs }

func (s *stmt) CheckNamedValue(nv *driver.NamedValue) error {
	return s.base.CheckNamedValue(nv)
}

// ColumnConverter is asked for the user's arguments; the base knows them by
// their place among the keys.
func (s *stmt) ColumnConverter(idx int) driver.ValueConverter {
	if s.plan.fills() && s.plan.source() == nil {
		idx += s.plan.FillsBefore(idx)
	}
	return s.base.ColumnConverter(idx)
}

func (s *stmt) Close() error { return s.base.Close() }
