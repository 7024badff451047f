package driver

import (
	"context"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// Plan returns what becomes of a text under the current rule, as far as that shows
// without a server and without arguments: no connection is opened, no key is made,
// nothing is logged or counted. A text that passes through has no Inserts. The error
// is the one with which the text would be refused.
//
// It is read in the default sql_mode and in UTF-8, for the server that shardkeyServer
// or an earlier connection has named, otherwise for MySQL. An INSERT that lists no
// columns is an error with [ErrUnsupportedStatement] in its chain although a
// connection could fill it, since its columns stand in the server.
func (c *Connector) Plan(text string) (*rewrite.Plan, error) {
	r, err := c.use()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.generators.Release() }()
	o := offline{rules: r, text: text, server: c.known.Assumed(), tables: map[*rewrite.Table]*rule.Table{}}
	p, err := rewrite.Parse(text, o.options())
	switch {
	case err != nil:
		return nil, err
	case o.unlisted != nil:
		return nil, o.unlisted
	}
	o.server.Report(p)
	if r.verifier.read != nil {
		if _, err := r.verifier.read(text, o.options(), p); err != nil {
			return nil, err
		}
	}
	return p, o.misplaced(p)
}

// offline is a reading of a text without a session.
type offline struct {
	rules    *ruleSet
	text     string
	server   *session.Server
	unlisted error
	tables   map[*rewrite.Table]*rule.Table
}

func (o *offline) options() rewrite.Options {
	opts := rewrite.Options{
		Dialect:          func() (rewrite.Dialect, error) { return o.server.Dialect, nil },
		NamesBeyondASCII: o.rules.generators.NamesBeyondASCII(),
		Tables:           o.lookup,
		// A generator says by its first key what its keys are, and has made one where
		// that is known; nearly all others make texts.
		Kind: func(*rewrite.Table) (rewrite.Kind, error) { return rewrite.KindText, nil },
	}
	opts.Columns = func(in *rewrite.Insert) ([]string, error) {
		return nil, rewrite.NewStatementError(o.text, opts, 0, in.Name, "it lists no columns, and the table's are known to the server only: list them to see what becomes of it")
	}
	return opts
}

func (o *offline) lookup(schema, name string) *rewrite.Table {
	of := o.rules.generators.Lookup(schema, name)
	if of == nil {
		if e := o.rules.generators.Unlisted(schema, name); e != nil && o.rules.unlisted.policyFor(e) == "refuse" && o.unlisted == nil {
			o.unlisted = unlistedError{e}
		}
		return nil
	}
	t := o.rules.plans.table(of)
	parsed := &rewrite.Table{KeyColumn: of.Column, Kind: t.kind(), KeepExplicit: of.ExplicitKeys == "keep", Unguarded: t.unguarded.Load()}
	if x := t.shard(schema, name); x != nil {
		parsed.Sharding = x.Columns
	}
	o.tables[parsed] = of
	return parsed
}

// misplaced returns the error for a row whose text alone shows that it does not belong
// into the actual table that its INSERT names.
func (o *offline) misplaced(p *rewrite.Plan) error {
	for i := range p.Inserts {
		in := &p.Inserts[i]
		x := o.rules.plans.table(o.tables[in.Table]).shard(in.Schema, in.Name)
		if x == nil || !x.looks() || x.table.rule.ShardGuard != "refuse" {
			continue
		}
		for row := range in.Rows() {
			values, known := x.written(p, in, row)
			if !known {
				continue
			}
			if wrong := x.misplaced(context.Background(), nil, values, nil); wrong != nil {
				wrong.Row = row + 1
				return wrong
			}
		}
	}
	return nil
}

// written are the values of the columns that decide where a row belongs, where its
// text has all of them.
func (x *shard) written(p *rewrite.Plan, in *rewrite.Insert, row int) (values []any, known bool) {
	for i := range x.Columns {
		var value any
		if i == x.key {
			value = p.Kept(in, row, 0)
			known = value != nil
		} else {
			var kind rewrite.GivenKind
			kind, _, value = p.Given(in, i, row)
			known = kind == rewrite.GivenLiteral
		}
		if !known {
			return nil, false
		}
		values = append(values, value)
	}
	return values, true
}
