package driver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/driver/internal/fill"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/policy"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// planner is the context of parsing one statement.
type planner struct {
	session *session.Session
	rules   *ruleVersion
	fresh   bool // read columns from the server, not from the cache
	cached  bool // some columns came from the cache
	columns map[session.Table][]string
	typed   bool      // the type of a key column decided about a value
	expires time.Time // see plan.expires
	// tables are the sharded tables that the parser looked up.
	tables map[namedTable]parsedTable
}

// parsedTable is a sharded table, with the facts about it that the parser has.
type parsedTable struct {
	*keyedTable
	facts *rewrite.Table
}

// of returns the table of an insert.
func (g *planner) of(in *rewrite.Insert) *keyedTable {
	return g.tables[namedTable{in.Schema, in.Name}].keyedTable
}

// read returns the plan of a statement.
func (g *planner) read(ctx context.Context, key planKey) (*plan, error) {
	parsed, err := g.parse(ctx, key)
	if err == nil {
		err = g.refused(parsed)
	}
	if err != nil {
		return nil, err
	}
	p := &plan{Plan: parsed, rules: g.rules, key: key, added: parsed.NumKeys, count: parsed.Count(), columns: g.columns}
	if p.fills() {
		g.expireAt(g.session.SilentUntil())
		p.expires = g.expires
		err = g.choose(p)
	}
	return p, err
}

// parse parses the statement. If that depends on a fact that isn't known yet, parse asks the server, and
// parses it again.
func (g *planner) parse(ctx context.Context, key planKey) (*rewrite.Plan, error) {
	for {
		parsed, err := rewrite.Parse(key.text, g.options(ctx, key))
		needs, ok := errors.AsType[*rewrite.Needs](err)
		if !ok {
			return parsed, err
		}
		if err := g.learn(ctx, needs); err != nil {
			return nil, err
		}
	}
}

// learn asks for a fact.
func (g *planner) learn(ctx context.Context, needs *rewrite.Needs) (err error) {
	t := g.tables[namedTable{needs.Schema, needs.Name}]
	switch {
	case needs.Server:
		_, err = g.session.Server(ctx)
	case needs.Columns:
		t.facts.Columns, err = g.readColumns(ctx, needs.Schema, needs.Name)
		err = g.rules.explainUnrouted(t.Rule, needs.Name, err)
		t.facts.Columns = append([]string{}, t.facts.Columns...) // not nil
		if t.Unlisted != nil && errors.Is(err, ErrNoConnection) {
			err = errors.Join(t.Refusal(), err)
		}
	default:
		g.typed = true
		var column *facts.Column
		if column, err = g.session.Column(ctx, needs.Schema, needs.Name, t.Rule.Column); err == nil {
			err = fill.SetKeyColumn(t.facts, column)
		}
	}
	return err
}

// how returns how a statement is sent.
func (g *planner) how(p *rewrite.Plan, text string) base.How {
	switch {
	case !g.rules.caches || !base.Cacheable(text):
		return base.AsDriver
	case g.session.IsMariaDB():
		return base.AnyTypes
	case p.AssignsArgs():
		return base.SameTypesOrNull
	}
	return base.SameTypes
}

// choose completes the plan by what its executions need.
func (g *planner) choose(p *plan) (err error) {
	in := p.Insert
	p.table, p.how = g.of(in), g.how(p.Plan, p.key.text)
	// go-sql-driver returns some values of rows with another type, for example FLOAT, but not keys.
	// Whoever sets interpolateParams for another engine avoids prepared statements.
	p.prefersPrepared = p.how.Caches() && p.NumArgs > 0 && g.session.ReportsInsertIDs() && p.given().Plain
	p.returnsRows = in.SelectKey == "" || in.Returning
	if p.filler, err = fill.New(p.Plan, p.table.Table); err != nil {
		return err
	}
	p.single = len(in.Rows) == 1 && in.AllGenerated && !in.OnDuplicate && !in.Returning && !in.ReadsLastID && !in.Invalid
	p.callsFunctions = in.OnDuplicate && len(in.Rows) > 1 && mayCallFunctions(p.key.text)
	if strings.IndexByte(p.key.text, ';') >= 0 {
		_, tail, _ := rewrite.Split(p.key.text, rewrite.Options{SQLMode: p.key.mode.String(), Charset: p.key.charset.String()})
		p.hasTail = tail != ""
	}
	return nil
}

// options returns the parser's options.
func (g *planner) options(ctx context.Context, key planKey) rewrite.Options {
	opts := rewrite.Options{
		SQLMode:          key.mode.String(),
		Charset:          key.charset.String(),
		Table:            func(schema, name string) *rewrite.Table { return g.lookup(schema, name) },
		ServerUnknown:    true,
		NamesBeyondASCII: g.rules.generators.NamesBeyondASCII(),
	}
	if server := g.session.KnownServer(); server != nil {
		opts.ServerUnknown, opts.Server, opts.Old = false, server.Dialect, server.IsOld()
		opts.ReportKeys = server.ReportsUpserts && g.session.SilentUntil().IsZero()
	}
	return opts
}

// table returns the table that a statement names, or one without generated keys, or nil.
func (g *planner) table(schema, name string) *keyedTable {
	if r := g.rules.generators.Lookup(schema, name); r != nil {
		return g.rules.plans.table(r)
	}
	if e := g.rules.unlisted(g.rules.generators, schema, name); e != nil {
		return g.rules.plans.unlistedTable(e)
	}
	return nil
}

