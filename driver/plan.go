package driver

import (
	"context"
	"database/sql/driver"
	"sync/atomic"

	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// table is a ruled table at work in one connector.
type table struct {
	rule  *rule.Table
	ints  spi.Int64KeyGenerator // the generator, when its keys are int64
	kinds atomic.Uint32         // rewrite.Kind, once known
}

func (c *planCache) table(r *rule.Table) *table {
	if t, ok := c.tables.Load(r); ok {
		return t.(*table)
	}
	t := &table{rule: r}
	if t.ints, _ = r.Generator.(spi.Int64KeyGenerator); t.ints != nil {
		t.setKind(rewrite.KindInteger)
	}
	actual, _ := c.tables.LoadOrStore(r, t)
	return actual.(*table)
}

func (t *table) kind() rewrite.Kind     { return rewrite.Kind(t.kinds.Load()) }
func (t *table) setKind(k rewrite.Kind) { t.kinds.Store(uint32(k)) }

func (t *table) column() spi.Column {
	return spi.Column{Table: t.rule.Logical, Name: t.rule.Column}
}

// planned returns the plan of a text, from the cache when it still holds.
func (c *conn) planned(ctx context.Context, rules *ruleSet, key planKey) (*fill, error) {
	f := c.last
	if f == nil || f.rules != rules || f.key != key {
		f = rules.plans.get(key)
	}
	if f != nil {
		current, err := c.isCurrent(ctx, f)
		if current || err != nil {
			return f, err
		}
	}
	p := planner{conn: c, rules: rules, key: key, columns: map[columnsKey][]string{}}
	f, err := p.plan(ctx)
	// What does not fit the columns may fit them tomorrow: it is planned anew.
	if err == nil && (len(f.columns) == 0 || !anyRefused(f.plan)) {
		rules.plans.put(key, f)
	}
	return f, err
}

// isCurrent tells whether a plan was made with what is known now: the kind of a
// table's keys shows with the first key, and a table's columns depend on the
// current database when its name is not qualified.
func (c *conn) isCurrent(ctx context.Context, f *fill) (bool, error) {
	if f.kindless != nil && f.kindless.kind() != rewrite.KindUnknown {
		return false, nil
	}
	for key := range f.columns {
		if !key.unqualified {
			continue
		}
		if database, err := c.currentDatabase(ctx); err != nil || database != key.schema {
			return false, err
		}
	}
	return true, nil
}

// planner makes the plan of one text. It parses, gets what the parser found
// missing, and parses again.
type planner struct {
	conn    *conn
	rules   *ruleSet
	key     planKey
	columns map[columnsKey][]string
	cached  bool // some columns came from the cache, and may be out of date
	inText  bool
}

func (p *planner) plan(ctx context.Context) (*fill, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f := &fill{rules: p.rules, key: p.key}
		plan, err := p.parse(ctx, f)
		if err != nil {
			return nil, err
		}
		again, err := p.resolve(ctx, plan)
		if err != nil {
			return nil, err
		}
		if !again {
			return p.finish(f, plan), nil
		}
	}
}

func (p *planner) parse(ctx context.Context, f *fill) (*rewrite.Plan, error) {
	database, err := p.databaseIfUsed(ctx)
	if err != nil {
		return nil, err
	}
	opts := rewrite.Options{Mode: p.key.mode, InText: p.inText}
	opts.Tables = func(schema, name string) *rewrite.Table {
		r := p.rules.generators.Lookup(schema, name)
		if r == nil {
			return nil
		}
		t := p.rules.plans.table(r)
		if t.kind() == rewrite.KindUnknown {
			f.kindless = t
		}
		key := newColumnsKey(schema, name, database)
		return &rewrite.Table{KeyColumn: r.Column, Kind: t.kind(), KeepExplicit: r.ExplicitKeys == rule.KeepExplicit, Columns: p.columns[key], Rule: t}
	}
	return rewrite.Parse(p.key.text, opts)
}

