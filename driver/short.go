package driver

import (
	"context"
	"database/sql/driver"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/rewrite"
)

// short is the execution of what most INSERTs are: one row with arguments, whose
// key is an integer and always generated. It takes the steps of run and
// execution in their order, without those that have nothing to do for such an
// INSERT, and one allocation holds all that they need. Whatever is out of the
// ordinary makes an execution of it, which goes on from there.
//
// It is the result as well: the row was inserted, with the key.
type short struct {
	driver.Result
	key  [1]int64
	room [4]driver.NamedValue // for the arguments, where they fit
}

var _ KeysResult = (*short)(nil)

func (e *short) LastInsertId() (int64, error) { return e.key[0], nil }
func (e *short) Keys() []any                  { return []any{e.key[0]} }
func (e *short) AllLastInsertIds() []int64    { return []int64{e.key[0]} }
func (e *short) AllRowsAffected() []int64     { return allRowsAffected(e.Result) }

// maybeShort reports whether a plan is of such an INSERT.
func (p *plan) maybeShort() bool {
	if len(p.Inserts) != 1 || p.Statements != 1 || len(p.columns) > 0 {
		return false
	}
	in := &p.Inserts[0]
	return in.Rows() == 1 && in.AllFilled() && p.shard(0).isShort() && p.tables[0].ints != nil && p.Params() > 0 && p.Params()+p.added <= base.MaxPlaceholders &&
		!in.Refused && !in.OnDuplicate && !in.Returning && !in.MentionsLastID
}

// isShort reports whether an execution has nothing else to do: the arguments are
// as many as they must be, and there is nothing to ask the server.
func (p *plan) isShort(s *session, args []driver.NamedValue) bool {
	if !p.short || len(args) != p.Params() || s.transaction != nil {
		return false
	}
	if p.geneAt != nil && !p.geneIsShort(args) {
		return false
	}
	column := p.keyColumns[0].known.Load()
	return column != nil && column.plain && !s.base.NeedsLimit() && (s.lastID.known || !p.Inserts[0].InText)
}

// execShort is run for an INSERT for which isShort is true.
func (p *plan) execShort(ctx context.Context, s *session, stmt *base.Stmt, out *keysRing, args []driver.NamedValue) (driver.Result, error) {
	e := &short{}
	if err := p.shortKey(ctx, s, e.key[:], args); err != nil {
		return nil, err
	}
	if p.rules.filled != nil {
		if err := p.rules.tellFilled(ctx, p.tables[0], 1, &rewrite.Keys{Ints: e.key[:]}); err != nil {
			return nil, err
		}
	}
	if e.key[0] < 0 {
		return e.long(p, s, stmt, out, args).goOn(ctx) // LAST_INSERT_ID(key) is unsigned, as the column may be
	}
	sent := sending{base: &s.base, stmt: stmt, text: p.BindText(), args: e.bind(p, args), added: 1,
		kept: p.keeps && s.base.Caches()}
	if stmt != nil {
		if err := stmt.CheckArgs(sent.args, 1); err != nil {
			return nil, err
		}
	}
	r, err := sent.send(ctx, base.WantResult)
	res := r.Result
	if err != nil {
		return nil, e.long(p, s, stmt, out, args).failed(ctx, err)
	}
	if res == nil {
		return e.long(p, s, stmt, out, args).settle(ctx, res)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return e.long(p, s, stmt, out, args).settle(ctx, res)
	}
	e.Result = res
	if key := uint64(e.key[0]); p.Inserts[0].InText {
		s.lastID.carried(key, key, true)
	} else {
		s.lastID.set(key)
	}
	if out != nil {
		out.set(p, e.Keys())
	}
	return e, nil
}

// shortKey makes the key, and holds the row against the actual table that the text
// names.
func (p *plan) shortKey(ctx context.Context, s *session, key []int64, args []driver.NamedValue) error {
	x, t := p.shard(0), p.tables[0]
	if x != nil && x.key < 0 {
		var buf [4]any
		if values, ok := x.values(buf[:0], p, &p.Inserts[0], 0, args); ok && x.looks() {
			if err := x.check(ctx, s, p.rules.logger, 0, values); err != nil {
				return err
			}
		}
	}
	switch {
	case t.genes != nil:
		g, err := p.geneOf(ctx, s, 0, 0, args)
		if err != nil {
			return err
		}
		fit, err := t.fitOf(ctx, p.rules.logger, x, 0, g, nil)
		if err != nil {
			return err
		}
		return t.chooseShort(ctx, key, fit)
	case x != nil && x.key >= 0:
		return x.generateShort(ctx, key)
	}
	return t.generateShort(ctx, key)
}

// geneIsShort reports whether the server need not be asked what a text is in the
// gene's column.
func (p *plan) geneIsShort(args []driver.NamedValue) bool {
	kind, param, value := p.Given(&p.Inserts[0], p.geneAt[0], 0)
	if kind == rewrite.GivenParam {
		value = args[param].Value
	}
	switch value.(type) {
	case int64, uint64, nil:
		return true
	}
	return p.geneColumns[0].known.Load() != nil
}

// bind puts the key among the user's arguments.
func (e *short) bind(p *plan, user []driver.NamedValue) []driver.NamedValue {
	_, at := p.Inserts[0].Slot(0)
	b := binder{user: user, out: e.room[:0]}
	if len(user) >= len(e.room) {
		b.out = make([]driver.NamedValue, 0, len(user)+1)
	}
	b.upTo(at)
	b.addInt(e.key[0])
	b.upTo(len(user))
	return b.out
}

// long is the execution that e has been so far.
func (e *short) long(p *plan, s *session, stmt *base.Stmt, out *keysRing, user []driver.NamedValue) *execution {
	x := &execution{plan: p, session: s, out: out, user: user, sent: sending{base: &s.base, stmt: stmt}}
	x.inserts = x.first[:]
	k := &x.inserts[0]
	k.in, k.table, k.column = &p.Inserts[0], p.tables[0], p.keyColumns[0]
	k.one, k.keys = e.key, rewrite.Keys{Ints: k.one[:]}
	k.carries = k.in.InText && e.key[0] >= 0
	return x
}

// goOn is what run does once the keys are made.
func (e *execution) goOn(ctx context.Context) (driver.Result, error) {
	e.session.forInsert = e.plan.key.text
	k := &e.inserts[0]
	err := k.column.check(ctx, e.session, k.table, &k.keys)
	if err == nil {
		err = e.ready(ctx)
	}
	e.session.forInsert = ""
	if err != nil {
		return nil, err
	}
	r, err := finish(ctx, e, base.WantResult)
	return r.Result, err
}
