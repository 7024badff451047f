package driver

import (
	"context"
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
		t.setKind(rewrite.Integer)
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
	if f.kindless != nil && f.kindless.kind() != rewrite.UnknownKind {
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
		if t.kind() == rewrite.UnknownKind {
			f.kindless = t
		}
		key := newColumnsKey(schema, name, database)
		return &rewrite.Table{KeyColumn: r.Column, Kind: t.kind(), KeepExplicit: !r.FillExplicit, Columns: p.columns[key], Rule: t}
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
		if !in.Refused && (in.Table.Kind == rewrite.Integer || wantsKind(in)) {
			return true
		}
	}
	return false
}

// wantsKind tells whether the kind of the table's keys is needed before the
// first key is made: with integer keys, ON DUPLICATE KEY UPDATE is to report the
// existing row's.
func wantsKind(in *rewrite.Insert) bool {
	return in.OnDuplicate && in.Table.Kind == rewrite.UnknownKind
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
