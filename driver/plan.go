package driver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// plan is the parsed form of a statement that inserts into sharded tables. It is made once for each
// statement, and many connections use it concurrently.
type plan struct {
	*rewrite.Plan
	rules   *ruleVersion
	key     planKey
	targets []plannedInsert // one for each of Inserts; empty for a statement that is passed through
	added   int             // the number of placeholders for keys in the statement to bind
	// several: there may be several results, since the query has a semicolon.
	several bool
	// reads: the statement may read LAST_INSERT_ID().
	reads bool
	// readsCounts: see [session.ReadsCounts].
	readsCounts bool
	// cacheable: the prepared statement may be cached.
	cacheable bool
	// lasting: the plan may be used again. It isn't while the generator hasn't shown the kind of a
	// table's keys, if a row didn't match the columns, or if the key's type decided about a value.
	lasting bool
	// columns are the columns of the tables, as far as the plan depends on them.
	columns map[session.Table][]string

	givenOnce   sync.Once
	givenValues session.Given // for a statement that is passed through
}

// source returns the INSERT … SELECT, nil if the statement isn't one.
func (p *plan) source() *rewrite.Insert {
	if in := &p.Inserts[0]; in.Source != nil {
		return in
	}
	return nil
}

// fills reports whether the statement needs generated keys. Otherwise it is passed through. p may
// be nil.
func (p *plan) fills() bool { return p != nil && len(p.targets) > 0 }

// plannedInsert is the table of an INSERT in a plan.
type plannedInsert struct {
	in     *rewrite.Insert
	table  *keyedTable
	column *session.Column
	shard  *actualTable // the actual table that the INSERT names; nil if it names none
	// single: the INSERT has one row of values with a generated key, and no clause that affects the
	// key.
	single bool
	// geneAt is the index of the shard bits' column among the columns whose values the plan knows.
	// geneColumn is that column; nil if keys have no shard bits.
	geneAt     int
	geneColumn *session.Column
}

// generate generates n keys of the table, independent of the rows' values. If n is 1, it uses the
// array one.
func (t *plannedInsert) generate(ctx context.Context, n int, one *[1]int64) (rewrite.Keys, error) {
	if t.shard != nil && t.shard.belongs != nil && t.table.ints != nil {
		return t.shard.generate(ctx, n, one)
	}
	return t.table.generate(ctx, n, one)
}

// drawsByRow reports whether keys must be drawn for each row's values.
func (t *plannedInsert) drawsByRow() bool {
	x := t.shard
	return x != nil && x.key >= 0 && (x.belongs == nil || t.table.ints == nil)
}

func (p *plan) anyRefused() bool {
	for i := range p.Inserts {
		if p.Inserts[i].Invalid {
			return true
		}
	}
	return false
}

// keyedTable is a sharded table, as one connector uses it.
type keyedTable struct {
	rule   *rule.Table
	ints   spi.Int64KeyGenerator // the generator if its keys are int64, otherwise nil
	warned atomic.Bool           // a warning about keys that aren't consecutive was logged
	// unguarded: the server refused an upsert that assigns the key to itself.
	unguarded atomic.Bool
	// warnedKeys: a warning about keys that couldn't be found in the table was logged.
	warnedKeys atomic.Bool
	// warnedUpdate: a warning about an expression for a sharding column was logged.
	warnedUpdate atomic.Bool
	kinds        atomic.Uint32 // a keyKind
	counts       *tableCounts

	gene       *rule.ShardBits // the shard bits in keys; nil for none
	turns      searchLock      // shared by the tables of a generator
	shards     sync.Map        // *actualTable by schema and name
	shardCount atomic.Int64
}

func newTable(r *rule.Table, of *tableCounts, ofGenerator searchLock) *keyedTable {
	t := &keyedTable{rule: r, counts: of, turns: ofGenerator}
	if t.ints, _ = r.Generator.(spi.Int64KeyGenerator); t.ints != nil {
		t.setKind(kindInteger)
		t.gene = r.ShardBits // an ambiguous name has a generator that refuses all calls
	}
	return t
}

// keyKind returns the kind of keys that the plan was made for.
func (t *plannedInsert) keyKind() keyKind {
	switch {
	case t.in.Table.Strings:
		return kindText
	case t.in.Table.Untyped:
		return kindUnknown
	}
	return kindInteger
}

// keyKind is the kind of a generator's keys.
type keyKind uint8

const (
	kindUnknown keyKind = iota // neither the generator nor the key column shows the kind
	kindInteger
	kindText // strings or bytes
)

// kind returns the kind of the generator's keys. It is unknown before the first key of a generator
// that isn't an [spi.Int64KeyGenerator].
func (t *keyedTable) kind() keyKind     { return keyKind(t.kinds.Load()) }
func (t *keyedTable) setKind(k keyKind) { t.kinds.Store(uint32(k)) }

