package driver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// stmt is a prepared statement as the program wrote it. Its base is the underlying driver's
// statement. For an INSERT into a sharded table, base also has a placeholder for each key. A stmt
// is planned again after the connector's rule was replaced.
type stmt struct {
	conn     *conn
	query    sqltoken.Query
	plan     *plan // nil for a query that need not be parsed
	comments comments
	rules    *ruleVersion // the rule of the plan
	base     base.Stmt
	count    base.Stmt // counts the rows of an INSERT … SELECT; zero for other statements
	// silent is base without the report of a key; see [rewrite.Keys].Unreported. It is prepared
	// when it is first needed.
	silent base.Stmt
	// origin is the session that base was prepared in, nil for a statement that can't insert. moved: the
	// session is another one now, and the plan's tables are qualified.
	origin *session.Origin
	moved  bool
	inputs int // the result of NumInput
	// asks: whether the plan may be used is asked before each execution. free: the session has nothing to do
	// with the statement, but after a SET TRANSACTION.
	asks, free bool
	// reusable: the connection's cache may have the statement after the program closes it. GORM, for
	// example, prepares an INSERT in each transaction.
	reusable bool
}

var (
	_ driver.Stmt              = (*stmt)(nil)
	_ driver.StmtExecContext   = (*stmt)(nil)
	_ driver.StmtQueryContext  = (*stmt)(nil)
	_ driver.NamedValueChecker = (*stmt)(nil)
)

// prepare plans the statement with the current rule, prepares the result and closes the previous
// prepared statement.
func (s *stmt) prepare(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		p, next, err := s.tryPrepare(ctx)
		if err == nil || !s.conn.again(ctx, p, next, attempt) {
			return err
		}
	}
}

func (s *stmt) tryPrepare(ctx context.Context) (p *plan, next followUp, err error) {
	rules := s.conn.connector.rules.Load()
	var of planned
	if s.query.MustParse() {
		if err = s.conn.planFor(ctx, s.query.Text, &of); err != nil {
			return nil, done, err
		}
	}
	p, s.comments = of.plan, of.comments
	if !s.base.IsZero() {
		if !p.fills() && !s.plan.fills() {
			s.set(rules, p) // the same statement under both rules
			return p, done, nil
		}
		if err := s.sameSession(ctx); err != nil {
			return p, done, err
		}
	}
	prepared, next, err := s.prepareBase(ctx, p)
	if err != nil {
		return p, next, err
	}
	count := base.Stmt{}
	if p.fills() && p.count != "" {
		count, err = s.conn.base.Prepare(ctx, s.comments.around(p.count))
		if err != nil && !isOtherWidth(err) { // which each execution reports
			_ = prepared.Close()
			return p, done, err
		}
	}
	closed := s.closeBase()
	s.base, s.count, s.moved = prepared, count, false
	s.set(rules, p)
	return p, done, closed
}

// closeBase closes the underlying statements, or returns them to the cache.
func (s *stmt) closeBase() (err error) {
	for _, other := range []*base.Stmt{&s.silent, &s.count} {
		if !other.IsZero() {
			err = cmp.Or(err, other.Close())
			*other = base.Stmt{}
		}
	}
	switch {
	case s.reusable:
		return cmp.Or(s.conn.base.Return(s.base, s.plan.Query()), err)
	case !s.base.IsZero():
		return cmp.Or(s.base.Close(), err)
	}
	return err
}

// sameSession returns an error if the server would prepare the statement in another way than it did.
func (s *stmt) sameSession(ctx context.Context) error {
	same, err := s.isSameSession(ctx)
	if err == nil && !same {
		err = refuse(ReasonUnsupported, StatementError{Message: "the statement must be prepared again, but it was " +
			"prepared in another database, sql_mode or character set; close it and prepare it again"})
	}
	return err
}

// isSameSession asks whether the server would prepare the statement as it did.
func (s *stmt) isSameSession(ctx context.Context) (bool, error) {
	same, err := s.conn.session.SameAs(ctx, s.origin)
	if same && !s.conn.session.IsCurrent(s.origin) {
		s.origin.Closed()
		s.origin = s.conn.session.Prepared()
	}
	return same, err
}

// follow is called before an execution in a session that has changed since PREPARE. The server
// executes the statement as it was prepared, so questions about its tables must name the database.
func (s *stmt) follow(ctx context.Context) error {
	switch same, err := s.isSameSession(ctx); {
	case err != nil, same, s.moved:
		return err
	case !s.origin.IsAsked():
		return s.sameSession(ctx) // its database is unknown
	}
	s.plan, s.moved = s.plan.in(s.origin.Database), true
	return nil
}

// form returns the prepared statement of a query to execute with args: with the report of a key or without.
func (s *stmt) form(ctx context.Context, query string, unreported bool, args []driver.NamedValue) (*base.Stmt, error) {
	prepared := &s.base
	if unreported {
		if prepared = &s.silent; prepared.IsZero() {
			if err := s.prepareSilent(ctx, query); err != nil {
				return nil, err
			}
		}
	}
	err := prepared.CheckArgs(args, s.plan.NumArgs)
	if err == nil && !prepared.Fits(args) {
		if err = s.sameSession(ctx); err == nil {
			err = s.conn.base.Exchange(ctx, prepared, query, args)
		}
	}
	return prepared, err
}

func (s *stmt) prepareSilent(ctx context.Context, query string) error {
	err := s.sameSession(ctx)
	if err == nil {
		s.silent, err = s.conn.base.Prepare(ctx, s.comments.around(query))
	}
	return err
}

