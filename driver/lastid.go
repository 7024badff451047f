package driver

import (
	"context"

	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/driver/internal/session"
)

// In a session, LAST_INSERT_ID() returns the same value as with AUTO_INCREMENT columns. The
// functions in this file update the session's state, [session.LastID], before and after a statement
// with generated keys.

// prepareLastID sets LAST_INSERT_ID() for a statement that may read it. For a statement that
// changes it, prepareLastID first queries the value.
func (e *execution) prepareLastID(ctx context.Context) error {
	in := e.plan.Insert
	told, reads := in.ReportsFirstKey || in.ReportsExistingKey, in.ReadsLastID
	if e.first.column.ReadsLastID {
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

// carry decides whether the insertion passes its first generated key to LAST_INSERT_ID(key), and
// whether it makes the server report the key of an existing row. It returns false, and the key isn't
// passed, if it is negative, since the function is unsigned, or if a trigger would read it too early.
func (e *execution) carry() bool {
	k := &e.first
	k.guarded = k.in.ReportsExistingKey
	may := !k.in.ReportsFirstKey || k.plain || !k.isNegative() && !k.column.ReadsLastID
	k.carries = may && k.in.ReportsFirstKey
	return may
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

// keepLastIDAfterFailure records the value that LAST_INSERT_ID() must return after a failed
// statement. The server may have evaluated the LAST_INSERT_ID(key) in it.
func (e *execution) keepLastIDAfterFailure(ctx context.Context) {
	in := e.plan.Insert
	check := e.compareWith(&e.first, outcome.Report{Failed: true})
	defer func() { check(0) }()
	switch {
	case in.ReadsLastID:
		e.session.LastID.Lost()
	case in.ReportsFirstKey, in.ReportsExistingKey:
		e.session.LastID.Moved()
	}
}
