package driver

import (
	"context"
	"database/sql/driver"
	"fmt"

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
	filled []bool       // SlotParam rows: whether a key was generated; nil without any
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
		e.conn.session.forget(e.fill.key.text, rewrite.ClassSeveral)
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
		case rewrite.SlotFill:
			n++
		case rewrite.SlotParam:
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
	case rewrite.SlotFill:
		return true
	case rewrite.SlotParam:
		return k.filled[i]
	}
	return false
}

// GeneratorError is the error for keys that a generator could not make. The
// statement was not sent.
type GeneratorError struct {
	Generator string // the generator's name in the rule
	Table     string // the logical table
	Column    string // its key column
	Err       error  // the generator's error
}

func (e *GeneratorError) Error() string {
	return fmt.Sprintf("shardkey: generator %s for %s.%s: %v", e.Generator, e.Table, e.Column, e.Err)
}

func (e *GeneratorError) Unwrap() error { return e.Err }

// generate makes n keys in one call. One key goes into one, which spares an
// allocation.
func (t *table) generate(ctx context.Context, n int, one *[1]int64) (keys rewrite.Keys, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
		if err != nil {
			keys, err = rewrite.Keys{}, &GeneratorError{t.rule.GeneratorName, t.rule.Logical, t.rule.Column, err}
		}
	}()
	if t.ints != nil {
		ints := one[:]
		if n > 1 {
			ints = make([]int64, n)
		}
		return rewrite.Keys{Ints: ints}, t.ints.GenerateInt64Keys(ctx, t.column(), ints)
	}
	values, err := t.rule.Generator.GenerateKeys(ctx, t.column(), n)
	switch {
	case err != nil:
		return rewrite.Keys{}, err
	case len(values) != n:
		return rewrite.Keys{}, fmt.Errorf("it made %d keys where %d were asked for", len(values), n)
	}
	for i, v := range values {
		if values[i] = plainKey(v); values[i] == nil {
			return rewrite.Keys{}, fmt.Errorf("key %d of %d is nil", i+1, n)
		}
	}
	if t.kind() == rewrite.KindUnknown {
		t.setKind(kindOf(values[0]))
	}
	return rewrite.Keys{Values: values}, nil
}

// plainKey makes of a key what database/sql would make of an argument: int64 of
// other integers and of named ones, a driver.Valuer's value. A key that takes
// the base's own conversion stays as it is. A nil []byte is nil.
func plainKey(key any) any {
	switch k := key.(type) {
	case int64, string, uint64:
		return key
	case uint:
		return uint64(k)
	case []byte:
		if k == nil {
			return nil
		}
		return key
	}
	if v, err := driver.DefaultParameterConverter.ConvertValue(key); err == nil {
		return v
	}
	return key
}

func kindOf(key any) rewrite.Kind {
	switch key.(type) {
	case int64, uint64:
		return rewrite.KindInteger
	}
	return rewrite.KindText
}

// learnKind finds out the kind of a generator's keys by one that is not used.
// It is needed only where a statement gives 0 or an empty string, or has ON
// DUPLICATE KEY UPDATE, before any key was made.
func (t *table) learnKind(ctx context.Context) error {
	var one [1]int64
	_, err := t.generate(ctx, 1, &one)
	return err
}

// isMissing tells whether a bound key asks for a generated one: nil does, 0
// does for integer keys (unless the session's sql_mode keeps it), "" for text.
func (c *conn) isMissing(ctx context.Context, t *table, bound driver.Value) (bool, error) {
	if b, ok := bound.([]byte); bound == nil || ok && b == nil {
		return true, nil
	}
	empty, zero := isEmpty(bound), isZero(bound)
	if !empty && !zero {
		return false, nil
	}
	if t.kind() == rewrite.KindUnknown {
		if err := t.learnKind(ctx); err != nil {
			return false, err
		}
	}
	if t.kind() == rewrite.KindText {
		return empty, nil
	}
	if !zero {
		return false, nil
	}
	mode, err := c.sqlMode(ctx)
	return mode&rewrite.NoAutoValueOnZero == 0, err
}