func (s *stmt) set(rules *ruleVersion, p *plan) {
	s.rules, s.plan = rules, p
	if s.inputs = s.base.NumInput(); s.inputs >= 0 && s.plan.fills() {
		s.inputs -= p.added
	}
	s.reusable = s.isReusable(p)
	s.asks = p != nil && (len(p.columns) > 0 || !p.expires.IsZero() || !p.sameIn(p.key.mode^modesOfEach))
}

// isReusable reports whether the connection may cache an INSERT's prepared statement.
func (s *stmt) isReusable(p *plan) bool {
	return s.conn.overMySQL && p.fills() && p.how.Caches() && p.NumArgs > 0 && s.comments == (comments{})
}

// modesOfEach are the modes that the server reads for each execution of a prepared statement. They
// decide whether a literal such as 0, -1 or 'x' requests a key.
const modesOfEach = sqltoken.NoAutoValueOnZero | sqltoken.Strict

// prepareBase prepares the statement unchanged, or with placeholders for its keys.
func (s *stmt) prepareBase(ctx context.Context, p *plan) (prepared base.Stmt, next followUp, err error) {
	if !p.fills() {
		prepared, err = s.conn.base.Prepare(ctx, s.query.Text)
		return prepared, done, err
	}
	text, added := s.comments.around(p.Query()), p.added
	want := p.NumArgs + added
	if want > base.MaxPlaceholders {
		return base.Stmt{}, done, base.TooManyPlaceholders(p.NumArgs, added)
	}
	if !s.isReusable(p) {
		prepared, err = s.conn.base.Prepare(ctx, text)
	} else if prepared = s.conn.base.Take(text); !prepared.IsZero() {
		return prepared, done, nil
	} else {
		prepared, err = s.conn.base.PrepareShared(ctx, text, want, p.how)
	}
	if isOtherWidth(err) {
		if unchanged, own := s.conn.base.Prepare(ctx, s.query.Text); own != nil {
			err = own // the server's error for the program's statement: 1136
		} else {
			_ = unchanged.Close()
		}
	}
	if err != nil {
		next, err = p.refused(ctx, err)
		return base.Stmt{}, next, err
	}
	if n := prepared.NumInput(); n >= 0 && n != want {
		_ = prepared.Close()
		return base.Stmt{}, done, fmt.Errorf("%w: expected %d placeholders, the server found %d", ErrUnsupportedStatement, want, n)
	}
	return prepared, done, nil
}

// ready prepares the statement again if the rule was replaced, or if its plan may not be used any more.
func (s *stmt) ready(ctx context.Context, attempt int) (err error) {
	if s.hasMoved() {
		if err := s.follow(ctx); err != nil {
			return err
		}
	}
	current := attempt == 1 && s.rules == s.conn.connector.rules.Load()
	current = current && (s.plan == nil || s.hasMoved() || !s.plan.isExpired())
	if current && s.plan != nil && len(s.plan.columns) > 0 {
		if current, err = s.plan.columnsHold(ctx, &s.conn.session); err != nil {
			return err
		}
	}
	if current && s.plan != nil && !s.plan.sameIn(s.plan.key.mode^modesOfEach) {
		mode, _, err := s.conn.session.Mode(ctx)
		if err != nil {
			return err
		}
		current = s.plan.sameIn(mode&modesOfEach | s.plan.key.mode&^modesOfEach)
	}
	if !current {
		return s.prepare(ctx)
	}
	return nil
}

// hasMoved reports whether the session has changed since an INSERT was prepared.
func (s *stmt) hasMoved() bool { return s.plan.fills() && !s.conn.session.IsCurrent(s.origin) }

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	r, err := s.run(ctx, args, false)
	return r.Result, err
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	r, err := s.run(ctx, args, true)
	return r.Rows, err
}

func (s *stmt) run(ctx context.Context, args []driver.NamedValue, rows bool) (base.Reply, error) {
	out := keysOf(ctx)
	out.reset()
	if s.free && !s.conn.session.PendingTransaction() {
		return s.conn.base.Do(ctx, &base.Request{Stmt: &s.base, Args: args, Rows: rows})
	}
	s.conn.executed = false
	for attempt := 1; ; attempt++ {
		if s.asks || s.hasMoved() || attempt > 1 || s.rules != s.conn.connector.rules.Load() {
			if err := s.ready(ctx, attempt); err != nil {
				return base.Reply{}, s.conn.refused(ctx, err)
			}
		}
		if !s.plan.fills() {
			return s.conn.pass(ctx, &s.query, s.plan, &base.Request{Stmt: &s.base, Args: args, Rows: rows})
		}
		r, next, err := s.plan.exec(ctx, &call{conn: s.conn, stmt: s, comments: s.comments, args: args, out: out, rows: rows})
		if err == nil {
			return r, nil
		}
		s.reusable = false // the server may have parts of long arguments
		if !s.conn.again(ctx, s.plan, next, attempt) {
			return base.Reply{}, s.conn.refused(ctx, err)
		}
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

// NumInput returns the number of placeholders without those for keys.
func (s *stmt) NumInput() int { return s.inputs }

func (s *stmt) CheckNamedValue(nv *driver.NamedValue) error {
	return s.base.CheckNamedValue(nv)
}

func (s *stmt) Close() error {
	if s.origin != nil {
		s.origin.Closed()
		s.origin = nil
	}
	return s.closeBase()
}