// refused returns the error for a statement with rows that need a key, in a table that isn't in the
// rule. If arguments are the keys, executions decide.
func (g *planner) refused(p *rewrite.Plan) error {
	in := p.Insert
	if in == nil {
		return nil
	}
	t := g.of(in)
	needsKey := func(r rewrite.Row) bool {
		return r.Key == rewrite.Generated || r.Key == rewrite.Expression
	}
	if t.Unlisted != nil && (needsKey(rewrite.Row{Key: in.SelectKey}) || slices.ContainsFunc(in.Rows, needsKey)) {
		return t.Refusal()
	}
	return nil
}

// expireAt limits how long the plan is used; zero doesn't.
func (g *planner) expireAt(at time.Time) {
	if g.expires.IsZero() || !at.IsZero() && at.Before(g.expires) {
		g.expires = at
	}
}

func (g *planner) lookup(schema, name string) *rewrite.Table {
	if t, ok := g.tables[namedTable{schema, name}]; ok {
		return t.facts
	}
	t := g.table(schema, name)
	if t == nil {
		return nil
	}
	r := t.Rule
	if inUse := g.rules.inUse; inUse != nil {
		t.assume(inUse)
	}
	expires := t.unreported.of(namedTable{schema, name})
	g.expireAt(expires)
	parsed := &rewrite.Table{Key: r.Column, Strings: t.HasText(),
		KeepExplicit: r.ExplicitKeys == policy.Keep, NoReport: !expires.IsZero(), KeyColumnUnknown: true}
	if x := t.ActualTable(schema, name); x != nil {
		parsed.Recorded = x.Columns
	}
	if r.ShardBits != nil {
		parsed.Recorded, _ = fill.WithBitsColumn(parsed.Recorded, r.ShardBits)
	}
	if r.Sharding != nil && r.ShardGuard != policy.Off {
		parsed.Fixed = r.Sharding.Columns
	}
	if g.tables == nil {
		g.tables = map[namedTable]parsedTable{}
	}
	g.tables[namedTable{schema, name}] = parsedTable{t, parsed}
	return parsed
}

// readColumns returns the columns of a table, from the cache if possible.
func (g *planner) readColumns(ctx context.Context, schema, name string) ([]string, error) {
	key, err := g.session.Table(ctx, schema, name)
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

// plan returns the plan of a statement in a session, from the cache or a new one. commented: see
// planKey.
func (version *ruleVersion) plan(ctx context.Context, s *session.Session, query string, commented bool) (*plan, error) {
	key := planKey{text: query, commented: commented}
	modeKnown := false
	key.mode, key.charset, modeKnown = s.KnownMode()
	p, err := version.planAs(ctx, s, key)
	if modeKnown || err == errCommented || session.IsFatal(ctx, err) || err == nil && p.InAnySession() {
		return p, err
	}
	if !errors.Is(err, rewrite.ErrSeveralStatements) && session.ReadsCounts(query, key.mode) {
		return nil, readsCounts()
	}
	// The statement depends on the sql_mode or character set: query them.
	mode, charset, askErr := s.Mode(ctx)
	switch same := charset == key.charset; {
	case err != nil && errors.Is(askErr, ErrUnsupportedStatement):
		return nil, err // the refusal is more useful
	case askErr != nil:
		return nil, askErr
	case same && mode == key.mode, err == nil && p.SameIn(mode.String(), charset.String()):
		return p, err
	}
	key.mode, key.charset = mode, charset
	return version.planAs(ctx, s, key)
}

// readsCounts returns the error for an INSERT that reads the counts of the statement before. A query of
// shardkey's between the two would change them.
func readsCounts() error {
	return refuse(ReasonUnsupported, StatementError{Message: "it calls ROW_COUNT() or FOUND_ROWS(); " +
		"read the value in a SELECT before it, and pass it as an argument"})
}

// planAs returns the plan of a statement for a certain sql_mode and character set.
func (version *ruleVersion) planAs(ctx context.Context, s *session.Session, key planKey) (*plan, error) {
	p := version.plans.get(key)
	if p == nil {
		version.counts.planMisses.Add(1)
	} else {
		version.counts.planHits.Add(1)
		if current, err := p.holds(ctx, s); current || err != nil {
			return p, err
		}
	}
	return version.newPlan(ctx, s, key)
}

// errCommented is returned for a statement that must be planned with the comments around it.
var errCommented = errors.New("comments are part of the statement")

// mayBeCommented reports whether the plan is the same with comments around the statement. They may be a
// part of a string that is cut in two; the rest of a statement that is passed through isn't read.
func (p *plan) mayBeCommented() bool {
	ends, always := sqltoken.EndsWithToken(p.key.text, p.key.mode, p.key.charset)
	if p.fills() {
		return ends
	}
	return always
}

// newPlan parses a statement. If columns from the cache don't match it, newPlan reads the columns
// again, since they may have changed.
func (version *ruleVersion) newPlan(ctx context.Context, s *session.Session, key planKey) (*plan, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g := planner{session: s, rules: version}
	p, err := g.read(ctx, key)
	if err == nil && g.cached && p.isInvalid() && !s.IsAssumed() {
		g = planner{session: s, rules: version, fresh: true}
		p, err = g.read(ctx, key)
	}
	switch {
	case err != nil:
		return nil, err
	case p.fills() && session.ReadsCounts(key.text, key.mode):
		return nil, readsCounts()
	case key.commented && !p.mayBeCommented():
		return nil, errCommented
	}
	p.lasting = !g.typed && (len(p.columns) == 0 || !p.isInvalid())
	if !version.plans.holds(key, p) {
		return p, nil
	}
	seen := version.plans.isSeen(key)
	if !seen || !p.isSameAgain() { // otherwise a plan of this key was verified before the cache dropped it
		if err := version.verifier.verify(key.text, g.options(ctx, key), p.Plan); err != nil {
			return nil, err
		}
	}
	version.plans.see(key)
	if p.lasting && (seen || p.NumArgs > 0) {
		version.plans.put(key, p)
	}
	return p, nil
}
