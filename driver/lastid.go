package driver

import (
	"context"
	"strconv"

	"github.com/shardkey/shardkey/rewrite"
)

// lastID is what LAST_INSERT_ID() must return in a session. Mostly the server
// says so itself; where it does not, it is told before the next statement that
// may read it.
type lastID struct {
	// must is what LAST_INSERT_ID() must return, as an SQL expression, where that
	// is not what the server would say; empty when the server is right.
	must string
	// saved: rewrite.SavedID holds a value, and must be NULL again when the
	// server is told.
	saved bool
	// prepared: rewrite.SavedID was set in this session.
	prepared bool
}

// set remembers what LAST_INSERT_ID() must return from now on.
func (l *lastID) set(id int64) { l.must = strconv.FormatInt(id, 10) }

// synced is set for an id that the server reports already. While a saved value
// is about, the server must still be told, so that this clears it.
func (l *lastID) synced(id int64) {
	l.must = ""
	if l.saved {
		l.set(id)
	}
}

// metExisting is called after a guarded statement met an existing row.
func (l *lastID) metExisting() {
	l.saved = true
	if l.must == "" {
		l.must = rewrite.SavedID
	}
}

// syncBefore tells the server before a statement that passes through and may
// read LAST_INSERT_ID().
func (s *session) syncBefore(ctx context.Context, query string, class rewrite.Class) error {
	if s.lastID.must == "" {
		return nil
	}
	if class == rewrite.ClassPass || class == rewrite.ClassSet || class == rewrite.ClassUse {
		if !rewrite.MentionsLastInsertID(query) {
			return nil
		}
	}
	return s.syncLastID(ctx)
}

// syncLastID makes the server's LAST_INSERT_ID() what it must be.
func (s *session) syncLastID(ctx context.Context) error {
	if s.lastID.must == "" {
		return nil
	}
	query := "SELECT LAST_INSERT_ID(" + s.lastID.must + ")"
	if s.lastID.saved {
		query += ", " + rewrite.SavedID + " := NULL"
	}
	if _, err := s.queryRow(ctx, query); err != nil {
		return err
	}
	s.lastID.must, s.lastID.saved = "", false
	return nil
}

// prepareSaved makes the user variable that guarded statements use.
func (s *session) prepareSaved(ctx context.Context) error {
	if s.lastID.prepared {
		return nil
	}
	_, err := s.base.execOrPrepare(ctx, "SET "+rewrite.SavedID+" = NULL", nil, 0)
	s.lastID.prepared = err == nil
	return err
}
