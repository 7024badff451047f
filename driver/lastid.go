package driver

import (
	"context"

	"github.com/shardkey/shardkey/driver/internal/session"
)

// In a session, LAST_INSERT_ID() returns the same value as with AUTO_INCREMENT columns. The
// functions in this file update the session's state, [session.LastID], before and after a statement
// with generated keys.

// prepareLastID sets LAST_INSERT_ID() for a statement that may read it. For a statement that
// changes it, prepareLastID first queries the value.
func (e *execution) prepareLastID(ctx context.Context) error {
	in := &e.plan.Inserts[0]
	told, reads := in.ReportsFirstKey || in.ReportsExistingKey, in.ReadsLastID
	if e.plan.Statements > 1 || e.first.column.Facts().ReadsLastID {
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

// carry decides which insertions pass their first generated key to LAST_INSERT_ID(key), and which
// make the server report the key of an existing row. It returns false, and none passes its key, if a
// key is negative, since the function is unsigned. It also returns false if a trigger would read the
// key too early.
func (e *execution) carry() bool {
	all := true
	for i := range e.inserts() {
		k := e.insert(i)
		k.guarded = k.in.ReportsExistingKey
		if k.in.ReportsFirstKey && !k.plain && (k.isNegative() || k.column.Facts().ReadsLastID) {
			all = false
		}
	}
	for i := range e.inserts() {
		k := e.insert(i)
		k.carries = all && k.in.ReportsFirstKey
	}
	return all
}

// isNegative reports whether the first generated key is negative.
func (k *insertion) isNegative() bool {
	if len(k.keys.Ints) > 0 {
		return k.keys.Ints[0] < 0
	}
	key, ok := k.keys.At(0).(int64)
	return ok && key < 0
}

// idOf returns generated key i as an insert ID.
func (k *insertion) idOf(i int) int64 {
	if k.keys.Ints != nil {
		return k.keys.Ints[i]
	}
	return session.InsertID(k.keys.Values[i])
}

// checkLastIDRead refuses several statements in one string if one of them, or a trigger, reads
// LAST_INSERT_ID() before the server has an earlier generated key.
func (e *execution) checkLastIDRead() error {
	untold := false
	for i := range e.inserts() {
		k := e.insert(i)
		if untold && k.column.Facts().ReadsLastID {
			return refuse(reasonUnsupported, StatementError{Table: nameOf(k.in), Message: "a trigger of the table reads " +
				"LAST_INSERT_ID(), which an earlier statement of the string changes; send the statements one by one"})
		}
		if k.in.Invalid || k.keys.Len() == 0 || k.carries || k.table.kind() == kindText {
			continue
		}
		if untold = true; k.in.ReadLater {
			return refuse(reasonUnsupported, StatementError{Table: nameOf(k.in), Message: "a later statement of the string " +
				"reads LAST_INSERT_ID() before the server has the generated key; send the statements one by one"})
		}
	}
	return nil
}

// keepLastID records the value that LAST_INSERT_ID() must return after an insertion: the first
// generated key that was inserted, if any.
func (e *execution) keepLastID(k *insertion, report insertReport, verdict rowsOutcome) {
	l, first := &e.session.LastID, uint64(k.first)
	inserted := k.inserted && k.table.kind() != kindText
	switch {
	case k.in.ReadsLastID:
		// The statement may have changed it, as with an AUTO_INCREMENT column.
		if l.Lost(); inserted {
			l.Set(first)
		}
	case k.carries && (inserted || !k.in.OnDuplicate && (verdict != noneInserted || k.in.Ignore)):
		l.Carried(uint64(k.idOf(0)), first, inserted)
	case inserted:
		l.Set(first)
	case k.carries, k.guarded && (verdict != allInserted || k.rows != nil || report.id != 0):
		l.Moved() // a row may have existed
	}
}

// keepBeside is keepLastID for a table where another column has AUTO_INCREMENT. LAST_INSERT_ID()
// then returns a new row's value of that column.
func (e *execution) keepBeside(k *insertion, report insertReport, verdict rowsOutcome) {
	l := &e.session.LastID
	switch {
	case verdict == oneExists || verdict == noneInserted:
		if k.carries || k.guarded {
			l.Moved()
		}
	case verdict == allInserted && !k.in.Returning && !k.in.ReadsLastID:
		l.Told(uint64(report.id))
	default:
		l.Lost()
	}
}

// keepLastIDOfAll records the value that LAST_INSERT_ID() must return after several statements in
// one string: the value of the last statement that changed it. The statements' insert IDs are ids,
// nil if unknown.
func (e *execution) keepLastIDOfAll(ctx context.Context, ids []int64) {
	l := &e.session.LastID
	before, i := l.Value(), e.inserts()-1
	l.Lost()
	for at := e.plan.Statements - 1; i >= 0; at-- {
		k := e.insert(i)
		if k.in.Statement == at {
			i--
		}
		if k.in.Statement < at || k.column.Facts().OtherHasAutoIncrement {
			if e.serverChangedLastID(ctx, before, ids, at) {
				return
			}
			continue
		}
		if k.inserted && k.table.kind() != kindText {
			if l.Set(uint64(k.first)); k.carries {
				l.Told(uint64(k.first))
			}
			return
		}
		if k.in.ReadsLastID { // it may have called LAST_INSERT_ID(expr)
			return
		}
	}
}

// serverChangedLastID reports whether a statement without a generated key changed the server's
// value. before is the value before it. An insert ID may also be an explicit key, which changes
// nothing.
func (e *execution) serverChangedLastID(ctx context.Context, before uint64, ids []int64, at int) bool {
	if ids != nil && ids[at] == 0 {
		return false
	}
	now, err := e.session.AskLastID(ctx)
	return err != nil || now != before && !e.carried(now) && (ids == nil || now == uint64(ids[at]))
}

// carried reports whether one of the insertions passed the key to LAST_INSERT_ID().
func (e *execution) carried(id uint64) bool {
	for i := range e.inserts() {
		if k := e.insert(i); k.carries && uint64(k.idOf(0)) == id {
			return true
		}
	}
	return false
}

// keepLastIDAfterFailure records the value that LAST_INSERT_ID() must return after a failed
// statement. The server may have evaluated the LAST_INSERT_ID(key) in it.
func (e *execution) keepLastIDAfterFailure(ctx context.Context) {
	in := &e.plan.Inserts[0]
	switch {
	case e.plan.Statements > 1:
		e.keepLastIDOfSome(ctx)
	case in.ReadsLastID:
		e.session.LastID.Lost()
	case in.ReportsFirstKey, in.ReportsExistingKey:
		e.session.LastID.Moved()
	}
}

// keepLastIDOfSome is keepLastIDOfAll for a string of which a statement failed. The keys in the
// tables show which one failed.
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
		if changed && (e.plan.insertsElsewhere(k.in.Statement, next) || k.column.Facts().OtherHasAutoIncrement) {
			return // it may be the value of another table's AUTO_INCREMENT column
		}
		next = k.in.Statement
		if k.in.Invalid || k.column.Facts().OtherHasAutoIncrement || k.keys.Len() == 0 || k.table.kind() == kindText {
			continue
		}
		k.rows, _, _ = e.verify(ctx, k, returned)
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