// kindIn returns the kind of a table's keys. Before the first key of a generator that may return any
// kind, the type of the key column decides.
func (t *keyedTable) kindIn(ctx context.Context, s *session.Session, column *session.Column) (keyKind, error) {
	if kind := t.kind(); kind != kindUnknown {
		return kind, nil
	}
	known, err := column.Learn(ctx, s)
	switch {
	case err != nil:
		return kindUnknown, err
	case known.Form == columntype.Integer:
		return kindInteger, nil
	case known.Text != "" || s.IsAssumed():
		return kindText, nil
	}
	return kindUnknown, nil
}

func (t *keyedTable) column() spi.Column {
	return spi.Column{Table: t.rule.Logical, Name: t.rule.Column}
}

// plan returns the plan of a statement in a session, from the cache or a new one.
func (r *ruleVersion) plan(ctx context.Context, s *session.Session, query string) (*plan, error) {
	key := planKey{text: query}
	modeKnown := false
	key.mode, key.charset, modeKnown = s.KnownMode()
	p, err := r.planAs(ctx, s, key)
	if modeKnown || session.IsFatal(ctx, err) || err == nil && p.InAnySession() {
		return p, err
	}
	// The statement depends on the sql_mode or character set: query them.
	mode, charset, askErr := s.Before(session.ReadsCounts(query, key.mode)).Mode(ctx)
	switch same := charset == key.charset; {
	case err != nil && errors.Is(askErr, ErrUnsupportedStatement):
		return nil, err // the refusal is more useful
	case askErr != nil:
		return nil, askErr
	case same && mode == key.mode, err == nil && p.SameIn(mode.String(), charset.String()):
		return p, err
	}
	key.mode, key.charset = mode, charset
	return r.planAs(ctx, s, key)
}

// planAs returns the plan of a statement for a certain sql_mode and character set.
func (r *ruleVersion) planAs(ctx context.Context, s *session.Session, key planKey) (*plan, error) {
	p := r.plans.get(key)
	if p == nil {
		r.counts.planMisses.Add(1)
	} else {
		r.counts.planHits.Add(1)
		if current, err := p.isCurrent(ctx, s); current || err != nil {
			return p, err
		}
	}
	return r.newPlan(ctx, s, key)
}

// isCurrentWithout reports whether a plan is valid in the session under the current rule, without
// querying the server. If it returns false, the plan may still be valid.
func (p *plan) isCurrentWithout(rules *ruleVersion, s *session.Session) bool {
	if p.rules != rules || len(p.columns) > 0 {
		return false
	}
	if mode, charset, known := s.KnownMode(); known {
		return p.key.mode == mode && p.key.charset == charset
	}
	return p.InAnySession()
}

// sameIn reports whether the plan is the same for another sql_mode.
func (p *plan) sameIn(mode sqltoken.Mode) bool {
	return p.SameIn(mode.String(), p.key.charset.String())
}

// isCurrent reports whether a plan is valid in the session. An unqualified table name depends on
// the current database.
func (p *plan) isCurrent(ctx context.Context, s *session.Session) (bool, error) {
	s = s.Before(p.readsCounts)
	for t := range p.columns {
		if named, err := s.Names(ctx, t); !named || err != nil {
			return false, err
		}
	}
	return p.columnsHold(ctx, s)
}

// newPlan parses a statement. If columns from the cache don't match it, newPlan reads the columns
// again, since they may have changed.
func (r *ruleVersion) newPlan(ctx context.Context, s *session.Session, key planKey) (*plan, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	readsCounts := session.ReadsCounts(key.text, key.mode)
	s = s.Before(readsCounts)
	g := planner{session: s, rules: r}
	p, err := g.read(ctx, key)
	if err == nil && g.cached && p.anyRefused() && !s.IsAssumed() {
		g = planner{session: s, rules: r, fresh: true}
		p, err = g.read(ctx, key)
	}
	if err != nil {
		return nil, err
	}
	p.readsCounts = readsCounts
	p.lasting = g.kindsKnown() && !g.typed && (len(p.columns) == 0 || !p.anyRefused())
	if !r.plans.holds(key, p) {
		return p, nil
	}
	seen := r.plans.isSeen(key)
	if !seen || !p.isSameAgain() { // otherwise a plan of this key was verified before the cache dropped it
		if err := r.verifier.verify(key.text, g.options(ctx, key), p.Plan); err != nil {
			return nil, err
		}
	}
	r.plans.see(key)
	if p.lasting && (seen || p.NumArgs > 0) {
		r.plans.put(key, p)
	}
	return p, nil
}

// isSameAgain reports whether planning the same key with the same rules always returns this plan.
// No part of it depends on the server.
func (p *plan) isSameAgain() bool {
	return len(p.columns) == 0 && !slices.ContainsFunc(p.Inserts, func(in rewrite.Insert) bool { return in.OnDuplicate })
}

// planner is the context of parsing one statement.
type planner struct {
	session *session.Session
	rules   *ruleVersion
	fresh   bool // read columns from the server, not from the cache
	cached  bool // some columns came from the cache
	columns map[session.Table][]string
	typed   bool // the type of a key column decided about a value
	// failed is the error of lookup, for example for a table that isn't in the rule.
	failed error
	// tables are the sharded tables that the parser looked up.
	tables map[*rewrite.Table]*keyedTable
}

