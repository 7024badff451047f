package driver

import (
	"context"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/rewrite"
)

// LAST_INSERT_ID() of a session returns what it would with AUTO_INCREMENT columns. Here is
// decided what that means for a statement with generated keys, before it and after it;
// [session.LastID] is the state.

// prepareLastID makes LAST_INSERT_ID() right for a statement that may read it, and finds out
// what it is before a statement that changes it.
func (e *execution) prepareLastID(ctx context.Context) error {
	in := &e.plan.Inserts[0]
	told, reads := in.InText || in.Guarded, in.MentionsLastID
	if e.plan.Statements > 1 || e.first.column.ReadsLastID() {
		told, reads = true, true
	}
	if told && !e.session.LastID.Known() {
		if err := e.session.KnowLastID(ctx); err != nil {
			return err
		}
	}
	if reads {
		return e.session.SyncLastID(ctx)
	}
	return nil
}

// carry decides which inserts carry their first generated key as
// LAST_INSERT_ID(key). That is unsigned: it returns false, and none does, when a
// key is negative, or when a trigger would read the key before it is due.
func (e *execution) carry() bool {
	for i := range e.inserts() {
		k := e.insert(i)
		if k.carries = k.in.InText; !k.carries {
			continue
		}
		if !k.plain && (k.isNegative() || k.column.ReadsLastID()) {
			for i := range e.inserts() {
				e.insert(i).carries = false
			}
			return false
		}
	}
	return true
}

// isNegative reports whether the first generated key is.
func (k *insertion) isNegative() bool {
	if len(k.keys.Ints) > 0 {
		return k.keys.Ints[0] < 0
	}
	key, ok := k.keys.At(0).(int64)
	return ok && key < 0
}

// carriedKey is the key that the statement passes to LAST_INSERT_ID(), 0 if none.
func (k *insertion) carriedKey() int64 {
	if !k.carries {
		return 0
	}
	return k.generated(0)
}

// generated is generated key i as an insert id.
func (k *insertion) generated(i int) int64 {
	if k.keys.Ints != nil {
		return k.keys.Ints[i]
	}
	return toInt64(k.keys.Values[i])
}

// checkLastIDRead refuses a string of several statements of which one reads LAST_INSERT_ID(),
// itself or in a trigger, when the server is not told what a former one generated.
func (e *execution) checkLastIDRead() error {
	untold := false
	for i := range e.inserts() {
		k := e.insert(i)
		if untold && k.column.ReadsLastID() {
			return &StatementError{Reason: reasonUnsupported, Table: nameOf(k.in), Message: "a trigger of the table reads " +
				"LAST_INSERT_ID(), which a former statement of the string changes; send the statements one by one"}
		}
		if k.in.Refused || k.keys.Len() == 0 || k.carries || k.table.kind() == rewrite.KindText {
			continue
		}
		if untold = true; k.in.ReadLater {
			return &StatementError{Reason: reasonUnsupported, Table: nameOf(k.in), Message: "a later statement of the string " +
				"reads LAST_INSERT_ID(), and the server cannot be told the generated key before; send the statements one by one"}
		}
	}
	return nil
}

// keepLastID remembers what LAST_INSERT_ID() must return after an insert: the
// first generated key that was inserted, if any was.
func (e *execution) keepLastID(k *insertion, said said, verdict verdict, key int64, inserted bool) {
	l, first := &e.session.LastID, uint64(key)
	inserted = inserted && k.table.kind() != rewrite.KindText
	switch {
	case k.in.MentionsLastID:
		// The statement may have changed it as it would with an AUTO_INCREMENT column.
		if l.Lost(); inserted {
			l.Set(first)
		}
	case k.carries && !k.in.OnDuplicate && (verdict != noneInserted || k.in.Ignore):
		l.Carried(uint64(k.carriedKey()), first, inserted)
	case k.carries && k.in.Guarded, k.in.Guarded && verdict == oneExists:
		l.Carried(uint64(said.id), first, inserted)
	case inserted:
		l.Set(first)
	case k.carries, k.in.Guarded && verdict != allInserted:
		l.Moved()
	}
}

