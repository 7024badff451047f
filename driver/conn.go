package driver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// conn is a connection of the underlying driver that adds keys to INSERTs. It has the methods that
// database/sql calls. It has no locks, since one goroutine at a time uses it.
type conn struct {
	base      base.Conn
	session   session.Session
	connector *Connector
	recent    recentQueries

	executed   bool  // the server may have executed the current statement, so it must not be run again
	executions uint8 // counts executions; see logs
	logged     bool  // executions are logged
	overMySQL  bool  // the underlying driver is go-sql-driver, which doesn't keep arguments
	key        [1]int64
	buffer     []driver.NamedValue // for arguments with keys, if overMySQL

	closed  bool
	onClose func() error
}

var (
	_ driver.Conn               = (*conn)(nil)
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ExecerContext      = (*conn)(nil)
	_ driver.NamedValueChecker  = (*conn)(nil)
	_ driver.Pinger             = (*conn)(nil)
	_ driver.QueryerContext     = (*conn)(nil)
	_ driver.SessionResetter    = (*conn)(nil)
	_ driver.Validator          = (*conn)(nil)
)

func newConn(c *Connector, under driver.Conn) (*conn, error) {
	cache := c.cache
	if !c.caches {
		cache = nil
	}
	conn := &conn{connector: c, overMySQL: base.IsMySQL(under)}
	var err error
	if conn.base, err = base.New(under, cache); err != nil {
		return nil, err
	}
	conn.session = session.New(&conn.base, &c.known)
	if conn.overMySQL { // another driver may choose the database
		conn.session.Begin(c.schema)
	}
	return conn, nil
}

// Unwrap returns the underlying driver's connection.
func (c *conn) Unwrap() driver.Conn { return c.base.Unwrap() }

// Connector returns the connector that the connection came from.
func (c *conn) Connector() *Connector { return c.connector }

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	r, err := c.run(ctx, query, args, false)
	return r.Result, err
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	r, err := c.run(ctx, query, args, true)
	return r.Rows, err
}

func (c *conn) run(ctx context.Context, query string, args []driver.NamedValue, rows bool) (base.Reply, error) {
	out := keysOf(ctx)
	if out != nil {
		out.reset()
	}
	c.executed = false
	return c.runOne(ctx, query, args, out, rows, false)
}

// runOne executes a string. If it is one of several statements, it is part of a string that runEach
// executes, and the underlying driver's driver.ErrSkip isn't for the caller.
func (c *conn) runOne(
	ctx context.Context, query string, args []driver.NamedValue, out *keysList, rows bool, ofSeveral bool,
) (base.Reply, error) {
	for attempt := 1; ; attempt++ {
		var of planned
		err := c.planFor(ctx, query, &of)
		split := false
		if !ofSeveral && (err != nil || of.plan.mayBeSeveral()) {
			split, err = c.splits(ctx, of.plan, err)
		}
		switch {
		case split:
			return c.runEach(ctx, query, args, out, rows)
		case err != nil:
			return base.Reply{}, c.refused(ctx, err)
		case !of.plan.fills():
			request := base.Request{Text: query, Args: args, User: len(args), Rows: rows}
			if !ofSeveral {
				request.How = base.Directly
			}
			return c.pass(ctx, of.query, of.plan, &request)
		}
		r, next, err := of.plan.exec(ctx, &call{conn: c, comments: of.comments, args: args, out: out, rows: rows, repeated: of.repeated})
		if err == nil {
			return r, nil
		}
		if !c.again(ctx, of.plan, next, attempt) {
			return base.Reply{}, c.refused(ctx, err)
		}
	}
}

// pass sends a statement that shardkey passes through. p is its plan, nil if it need not be parsed.
func (c *conn) pass(ctx context.Context, q *sqltoken.Query, p *plan, request *base.Request) (base.Reply, error) {
	use, err := c.session.BeforePass(ctx, q, p.given(), request.Rows)
	if err != nil {
		return base.Reply{}, c.refused(ctx, err)
	}
	r, err := c.base.Do(ctx, request)
	c.session.AfterPass(ctx, use, request.Args, r.Result, err)
	return r, err
}

// splits reports whether a string has to be executed one statement at a time. Without multiStatements
// the server would refuse all but one, which protects a program against statements that a user
// injects. A comment behind the last semicolon isn't one.
func (c *conn) splits(ctx context.Context, p *plan, err error) (bool, error) {
	if !errors.Is(err, rewrite.ErrSeveralStatements) {
		return p.mayBeSeveral() && !c.session.Client().Single, err
	}
	several, askErr := c.session.Several(ctx)
	return several, cmp.Or(askErr, err)
}

// planned is a query with its plan.
type planned struct {
	query    *sqltoken.Query // without the comments
	plan     *plan           // nil for a query that need not be parsed
	comments comments
	repeated bool // the connection executes the query often
}

