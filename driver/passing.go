package driver

import (
	"context"
	"database/sql/driver"

	"github.com/shardkey/shardkey/driver/internal/base"
)

// passing is a prepared statement that neither reads nor changes the session: the underlying driver's
// own. It may be the transaction that a SET TRANSACTION was for.
type passing struct {
	base.Stmt
	conn  *conn
	query string
}

var (
	_ driver.StmtExecContext   = (*passing)(nil)
	_ driver.StmtQueryContext  = (*passing)(nil)
	_ driver.NamedValueChecker = (*passing)(nil)
)

func (p *passing) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	r, err := p.send(ctx, args, false)
	return r.Result, err
}

func (p *passing) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	r, err := p.send(ctx, args, true)
	return r.Rows, err
}

func (p *passing) send(ctx context.Context, args []driver.NamedValue, rows bool) (base.Reply, error) {
	keysOf(ctx).reset()
	r, err := p.conn.base.Do(ctx, base.Request{Stmt: &p.Stmt, Args: args, Rows: rows})
	if p.conn.session.PendingTransaction() {
		p.conn.session.FollowTransaction(p.query, err)
	}
	return r, err
}

// Exec is ExecContext without a context.
//
// Deprecated: use ExecContext.
func (p *passing) Exec(args []driver.Value) (driver.Result, error) {
	return p.ExecContext(context.Background(), base.Named(args))
}

// Query is QueryContext without a context.
//
// Deprecated: use QueryContext.
func (p *passing) Query(args []driver.Value) (driver.Rows, error) {
	return p.QueryContext(context.Background(), base.Named(args))
}
