package base

import (
	"context"
	"database/sql/driver"
)

// Request is a statement to execute.
type Request struct {
	Stmt *Stmt  // a prepared statement, which is executed instead of Text; nil for none
	Text string // the query
	Args []driver.NamedValue
	// User is the number of the program's own arguments. Errors about the number of arguments don't
	// count the others, which are keys.
	User int
	How  How
	// Repeated: the query is executed often and returns no rows but the key, and its values are
	// placeholders, literals and calls without arguments. It matters if How caches.
	Repeated bool
	Rows     bool // the caller reads rows
}

// How is how a query is sent.
type How uint8

const (
	// AsDriver: as database/sql does. The driver executes the query, or declines; then it is prepared
	// for one execution.
	AsDriver How = iota
	// Directly: as AsDriver, but if the driver declines, Do returns driver.ErrSkip.
	Directly
	// Prepared: by a statement that is prepared for one execution.
	Prepared

	// The others are cached statements, for [Cacheable] queries on a connection that caches. They say
	// for which arguments a server interprets a prepared statement as it did for those of earlier
	// executions.
	//
	// MySQL derives the type of a placeholder from an argument and keeps it (since 8.0.22). A string for
	// a placeholder that had an integer is then converted to a number, whatever the column's type is.

	// SameTypes: arguments of the same types, where NULL is a type. For example, the result of
	// JSON_ARRAY(COALESCE(?, ?)) depends on which argument was NULL at first.
	SameTypes
	// SameTypesOrNull: arguments of the same types. NULL has any type, and fixes none.
	SameTypesOrNull
	// AnyTypes: all arguments. MariaDB derives the types for each execution.
	AnyTypes
)

// Caches reports whether the statement is cached.
func (h How) Caches() bool { return h >= SameTypes }

// Reply is the result of a statement: Rows for [Request].Rows, otherwise Result.
type Reply struct {
	Result driver.Result
	Rows   driver.Rows
}

// Do executes a statement.
func (c *Conn) Do(ctx context.Context, r *Request) (Reply, error) {
	switch {
	case r.Stmt != nil:
		return r.Stmt.send(ctx, r)
	case r.How.Caches():
		return c.sendCached(ctx, r)
	case r.How == Prepared:
		return c.sendPrepared(ctx, r)
	}
	reply, err := c.sendText(ctx, r)
	if err == driver.ErrSkip && r.How == AsDriver {
		return c.sendPrepared(ctx, r)
	}
	return reply, err
}

// sendText executes a query without preparing it. It returns driver.ErrSkip if the driver declines.
func (c *Conn) sendText(ctx context.Context, r *Request) (reply Reply, err error) {
	if r.Rows {
		reply.Rows, err = answered(c.conn.QueryContext(ctx, r.Text, r.Args))
	} else {
		reply.Result, err = c.conn.ExecContext(ctx, r.Text, r.Args)
	}
	return reply, c.noted(err)
}

// sendPrepared prepares a query for one execution.
func (c *Conn) sendPrepared(ctx context.Context, r *Request) (reply Reply, err error) {
	s, err := c.prepareFor(ctx, r)
	if err != nil {
		return reply, err
	}
	if reply, err = s.send(ctx, r); err != nil || !r.Rows {
		_ = s.Close()
		return reply, err
	}
	reply.Rows = &Rows{Rows: reply.Rows, after: s}
	return reply, nil
}

// prepareFor prepares a query and checks its arguments.
func (c *Conn) prepareFor(ctx context.Context, r *Request) (s Stmt, err error) {
	if len(r.Args) > MaxPlaceholders {
		return s, TooManyPlaceholders(r.User, len(r.Args)-r.User)
	}
	if s, err = c.Prepare(ctx, r.Text); err != nil {
		return s, err
	}
	if err := s.CheckArgs(r.Args, r.User); err != nil {
		_ = s.Close()
		return s, err
	}
	return s, nil
}
