package driver

import (
	"context"
	"database/sql/driver"
)

// fill is the plan of a text that inserts into a ruled table.
type fill struct{}

// session is what is known about the server's session of a connection.
type session struct{}

// reset is called when the connection is taken from the pool again, and when it
// is closed. (The base's ResetSession does not reset the server's session: its
// sql_mode, for one, is what the last user left.)
func (s *session) reset() {}

// planCache holds the plans made with one rule.
type planCache struct{}

func newPlanCache() *planCache { return &planCache{} }

// fillFor returns the plan for a text that must be filled, nil for one that
// passes through untouched.
func (c *conn) fillFor(ctx context.Context, query string) (*fill, error) { return nil, nil }

// passed is called before every statement that passes through.
func (c *conn) passed(query string) {}

// exec, query and prepare return errReplan, before anything was sent or
// generated, when acquiring the ruleSet that the fill was planned with fails.

func (f *fill) exec(ctx context.Context, c *conn, args []driver.NamedValue) (driver.Result, error) {
	return nil, driver.ErrSkip
}

func (f *fill) query(ctx context.Context, c *conn, args []driver.NamedValue) (driver.Rows, error) {
	return nil, driver.ErrSkip
}

func (f *fill) prepare(ctx context.Context, c *conn) (driver.Stmt, error) {
	return c.base.prepareContext(ctx, "")
}
