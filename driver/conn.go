package driver

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/rewrite"
)

// conn is a connection of the base that fills INSERTs: the methods that
// database/sql calls. One goroutine at a time uses it, so nothing here is
// locked.
//
// SessionResetter and Validator are not here: see advertise.
type conn struct {
	session
	connector *Connector
	// Programs repeat themselves: last is the plan used last, and passed are the texts
	// that passed through last with nothing to do for them.
	last    *plan
	passed  passedTexts
	closed  bool
	stale   int // how often the statement at hand was planned again for its columns
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
)

func newConn(c *Connector, under driver.Conn) *conn {
	cache := c.cache
	if c.config.Statements == statementsOff {
		cache = nil
	}
	return &conn{connector: c, session: session{base: base.New(under, cache), servers: &c.servers, columns: &c.columns, lastID: newLastID()}}
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
			return base.Reply{}, c.connector.refused(err)
		}
		if p == nil || !p.fills {
			r, err := c.base.Direct(ctx, query, args, want)
			c.afterPass(ctx, use, p, args, r.Result, err)
			return r, err
		}
		r, err := p.execute(ctx, &c.session, nil, out, c.convertLate(args), want)
		if err == nil {
			c.stale = 0
			return r, nil
		}
		if again, err := c.again(ctx, err); !again {
			return base.Reply{}, c.connector.refused(err)
		}
	}
}

// planOrPass returns the plan of a text that may insert, nil for others. For one
// that passes through untouched it makes the session ready; rows says that it is
// sent for rows.
func (c *conn) planOrPass(ctx context.Context, query string, rows bool) (p *plan, use lastIDUse, err error) {
	if last := c.last; last != nil && last.key.text == query && last.fills {
		if p, err = c.planFor(ctx, query); err != nil || p.fills {
			return p, use, err
		}
	}
	if c.lastID.synced && c.transaction == nil && c.passed.has(query) {
		return nil, use, nil
	}
	class := rewrite.Classify(query)
	if class == rewrite.ClassPass && c.lastID.synced && c.transaction == nil && !rewrite.SetsLastInsertID(query, class) {
		// As most texts are: nothing to do before it or after.
		c.passed.add(query)
		return nil, use, nil
	}
	if class.MustParse() {
		if p, err = c.planFor(ctx, query); err != nil || p.fills {
			return p, use, err
		}
	}
	use, err = c.beforePass(ctx, query, class, p, rows)
	return p, use, err
}

// passedTexts are some texts for which there was nothing to do, whatever the rule. The
// zero value has none.
type passedTexts struct {
	texts [8]string
	next  uint8
}

// maxPassed is how long a text is at most that is kept so.
const maxPassed = 2 << 10

func (p *passedTexts) has(text string) bool {
	for i := range p.texts {
		if p.texts[i] == text {
			return true
		}
	}
	return false
}

func (p *passedTexts) add(text string) {
	if len(text) > 0 && len(text) <= maxPassed {
		p.texts[p.next%uint8(len(p.texts))] = text
		p.next++
	}
}

// planFor returns the plan of a text that may insert.
func (c *conn) planFor(ctx context.Context, query string) (*plan, error) {
	c.forInsert = query
	p, err := c.connector.rules.Load().plan(ctx, &c.session, c.last, query)
	c.forInsert = ""
	if c.last = p; len(query) > maxLiteralBytes {
		c.last = nil // too long to keep
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
		c.last = nil
		if c.stale++; c.stale <= maxStale && c.columnsChanged(ctx, stale.plan) {
			return true, stale.error
		}
		c.stale = 0
		return false, stale.error
	}
	c.stale = 0
	if err != errReplan || c.closed {
		return false, err
	}
	c.last = nil
	return true, err
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s := &stmt{conn: c, query: query, class: rewrite.Classify(query)}
	s.free = s.class == rewrite.ClassPass && !rewrite.MentionsLastInsertID(query)
	if err := s.prepare(ctx); err != nil {
		return nil, c.connector.refused(err)
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
	c.transaction = nil // it is the one
	return c.base.BeginTx(ctx, opts)
}

// Begin starts a transaction with the base's defaults.
//
// Deprecated: use BeginTx.
func (c *conn) Begin() (driver.Tx, error) {
	c.transaction = nil
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

// SessionResetter and Validator change what database/sql does by being there,
// so a connection shows them only when the base's does: there are four kinds.
type (
	resetConn      struct{ *conn }
	validConn      struct{ *conn }
	resetValidConn struct{ *conn }
)

var (
	_ driver.SessionResetter = resetConn{}
	_ driver.Validator       = validConn{}
	_ driver.SessionResetter = resetValidConn{}
	_ driver.Validator       = resetValidConn{}
)

func (c resetConn) ResetSession(ctx context.Context) error      { return c.base.ResetSession(ctx) }
func (c resetValidConn) ResetSession(ctx context.Context) error { return c.base.ResetSession(ctx) }

func (c validConn) IsValid() bool      { return c.base.IsValid() }
func (c resetValidConn) IsValid() bool { return c.base.IsValid() }

// advertise returns the connection with the optional interfaces that its base has.
func advertise(c *conn) driver.Conn {
	switch resets, validates := c.base.Resets(), c.base.Validates(); {
	case resets && validates:
		return resetValidConn{c}
	case resets:
		return resetConn{c}
	case validates:
		return validConn{c}
	}
	return c
}