func isEmpty(bound driver.Value) bool {
	switch v := bound.(type) {
	case string:
		return v == ""
	case []byte:
		return len(v) == 0
	}
	return false
}

func isZero(bound driver.Value) bool {
	switch v := bound.(type) {
	case int64:
		return v == 0
	case uint64:
		return v == 0
	case float64:
		return v > -0.5 && v < 0.5 // the servers round
	case bool:
		return !v
	case float32:
		return v > -0.5 && v < 0.5
	case string:
		return rewrite.IsZero(v)
	case []byte:
		return rewrite.IsZero(string(v))
	}
	return false
}

func (e *execution) haveLiterals() bool {
	for i := range e.inserts {
		if !e.inserts[i].keys.HaveLiterals() {
			return false
		}
	}
	return true
}

// fillKeys are the keys that the literal text takes: those that are not bound
// in place of a user's argument.
func (e *execution) fillKeys() []rewrite.Keys {
	all := make([]rewrite.Keys, len(e.inserts))
	for i := range e.inserts {
		k := &e.inserts[i]
		if k.filled == nil {
			all[i] = k.keys
			continue
		}
		next := 0
		for row := range k.in.Rows() {
			if !k.isGenerated(row) {
				continue
			}
			if kind, _ := k.in.Slot(row); kind == rewrite.SlotFill {
				all[i].Values = append(all[i].Values, k.keys.At(next))
			}
			next++
		}
	}
	return all
}

// bindArgs puts the keys among the user's arguments: in place of those that
// were missing, and, when the text has placeholders for them, in between.
func (e *execution) bindArgs(placeholders bool) ([]driver.NamedValue, error) {
	b := binder{conn: e.conn, user: e.user, out: e.user}
	if placeholders || e.anyFilledParam() {
		b.out = make([]driver.NamedValue, 0, len(e.user)+e.fill.added)
	}
	for i := range e.inserts {
		k := &e.inserts[i]
		if k.in.Refused {
			continue
		}
		next := 0
		for row := range k.in.Rows() {
			kind, param := k.in.Slot(row)
			if kind == rewrite.SlotFill && placeholders {
				b.upTo(param)
				if err := b.add(k.keys.At(next)); err != nil {
					return nil, err
				}
			}
			if kind == rewrite.SlotParam && k.filled[row] {
				b.upTo(param)
				b.taken++
				if err := b.add(k.keys.At(next)); err != nil {
					return nil, err
				}
			}
			if k.isGenerated(row) {
				next++
			}
		}
	}
	if cap(b.out) > 0 && len(e.user) > 0 && &b.out[:1][0] == &e.user[0] {
		return e.user, nil
	}
	b.upTo(len(e.user))
	return b.out, nil
}

func (e *execution) anyFilledParam() bool {
	for i := range e.inserts {
		for _, filled := range e.inserts[i].filled {
			if filled {
				return true
			}
		}
	}
	return false
}

// binder assembles arguments.
type binder struct {
	conn  *conn
	user  []driver.NamedValue
	taken int // of the user's
	out   []driver.NamedValue
}

func (b *binder) upTo(n int) {
	for ; b.taken < n; b.taken++ {
		nv := b.user[b.taken]
		nv.Ordinal = len(b.out) + 1
		b.out = append(b.out, nv)
	}
}

func (b *binder) add(key any) error {
	b.out = append(b.out, driver.NamedValue{Ordinal: len(b.out) + 1, Value: key})
	if _, ok := key.(int64); ok {
		return nil
	}
	if err := b.conn.convertKey(&b.out[len(b.out)-1]); err != nil {
		return fmt.Errorf("shardkey: a generated key cannot be bound: %w", err)
	}
	return nil
}

// convertKey makes of a key what the base takes, as database/sql does with the
// user's arguments.
func (c *conn) convertKey(nv *driver.NamedValue) error {
	if c.base.preparesAll {
		return nil // the base's statement is asked later
	}
	if err := c.base.checkNamedValue(nv); err != driver.ErrSkip {
		return err
	}
	return defaultCheck(nv)
}
