package driver

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/shardkey/shardkey/rewrite"
)

// An INSERT … SELECT cannot be given its keys in its text: how many rows there
// are is known only when the query has run. So the query runs once, into a
// temporary table, the keys are put beside its rows, and the statement itself
// runs over both. It stays one statement, and what it reads, writes and refuses
// is the server's affair; no row travels to the client. Temporary tables commit
// nothing and are this session's own.
//
// Round trips: where LAST_INSERT_ID() is, the table, the query, how its rows are
// numbered, the statement, and dropping the table. Keys that are not contiguous,
// and those for some of the rows only, take a second table.

// sourceRun is one execution of an INSERT … SELECT.
type sourceRun struct {
	*conn
	fill  *fill
	in    *rewrite.Insert
	table *table
	args  []driver.NamedValue
	out   *Keys

	tables []string     // the temporary tables that there are
	rows   int64        // rows that the query gave
	keys   rewrite.Keys // those generated
	one    [1]int64
	// offset is what a row's number lacks to its key, for contiguous keys; where
	// it is empty they are in a table.
	offset string
}

// execSource executes an INSERT … SELECT.
func (f *fill) execSource(ctx context.Context, c *conn, in *rewrite.Insert, args []driver.NamedValue) (driver.Result, error) {
	if in.KeepsSource() {
		if err := c.passed(ctx, f.key.text, rewrite.MayInsert); err != nil {
			return nil, err
		}
		return c.base.execOrPrepare(ctx, f.key.text, args, 0)
	}
	r, err := f.startSource(ctx, c, in, args)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	base, err := c.base.execOrPrepare(ctx, in.Text(r.query()), r.tailArgs(), 0)
	if err != nil {
		return nil, r.explain(err)
	}
	return r.settle(ctx, base)
}

// querySource is execSource for RETURNING. The temporary tables are dropped
// when the rows are closed.
func (f *fill) querySource(ctx context.Context, c *conn, in *rewrite.Insert, args []driver.NamedValue) (driver.Rows, error) {
	if in.KeepsSource() {
		if err := c.passed(ctx, f.key.text, rewrite.MayInsert); err != nil {
			return nil, err
		}
		return c.base.queryOrPrepare(ctx, f.key.text, args, 0)
	}
	r, err := f.startSource(ctx, c, in, args)
	if err != nil {
		return nil, err
	}
	rows, err := c.base.queryOrPrepare(ctx, in.Text(r.query()), r.tailArgs(), 0)
	if err != nil {
		_ = r.Close()
		return nil, r.explain(err)
	}
	r.settleRows()
	return &closingRows{Rows: rows, after: r}, nil
}

// startSource runs the query and brings the keys to the server.
func (f *fill) startSource(ctx context.Context, c *conn, in *rewrite.Insert, args []driver.NamedValue) (*sourceRun, error) {
	r := &sourceRun{conn: c, fill: f, in: in, table: in.Table.Rule.(*table), args: args, out: keysOf(ctx)}
	if in.MentionsLastID {
		if err := c.payOwed(ctx); err != nil {
			return nil, err
		}
	}
	for _, step := range []func(context.Context) error{r.saveLastID, r.createRows, r.readQuery, r.makeKeys} {
		if err := step(ctx); err != nil {
			_ = r.Close()
			return nil, r.explain(err)
		}
	}
	return r, nil
}

// saveLastID keeps LAST_INSERT_ID() over the numbering of the rows.
func (r *sourceRun) saveLastID(ctx context.Context) error {
	if r.in.Guarded {
		if err := r.prepareSaved(ctx); err != nil {
			return err
		}
	}
	if r.session.owed != "" {
		return nil
	}
	row, err := r.askRow(ctx, "SELECT LAST_INSERT_ID()")
	if err == nil && len(row) == 1 {
		r.session.owed = text(row[0])
	}
	return err
}

func (r *sourceRun) queryArgs() []driver.NamedValue {
	return renumbered(r.args[:r.in.Source.QueryParams])
}

func (r *sourceRun) tailArgs() []driver.NamedValue {
	return renumbered(r.args[r.in.Source.QueryParams:])
}

func renumbered(args []driver.NamedValue) []driver.NamedValue {
	args = slices.Clone(args)
	for i := range args {
		args[i].Ordinal = i + 1
	}
	return args
}
