package driver

import (
	"context"
	"database/sql/driver"

	"github.com/shardkey/shardkey/rewrite"
)

// maxPlaceholders is what the server takes in one prepared statement: their
// number is 16 bits wide in the protocol.
const maxPlaceholders = 65535

// fill is a text that inserts into ruled tables, with its plan. It is made
// once for a text and used by many connections at once.
type fill struct {
	rules *ruleSet
	key   planKey
	plan  *rewrite.Plan
	added int // placeholders of the bind text that are ours
	// fills: there is something to fill; else the text passes through.
	fills bool
	// kindless is a table whose kind of keys was not known yet.
	kindless *table
	// columns are what the plan depends on of its tables' columns.
	columns map[columnsKey][]string
}

// fillOrPass returns the plan for a text that must be filled, nil for one that
// passes through untouched, with the session ready for it.
func (c *conn) fillOrPass(ctx context.Context, query string) (*fill, error) {
	keysOf(ctx).reset()
	class := rewrite.Classify(query)
	if class == rewrite.MayInsert {
		if f, err := c.fillFor(ctx, query); f != nil || err != nil {
			return f, err
		}
	}
	return nil, c.passed(ctx, query, class)
}

// fillFor returns the plan for a text that must be filled, nil for one that
// passes through.
func (c *conn) fillFor(ctx context.Context, query string) (*fill, error) {
	if rewrite.Classify(query) != rewrite.MayInsert {
		return nil, nil
	}
	rules := c.connector.rules.Load()
	key := planKey{text: query}
	if c.session.modeKnown {
		key.mode = c.session.mode
	}
	f, err := c.planned(ctx, rules, key)
	if c.last = f; len(query) > maxLiteralBytes {
		c.last = nil // not worth keeping
	}
	if !c.session.modeKnown && (err != nil || f.plan.Consulted != 0) {
		// The text reads otherwise in another sql_mode: ask which one holds.
		mode, modeErr := c.sqlMode(ctx)
		if modeErr != nil {
			return nil, modeErr
		}
		if mode != key.mode && (err != nil || mode&f.plan.Consulted != 0) {
			key.mode = mode
			f, err = c.planned(ctx, rules, key)
		}
	}
	if err != nil || !f.fills {
		return nil, err
	}
	return f, nil
}

// exec executes the text with keys. It returns errReplan, before anything was
// sent or generated, when the rule has been replaced, and driver.ErrSkip when
// the arguments are not as many as the placeholders: database/sql then prepares
// the statement and says so in its own words.
func (f *fill) exec(ctx context.Context, c *conn, args []driver.NamedValue) (driver.Result, error) {
	if !f.rules.acquire() {
		return nil, errReplan
	}
	defer f.rules.release()
	if len(args) != f.plan.Params() {
		if f.failsAsText(args) {
			return c.base.execContext(ctx, f.key.text, args)
		}
		return nil, driver.ErrSkip
	}
	if in := f.source(); in != nil {
		return f.execSource(ctx, c, in, args)
	}
	e, err := f.begin(ctx, c, args)
	if err != nil {
		return nil, err
	}
	res, err := c.base.execOrPrepare(ctx, e.text, e.args, len(e.args)-len(args))
	if err != nil {
		return nil, f.failed(err)
	}
	return e.settle(ctx, res)
}

// query is exec for a text that returns rows, as INSERT … RETURNING does.
func (f *fill) query(ctx context.Context, c *conn, args []driver.NamedValue) (driver.Rows, error) {
	if !f.rules.acquire() {
		return nil, errReplan
	}
	defer f.rules.release()
	if len(args) != f.plan.Params() {
		if f.failsAsText(args) {
			return c.base.queryContext(ctx, f.key.text, args)
		}
		return nil, driver.ErrSkip
	}
	if in := f.source(); in != nil {
		return f.querySource(ctx, c, in, args)
	}
	e, err := f.begin(ctx, c, args)
	if err != nil {
		return nil, err
	}
	rows, err := c.base.queryOrPrepare(ctx, e.text, e.args, len(e.args)-len(args))
	if err != nil {
		return nil, f.failed(err)
	}
	e.settleRows()
	return rows, nil
}

// failsAsText tells whether the text, with placeholders but no arguments, is one
// for the server's own syntax error. Of several statements the server would run
// those before the placeholder, and they are not filled.
func (f *fill) failsAsText(args []driver.NamedValue) bool {
	return len(args) == 0 && f.plan.Statements == 1
}

// begin generates the keys and writes the text and arguments to send.
func (f *fill) begin(ctx context.Context, c *conn, args []driver.NamedValue) (*execution, error) {
	e, err := f.newExecution(ctx, c, args)
	if err != nil {
		return nil, err
	}
	// A text without arguments takes the keys as literals, as one message to
	// the server. With arguments they are bound: a literal would make each text
	// a new one for the server's cache of prepared statements. What is too much
	// to bind is written.
	literal := len(args) == 0 || len(args)+f.added > maxPlaceholders
	if literal = literal && e.haveLiterals(); literal {
		e.text = f.plan.LiteralText(e.fillKeys())
	} else {
		e.text = f.plan.BindText()
	}
	if e.args, err = e.bindArgs(!literal); err != nil {
		return nil, err
	}
	return e, nil
}

// source is the INSERT … SELECT that the text is, nil when it is none.
func (f *fill) source() *rewrite.Insert {
	if in := &f.plan.Inserts[0]; in.Source != nil {
		return in
	}
	return nil
}