// keepBeside is keepLastID where another column has AUTO_INCREMENT: a new row's
// value there is what LAST_INSERT_ID() returns, as it would without a rule.
func (e *execution) keepBeside(k *insertion, said said, verdict verdict) {
	l := &e.session.LastID
	switch {
	case verdict == oneExists || verdict == noneInserted:
		if k.carries || k.in.Guarded {
			l.Moved()
		}
	case verdict == allInserted && !k.in.Returning && !k.in.MentionsLastID:
		l.Told(uint64(said.id))
	default:
		l.Lost()
	}
}

// keepLastIDOfAll remembers what LAST_INSERT_ID() must return after a string of several
// statements: what the last of them left that changed it. ids are the insert ids of the
// statements, nil where they are not known.
func (e *execution) keepLastIDOfAll(ctx context.Context, ids []int64) {
	l := &e.session.LastID
	before, i := l.Value(), e.inserts()-1
	l.Lost()
	for at := e.plan.Statements - 1; i >= 0; at-- {
		k := e.insert(i)
		if k.in.Statement == at {
			i--
		}
		if k.in.Statement < at || k.column.OtherHasAutoIncrement() {
			if e.serverChangedLastID(ctx, before, ids, at) {
				return
			}
			continue
		}
		if first, ok := k.firstInserted(); ok && k.table.kind() != rewrite.KindText {
			if l.Set(uint64(first)); k.carries {
				l.Told(uint64(first))
			}
			return
		}
		if k.in.MentionsLastID { // it may have called LAST_INSERT_ID(expr)
			return
		}
	}
}

// serverChangedLastID reports whether a statement without a key of ours changed what the
// server returns, which was before. An insert id may also be a key that the statement
// gave, which changes nothing.
func (e *execution) serverChangedLastID(ctx context.Context, before uint64, ids []int64, at int) bool {
	if ids != nil && ids[at] == 0 {
		return false
	}
	now, err := e.session.AskLastID(ctx)
	return err != nil || now != before && !e.carried(now) && (ids == nil || now == uint64(ids[at]))
}

// carried reports whether the server was told a key by one of the inserts.
func (e *execution) carried(id uint64) bool {
	for i := range e.inserts() {
		if k := e.insert(i); k.carries && uint64(k.carriedKey()) == id {
			return true
		}
	}
	return false
}

// keepLastIDAfterFailure remembers what LAST_INSERT_ID() must return after a statement that
// failed. Even so the server may have evaluated the LAST_INSERT_ID(key) in it.
func (e *execution) keepLastIDAfterFailure(ctx context.Context) {
	in := &e.plan.Inserts[0]
	switch {
	case e.plan.Statements > 1:
		e.keepLastIDOfSome(ctx)
	case in.MentionsLastID:
		e.session.LastID.Lost()
	case in.InText, in.Guarded:
		e.session.LastID.Moved()
	}
}

// keepLastIDOfSome is keepLastIDOfAll for a string of which a statement failed. The keys
// that are in the tables show which one it was.
func (e *execution) keepLastIDOfSome(ctx context.Context) {
	l := &e.session.LastID
	before := *l
	l.Lost()
	now, err := e.session.AskLastID(ctx)
	if err != nil {
		return
	}
	carried := e.carried(now)
	changed, next := !carried && now != before.Value(), e.plan.Statements-1
	for i := e.inserts() - 1; i >= 0; i-- {
		k := e.insert(i)
		if changed && (e.plan.InsertsElsewhere(k.in.Statement, next) || k.column.OtherHasAutoIncrement()) {
			return // another table's AUTO_INCREMENT column, as far as that can be known
		}
		next = k.in.Statement
		if k.in.Refused || k.column.OtherHasAutoIncrement() || k.keys.Len() == 0 || k.table.kind() == rewrite.KindText {
			continue
		}
		e.verify(ctx, k, returned)
		if first, ok := k.firstInserted(); ok {
			if l.Set(uint64(first)); now == uint64(first) {
				l.Told(now)
			}
			return
		}
	}
	if carried {
		*l = before
		l.Moved()
	}
}

// given returns what the statement gives its rows; nil for no plan.
func (p *plan) given() *session.Given {
	if p == nil {
		return nil
	}
	p.givenOnce.Do(func() { p.givenValues.Numbers, p.givenValues.Plain = p.GivenNumbers() })
	return &p.givenValues
}
