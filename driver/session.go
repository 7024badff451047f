package driver

import (
	"context"
	"strconv"

	"github.com/shardkey/shardkey/rewrite"
)

// session is what is known about the server's session of a connection. Each
// fact is asked for when it is needed first, and forgotten when a statement may
// have changed it. Most connections never ask. What is known holds as long as
// the connection: the base's ResetSession does not reset the server's session,
// whose sql_mode, for one, is what the last user left.
type session struct {
	mode      rewrite.Mode
	modeKnown bool

	database      string
	databaseKnown bool

	// owed is what LAST_INSERT_ID() must return in this session, as an SQL
	// expression, where that is not what the server would say; empty when the
	// server is right. It is paid before a statement that may read it.
	owed string
	// saved: rewrite.SavedID holds a value, and must be NULL again when the
	// debt is paid.
	saved bool
	// prepared: rewrite.SavedID was set in this session.
	prepared bool
}

// owe remembers what LAST_INSERT_ID() must return from now on.
func (s *session) owe(id int64) { s.owed = strconv.FormatInt(id, 10) }

// told is owe for an id that the server knows already. While a saved value is
// about, the debt stands, so that paying it clears that.
func (s *session) told(id int64) {
	s.owed = ""
	if s.saved {
		s.owe(id)
	}
}

// metExisting is called after a guarded statement met an existing row.
func (s *session) metExisting() {
	s.saved = true
	if s.owed == "" {
		s.owed = rewrite.SavedID
	}
}

// passed is called before every statement that passes through: it pays what is
// owed to a statement that may read LAST_INSERT_ID(), and forgets what the
// statement may change.
func (c *conn) passed(ctx context.Context, query string, class rewrite.Class) error {
	if class == rewrite.Passes && c.session.owed == "" {
		return nil
	}
	if class != rewrite.Passes {
		c.session.forget(query, class)
	}
	if class == rewrite.Passes || class == rewrite.Sets || class == rewrite.Uses {
		if !rewrite.MentionsLastInsertID(query) {
			return nil
		}
	}
	return c.payOwed(ctx)
}

func (s *session) forget(query string, class rewrite.Class) {
	if class == rewrite.Calls || rewrite.MentionsSQLMode(query) {
		s.modeKnown = false
	}
	if class == rewrite.Uses || class == rewrite.Several || class == rewrite.MayInsert {
		s.databaseKnown = false
	}
}

// prepareSaved makes the user variable that guarded statements use.
func (c *conn) prepareSaved(ctx context.Context) error {
	if c.session.prepared {
		return nil
	}
	_, err := c.base.execOrPrepare(ctx, "SET "+rewrite.SavedID+" = NULL", nil, 0)
	c.session.prepared = err == nil
	return err
}

// payOwed makes the server's LAST_INSERT_ID() what it must be.
func (c *conn) payOwed(ctx context.Context) error {
	if c.session.owed == "" {
		return nil
	}
	query := "SELECT LAST_INSERT_ID(" + c.session.owed + ")"
	if c.session.saved {
		query += ", " + rewrite.SavedID + " := NULL"
	}
	if _, err := c.queryRow(ctx, query); err != nil {
		return err
	}
	c.session.owed, c.session.saved = "", false
	return nil
}

// sqlMode asks the server for the session's sql_mode, once. A server that does
// not know it has none that matters.
func (c *conn) sqlMode(ctx context.Context) (rewrite.Mode, error) {
	if !c.session.modeKnown {
		row, err := c.askRow(ctx, "SELECT @@sql_mode")
		if err != nil {
			return 0, err
		}
		c.session.mode, c.session.modeKnown = 0, true
		if len(row) == 1 {
			c.session.mode = rewrite.ParseMode(text(row[0]))
		}
	}
	return c.session.mode, nil
}

// currentDatabase asks the server for the session's database, once.
func (c *conn) currentDatabase(ctx context.Context) (string, error) {
	if !c.session.databaseKnown {
		row, err := c.askRow(ctx, "SELECT DATABASE()")
		if err != nil {
			return "", err
		}
		c.session.database, c.session.databaseKnown = "", true
		if len(row) == 1 {
			c.session.database = text(row[0])
		}
	}
	return c.session.database, nil
}
