package driver

import (
	"context"
)

// In a session, LAST_INSERT_ID() returns the same value as with AUTO_INCREMENT columns. The functions in
// this file prepare the session for a statement with generated keys; see [outcome.LastID].

// prepareLastID sets LAST_INSERT_ID() for a statement that may read it. For a statement that
// changes it, prepareLastID first queries the value.
func (e *execution) prepareLastID(ctx context.Context) error {
	in := e.plan.Insert
	told, reads := in.ReportsFirstKey || in.ReportsExistingKey, in.ReadsLastID
	if e.first.column.ReadsLastID {
		told, reads = true, true
	}
	if told && !e.session.LastID().Known() {
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
	k.guarded = k.Insert.ReportsExistingKey
	may := !k.Insert.ReportsFirstKey || k.plain || !k.isNegative() && !k.column.ReadsLastID
	k.carries = may && k.Insert.ReportsFirstKey
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
