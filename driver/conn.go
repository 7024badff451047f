package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/rewrite"
)

// conn is a connection of the base that fills INSERTs: the methods that
// database/sql calls. One goroutine at a time uses it, so nothing here is
// locked.
type conn struct {
	base      base.Conn
	session   session.Session
	connector *Connector
	recent    recentTexts
	closed    bool
	stale     int // how often the statement at hand was planned again for its columns
	onClose   func() error
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

func newConn(c *Connector, under driver.Conn) *conn {
	cache := c.cache
	if c.config.Statements == statementsOff {
		cache = nil
	}
	conn := &conn{connector: c, base: base.New(under, cache)}
	conn.session = session.New(&conn.base, &c.known)
	return conn
}

// Unwrap returns the base's connection.
func (c *conn) Unwrap() driver.Conn { return c.base.Unwrap() }

// Connector returns the connector that the connection came from.
func (c *conn) Connector() *Connector { return c.connector }

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	r, err := c.run(ctx, query, args, base.WantResult)
	return r.Result, err
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	r, err := c.run(ctx, query, args, base.WantRows)
	return r.Rows, err
}

func (c *conn) run(ctx context.Context, query string, args []driver.NamedValue, want base.Want) (base.Reply, error) {
	out := keysOf(ctx)
	out.reset()
	for {
		p, use, err := c.planOrPass(ctx, query, want == base.WantRows)
		if err != nil {
			return base.Reply{}, c.refused(ctx, err)
		}
		if !p.fills() {
			r, err := c.base.Direct(ctx, query, args, want)
			c.session.AfterPass(ctx, use, args, r.Result, err)
			return r, err
		}
		r, err := p.execute(ctx, &c.session, nil, out, c.convertLate(args), want)
		if err == nil {
			c.stale = 0
			return r, nil
		}
		if again, err := c.again(ctx, err); !again {
			return base.Reply{}, c.refused(ctx, err)
		}
	}
}

// planOrPass returns the plan of a text that may insert, nil for others. For one
// that passes through untouched it makes the session ready; rows says that it is
// sent for rows.
func (c *conn) planOrPass(ctx context.Context, query string, rows bool) (p *plan, use session.Use, err error) {
	nothing := c.session.Settled() // to do for a text that does nothing to them
	if p, known := c.recent.find(query); known {
		if p == nil && nothing || p != nil && p.isCurrentWithout(c.connector.rules.Load(), &c.session) {
			return p, use, nil
		}
	}
	class := rewrite.Classify(query)
	if nothing && class == rewrite.ClassPass && !rewrite.SetsLastInsertID(query, class) {
		c.recent.add(query, nil)
		return nil, use, nil
	}
	if class.MustParse() {
		if p, err = c.planFor(ctx, query); err != nil || p.fills() {
			return p, use, err
		}
	}
	use, err = c.session.BeforePass(ctx, query, class, p.given(), rows)
	return p, use, err
}

// recentTexts are the last texts that a connection sent: programs repeat themselves. The
// zero value has none.
type recentTexts struct {
	texts [8]string
	plans [8]*plan // nil for a text that passes through, whatever the rule
	found uint8    // the text that was found last, which is often the next one
	next  uint8
}

// maxRecent is how long a text is at most that is kept so.
const maxRecent = 8 << 10

// find returns the plan of a text, which may be out of date, and whether it is known.
func (r *recentTexts) find(text string) (p *plan, known bool) {
	if at := r.found % uint8(len(r.texts)); r.texts[at] == text {
		return r.plans[at], len(text) > 0
	}
	for i := range r.texts {
		if r.texts[i] == text {
			r.found = uint8(i)
			return r.plans[i], len(text) > 0
		}
	}
	return nil, false
}

func (r *recentTexts) add(text string, p *plan) {
	if len(text) == 0 || len(text) > maxRecent {
		return
	}
	at := slices.Index(r.texts[:], text)
	if at < 0 {
		at = int(r.next) % len(r.texts)
		r.next++
	}
	r.texts[at], r.plans[at] = text, p
}

// planFor returns the plan of a text that may insert.
func (c *conn) planFor(ctx context.Context, query string) (*plan, error) {
	c.session.ForInsert = query
	p, err := c.connector.rules.Load().plan(ctx, &c.session, query)
	c.session.ForInsert = ""
	if err == nil && p.fills() && p.lasting {
		c.recent.add(query, p)
	}
	return p, err
}

// maxStale is how often a statement is planned again because a table's columns
// are others than a moment ago.
const maxStale = 3

// again reports whether a statement that failed is to be planned again: the rule
// was replaced, or the server refused columns that have changed since they were
// read, or an upsert's guard. While the connection is open the current rule's generators are, so that
// this comes to an end. Otherwise the error is the one to return.
func (c *conn) again(ctx context.Context, err error) (bool, error) {
	if stale, ok := err.(*staleError); ok {
		c.recent = recentTexts{} // a plan was out of date
		if c.stale++; c.stale <= maxStale && stale.plan.columnsChanged(ctx, &c.session) {
			return true, stale.error
		}
		c.stale = 0
		return false, stale.error
	}
	c.stale = 0
	if err != errReplan || c.closed {
		return false, err
	}
	c.recent = recentTexts{}
	return true, err
}

// refused counts and logs a statement that was refused, and returns its error. The error of
// a context that ended replaces driver.ErrBadConn: go-sql-driver closes a connection whose
// context ends, and a further query of the same statement finds it closed.
func (c *conn) refused(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil && errors.Is(err, driver.ErrBadConn) {
		err = ended
	}
	return c.connector.refused(err)
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s := &stmt{conn: c, query: query, class: rewrite.Classify(query)}
	s.free = s.class == rewrite.ClassPass && !rewrite.MentionsLastInsertID(query)
	if err := s.prepare(ctx); err != nil {
		return nil, c.refused(ctx, err)
	}
	return s, nil
}

// Exec is the method that go-sql-driver's README calls within Raw.
//
// Deprecated: use ExecContext.
func (c *conn) Exec(query string, args []driver.Value) (driver.Result, error) {
	return c.ExecContext(context.Background(), query, base.Named(args))
}

// Query is Exec for statements that return rows.
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

// Begin starts a transaction with the base's defaults.
//
// Deprecated: use BeginTx.
func (c *conn) Begin() (driver.Tx, error) {
	c.session.TransactionBegan()
	return c.base.Begin()
}

func (c *conn) Ping(ctx context.Context) error { return c.base.Ping(ctx) }

func (c *conn) CheckNamedValue(nv *driver.NamedValue) error {
	if c.base.PreparesAll() {
		return nil // database/sql will ask the statement; see convertLate
	}
	return c.base.CheckNamedValue(nv)
}

// convertLate converts the arguments of a filled text that CheckNamedValue let
// through. What the default conversion refuses is left to the base's statement.
func (c *conn) convertLate(args []driver.NamedValue) []driver.NamedValue {
	if !c.base.PreparesAll() {
		return args
	}
	args = slices.Clone(args)
	for i, nv := range args {
		if err := base.DefaultConvert(&nv); err == nil {
			args[i] = nv
		}
	}
	return args
}

// closeWith lets Close close what was opened for this connection alone.
func (c *conn) closeWith(f func() error) { c.onClose = f }

// Close closes the base's connection, and with the last connection of a closed
// connector the generators.
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