// databaseIfUsed is the current database once columns were asked for.
func (p *planner) databaseIfUsed(ctx context.Context) (string, error) {
	if len(p.columns) == 0 {
		return "", nil
	}
	return p.conn.currentDatabase(ctx)
}

// resolve gets what a plan misses, and tells whether to parse again.
func (p *planner) resolve(ctx context.Context, plan *rewrite.Plan) (again bool, err error) {
	switch {
	case len(plan.Inserts) == 0:
		return false, nil
	case plan.Missing != nil && plan.MissingColumns:
		return true, p.readColumns(ctx, plan.Missing, false)
	case plan.Missing != nil:
		return true, plan.Missing.Table.Rule.(*table).learnKind(ctx)
	case p.cached && anyRefused(plan):
		// The columns may have changed since they were read.
		p.cached = false
		for i := range plan.Inserts {
			if err := p.readColumns(ctx, &plan.Inserts[i], true); err != nil {
				return false, err
			}
		}
		return true, nil
	case !p.inText && wantsInText(plan):
		server, err := p.conn.serverOf(ctx)
		if err != nil {
			return false, err
		}
		if p.inText = server.lastInsertID; !p.inText {
			return false, nil
		}
		return true, learnKinds(ctx, plan)
	}
	return false, nil
}

func (p *planner) readColumns(ctx context.Context, in *rewrite.Insert, fresh bool) error {
	database, err := p.conn.currentDatabase(ctx)
	if err != nil {
		return err
	}
	key := newColumnsKey(in.Schema, in.Name, database)
	columns, cached := p.rules.plans.columns.get(key)
	if !cached || fresh {
		if columns, err = p.conn.readColumns(ctx, in.Schema, in.Name); err != nil {
			return err
		}
		p.rules.plans.columns.put(key, columns)
	}
	p.cached = p.cached || cached && !fresh
	p.columns[key] = columns
	return nil
}

// finish makes the fill of a plan that misses nothing.
func (p *planner) finish(f *fill, plan *rewrite.Plan) *fill {
	f.plan = plan
	f.added = plan.Fills()
	f.columns = p.columns
	for i := range plan.Inserts {
		f.fills = f.fills || !plan.Inserts[i].Refused || plan.Inserts[i].Listed
	}
	return f
}

func anyRefused(plan *rewrite.Plan) bool {
	for i := range plan.Inserts {
		if plan.Inserts[i].Refused {
			return true
		}
	}
	return false
}

// wantsInText tells whether it matters what the server makes of
// LAST_INSERT_ID(expr).
func wantsInText(plan *rewrite.Plan) bool {
	for i := range plan.Inserts {
		in := &plan.Inserts[i]
		if !in.Refused && (in.Table.Kind == rewrite.KindInteger || wantsKind(in)) {
			return true
		}
	}
	return false
}

// wantsKind tells whether the kind of the table's keys is needed before the
// first key is made: with integer keys, ON DUPLICATE KEY UPDATE is to report the
// existing row's.
func wantsKind(in *rewrite.Insert) bool {
	return in.OnDuplicate && in.Table.Kind == rewrite.KindUnknown
}

// learnKinds finds out the kinds that are needed so.
func learnKinds(ctx context.Context, plan *rewrite.Plan) error {
	for i := range plan.Inserts {
		if in := &plan.Inserts[i]; wantsKind(in) {
			if err := in.Table.Rule.(*table).learnKind(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

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
	if class == rewrite.ClassMayInsert {
		if f, err := c.fillFor(ctx, query); f != nil || err != nil {
			return f, err
		}
	}
	return nil, c.passed(ctx, query, class)
}

// fillFor returns the plan for a text that must be filled, nil for one that
// passes through.
func (c *conn) fillFor(ctx context.Context, query string) (*fill, error) {
	if rewrite.Classify(query) != rewrite.ClassMayInsert {
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
