package driver

import (
	"context"
	"database/sql/driver"

	"github.com/shardkey/shardkey/rewrite"
)

// execution is one execution of a fill: its keys, what came of them, and the
// result that tells. One allocation serves all of it.
type execution struct {
	fill *fill
	conn *conn
	out  *Keys // where the caller wants the keys, may be nil
	user []driver.NamedValue

	inserts []insertKeys
	first   [1]insertKeys // room for inserts, as nearly always there is one

	text string
	args []driver.NamedValue

	outcome
	settler settler
	result  result
}

// insertKeys are the keys of one insert of the text.
type insertKeys struct {
	in     *rewrite.Insert
	keys   rewrite.Keys // the generated ones, in the order of their rows
	filled []bool       // Param rows: whether a key was generated; nil without any
	one    [1]int64
}

// newExecution generates the keys of an execution.
func (f *fill) newExecution(ctx context.Context, c *conn, args []driver.NamedValue) (*execution, error) {
	e := &execution{fill: f, conn: c, out: keysOf(ctx), user: args}
	if e.inserts = e.first[:]; len(f.plan.Inserts) > 1 {
		e.inserts = make([]insertKeys, len(f.plan.Inserts))
	}
	for i := range f.plan.Inserts {
		in := &f.plan.Inserts[i]
		e.inserts[i].in = in
		if in.Refused {
			continue
		}
		if err := e.generate(ctx, &e.inserts[i]); err != nil {
			return nil, err
		}
	}
	return e, e.prepareSession(ctx)
}

// prepareSession pays what is owed to LAST_INSERT_ID() when the text may read
// it, makes the variable that a guarded statement needs, and forgets what
// statements beside the insert may change, also when they fail.
func (e *execution) prepareSession(ctx context.Context) error {
	plan := e.fill.plan
	if plan.Statements > 1 {
		e.conn.session.forget(e.fill.key.text, rewrite.Several)
	}
	if plan.Inserts[0].Guarded {
		return e.conn.prepareSaved(ctx)
	}
	if e.conn.session.owed != "" && (plan.Statements > 1 || plan.Inserts[0].MentionsLastID) {
		return e.conn.payOwed(ctx)
	}
	return nil
}

func (e *execution) generate(ctx context.Context, k *insertKeys) error {
	t := k.in.Table.Rule.(*table)
	n := k.in.Rows()
	if !k.in.AllFilled() {
		var err error
		if n, err = e.decide(ctx, t, k); err != nil {
			return err
		}
	}
	if n == 0 {
		return nil
	}
	var err error
	k.keys, err = t.generate(ctx, n, &k.one)
	return err
}

// decide counts the rows that need a key, and for those whose key is bound
// finds out whether it is missing.
func (e *execution) decide(ctx context.Context, t *table, k *insertKeys) (n int, err error) {
	for i := range k.in.Rows() {
		kind, param := k.in.Slot(i)
		switch kind {
		case rewrite.Fill:
			n++
		case rewrite.Param:
			if k.filled == nil {
				k.filled = make([]bool, k.in.Rows())
			}
			if k.in.Table.KeepExplicit {
				continue
			}
			if k.filled[i], err = e.conn.isMissing(ctx, t, e.user[param].Value); err != nil {
				return 0, err
			}
			if k.filled[i] {
				n++
			}
		}
	}
	return n, nil
}

// isGenerated tells whether row i's key was generated.
func (k *insertKeys) isGenerated(i int) bool {
	switch kind, _ := k.in.Slot(i); kind {
	case rewrite.Fill:
		return true
	case rewrite.Param:
		return k.filled[i]
	}
	return false
}