// read returns the plan of a statement.
func (g *planner) read(ctx context.Context, key planKey) (*plan, error) {
	g.rules.plans.parses.Add(1)
	parsed, err := rewrite.Parse(key.text, g.options(ctx, key))
	if err == nil {
		err = g.failed
	}
	if err != nil {
		return nil, err
	}
	p := &plan{Plan: parsed, rules: g.rules, key: key, added: parsed.NumKeys, columns: g.columns, targets: make([]plannedInsert, len(parsed.Inserts))}
	for i := range p.targets {
		p.targets[i] = g.target(&p.Inserts[i])
	}
	p.reads = p.fills() && (p.Statements > 1 || p.Inserts[0].ReadsLastID)
	p.several = strings.IndexByte(key.text, ';') >= 0
	p.cacheable = p.Statements == 1 && p.fills() && p.source() == nil && base.Cacheable(key.text)
	return p, nil
}

func (g *planner) target(in *rewrite.Insert) plannedInsert {
	table := g.tables[in.Table]
	t := plannedInsert{in: in, table: table, column: g.session.KeyColumn(in), shard: table.shard(in.Schema, in.Name)}
	t.single = in.Source == nil && len(in.Rows) == 1 && in.AllGenerated && !in.OnDuplicate && !in.Returning && !in.ReadsLastID && !in.Invalid
	if table.gene != nil {
		_, t.geneAt = withGene(in.Table.Recorded, table.rule.ShardBits)
		t.geneColumn = g.session.Column(in.Schema, in.Name, table.rule.ShardBits.Column)
	}
	return t
}

// options returns the parser's options.
func (g *planner) options(ctx context.Context, key planKey) rewrite.Options {
	return rewrite.Options{
		SQLMode: key.mode.String(),
		Charset: key.charset.String(),
		AskServer: func() (rewrite.Server, error) {
			server, err := g.session.Server(ctx)
			if err != nil {
				return rewrite.Server{}, err
			}
			return server.SQL, nil
		},
		Table: func(schema, name string) *rewrite.Table { return g.lookup(ctx, schema, name) },

		NamesBeyondASCII: g.rules.generators.NamesBeyondASCII(),

		AskColumns: func(in *rewrite.Insert) ([]string, error) { return g.readColumns(ctx, in) },
		AskKeyColumn: func(in *rewrite.Insert) (strings, unsigned bool, err error) {
			g.typed = true
			return g.session.KeyColumn(in).Kind(ctx, g.session)
		},
	}
}

func (g *planner) lookup(ctx context.Context, schema, name string) *rewrite.Table {
	r := g.rules.generators.Lookup(schema, name)
	if r == nil {
		if err := g.rules.unlisted.check(g.rules.generators, schema, name); err != nil {
			g.failed = cmp.Or(g.failed, err)
		}
		return nil
	}
	t := g.rules.plans.table(r)
	if inUse := g.rules.inUse; inUse != nil {
		t.assume(inUse)
	}
	kind, err := t.kindIn(ctx, g.session, g.session.Column(schema, name, r.Column))
	if err != nil {
		g.failed = cmp.Or(g.failed, err)
	}
	parsed := &rewrite.Table{Key: r.Column, Strings: kind == kindText, Untyped: kind == kindUnknown,
		KeepExplicit: r.ExplicitKeys == "keep", NoReport: t.unguarded.Load()}
	if x := t.shard(schema, name); x != nil {
		parsed.Recorded = x.Columns
	}
	if r.ShardBits != nil {
		parsed.Recorded, _ = withGene(parsed.Recorded, r.ShardBits)
	}
	if r.Sharding != nil && r.ShardGuard != "off" {
		parsed.Fixed = r.Sharding.Columns
	}
	if g.tables == nil {
		g.tables = map[*rewrite.Table]*keyedTable{}
	}
	g.tables[parsed] = t
	return parsed
}

// kindsKnown reports whether the generators have shown the kinds of their keys.
func (g *planner) kindsKnown() bool {
	for _, t := range g.tables {
		if t.kind() == kindUnknown {
			return false
		}
	}
	return true
}

// readColumns returns the columns of an insert's table, from the cache if possible.
func (g *planner) readColumns(ctx context.Context, in *rewrite.Insert) ([]string, error) {
	key, err := g.session.Table(ctx, in.Schema, in.Name)
	if err != nil {
		return nil, err
	}
	if columns := g.columns[key]; columns != nil {
		return columns, nil
	}
	if g.fresh {
		g.session.ForgetColumns(key)
	}
	columns, cached, err := g.session.Columns(ctx, key)
	if err != nil {
		return nil, err
	}
	if g.columns == nil {
		g.columns = map[session.Table][]string{}
	}
	g.cached = g.cached || cached
	g.columns[key] = columns
	return columns, nil
}
