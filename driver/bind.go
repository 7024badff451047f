package driver

import (
	"database/sql/driver"
	"fmt"

	"github.com/shardkey/shardkey/rewrite"
)

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
			if kind, _ := k.in.Slot(row); kind == rewrite.Fill {
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
			if kind == rewrite.Fill && placeholders {
				b.upTo(param)
				if err := b.add(k.keys.At(next)); err != nil {
					return nil, err
				}
			}
			if kind == rewrite.Param && k.filled[row] {
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