// planFor sets of to a query with its plan, if it must be parsed. If the comments around it differ each
// time, as trace IDs do, the statement between them has the plan.
func (c *conn) planFor(ctx context.Context, text string, of *planned) error {
	if q := c.recent.find(text); q != nil && (q.plan == nil || q.plan.isCurrent(c)) {
		of.query, of.plan, of.repeated = &q.Query, q.plan, q.use()
		return nil
	}
	if q, around := c.recent.findCommented(text); q != nil && q.plan.isCurrent(c) && !(q.plan.fills() && c.recent.isRepeated(text)) {
		of.query, of.plan, of.comments = &q.Query, q.plan, around
		return nil
	}
	scanned := c.session.Client().Scan(text)
	if !scanned.MustParse() {
		of.query = c.recent.add(scanned, nil)
		return nil
	}
	if start, end := sqltoken.Commented(text); end-start < len(text) && !c.recent.isRepeated(text) {
		if err := c.newPlan(ctx, of, c.session.Client().Scan(text[start:end]), true); err == nil {
			of.comments = comments{text[:start], text[end:]}
			return nil
		}
		// The error, if there is one without comments, has its place in the query.
	}
	return c.newPlan(ctx, of, scanned, false)
}

func (c *conn) newPlan(ctx context.Context, of *planned, q sqltoken.Query, commented bool) (err error) {
	of.plan, err = c.connector.rules.Load().plan(ctx, &c.session, q.Text, commented)
	if err == nil && of.plan.lasting {
		of.query = c.recent.add(q, of.plan)
	} else {
		of.query = &q
	}
	return err
}

// maxStale limits how often a statement is planned again because a table's columns have changed.
const maxStale = 3

// again reports whether to plan a statement again whose plan couldn't be executed or prepared, since
// something that the plan depends on has changed meanwhile. attempt counts its plans, from 1. The attempts
// end, since an open connection keeps the current rule's generators open.
func (c *conn) again(ctx context.Context, p *plan, next followUp, attempt int) bool {
	switch next {
	case done:
		return false
	case resend:
		return attempt == 1
	}
	c.recent = recentQueries{} // a plan was outdated
	if next == replanColumns {
		return attempt <= maxStale && p.columnsChanged(ctx, &c.session)
	}
	return !c.closed
}

// refused counts and logs a refused statement, and returns its error. It replaces driver.ErrBadConn
// by the error of a context that ended. When a context ends, go-sql-driver closes the connection,
// and the next query of the same statement finds it closed. It also replaces it after the statement
// was sent: with driver.ErrBadConn, database/sql would run the statement on another connection.
func (c *conn) refused(ctx context.Context, err error) error {
	switch ended := ctx.Err(); {
	case !errors.Is(err, driver.ErrBadConn):
	case ended != nil:
		err = ended
	case c.executed:
		err = mysql.ErrInvalidConn
	}
	return c.connector.refused(err)
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.executed = false
	q := c.scan(query)
	s := &stmt{conn: c, query: q, free: isFree(&q)}
	if q.MustParse() {
		s.origin = c.session.Prepared()
	}
	if err := s.prepare(ctx); err != nil {
		_ = s.Close()
		return nil, c.refused(ctx, err)
	}
	return s, nil
}

// scan reads a query that isn't a recent one.
func (c *conn) scan(query string) sqltoken.Query {
	if q := c.recent.find(query); q != nil {
		return q.Query
	}
	return c.session.Client().Scan(query)
}

// Exec executes a statement. go-sql-driver's README calls it within Raw.
//
// Deprecated: use ExecContext.
func (c *conn) Exec(query string, args []driver.Value) (driver.Result, error) {
	return c.ExecContext(context.Background(), query, base.Named(args))
}

// Query is Exec for a statement that returns rows.
//
// Deprecated: use QueryContext.
func (c *conn) Query(query string, args []driver.Value) (driver.Rows, error) {
	return c.QueryContext(context.Background(), query, base.Named(args))
}

// Prepare is PrepareContext without a context.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	c.session.TransactionBegan()
	return c.base.BeginTx(ctx, opts)
}

// Begin is BeginTx without a context.
//
// Deprecated: use BeginTx.
func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *conn) Ping(ctx context.Context) error { return c.base.Ping(ctx) }

func (c *conn) CheckNamedValue(nv *driver.NamedValue) error { return c.base.CheckNamedValue(nv) }

// closeWith makes Close call f.
func (c *conn) closeWith(f func() error) { c.onClose = f }

// Close closes the underlying connection. If the connector is closed and this was its last
// connection, Close also closes the generators.
func (c *conn) Close() error {
	if c.closed {
		return c.base.Unwrap().Close()
	}
	c.closed = true
	err := c.base.Close()
	left := c.connector.leave()
	if c.onClose != nil {
		left = c.onClose()
	}
	if err != nil {
		return err
	}
	return left
}

func (c *conn) ResetSession(ctx context.Context) error { return c.base.ResetSession(ctx) }
func (c *conn) IsValid() bool                          { return c.base.IsValid() }
