package driver

import (
	"context"
	"database/sql/driver"
	"io"
	"testing"
)

// idleConn answers at once and records nothing, so that what is measured is
// ours.
type idleConn struct{}

type idleConnector struct{}

func (idleConnector) Connect(context.Context) (driver.Conn, error) { return idleConn{}, nil }
func (idleConnector) Driver() driver.Driver                        { return nil }

func (idleConn) Prepare(string) (driver.Stmt, error) { return idleStmt{}, nil }
func (idleConn) Close() error                        { return nil }
func (idleConn) Begin() (driver.Tx, error)           { return nil, driver.ErrSkip }

func (idleConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

func (idleConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return idleRows{}, nil
}

type idleStmt struct{}

func (idleStmt) Close() error                                { return nil }
func (idleStmt) NumInput() int                               { return -1 }
func (idleStmt) Exec([]driver.Value) (driver.Result, error)  { return driver.RowsAffected(1), nil }
func (idleStmt) Query([]driver.Value) (driver.Rows, error)   { return idleRows{}, nil }
func (idleStmt) CheckNamedValue(nv *driver.NamedValue) error { return nil }

func (idleStmt) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	return idleRows{}, nil
}

type idleRows struct{}

func (idleRows) Columns() []string         { return nil }
func (idleRows) Close() error              { return nil }
func (idleRows) Next([]driver.Value) error { return io.EOF }

func idleOurs(b *testing.B) driver.Conn {
	b.Helper()
	connector := must(NewConnector(idleConnector{}, testRule(b)))(b)
	c := must(connector.Connect(context.Background()))(b)
	b.Cleanup(func() { _, _ = c.Close(), connector.Close() })
	return c
}

const benchSelect = "SELECT order_id, user_id, amount, created_at FROM t_order WHERE order_id = ? AND user_id = ?"

var benchArgs = []driver.NamedValue{{Ordinal: 1, Value: int64(1)}, {Ordinal: 2, Value: int64(2)}}

// BenchmarkSelect is a SELECT that passes through. /base is the base alone.
func BenchmarkSelect(b *testing.B) {
	for _, bm := range []struct {
		name string
		conn driver.Conn
	}{{"base", idleConn{}}, {"shardkey", idleOurs(b)}} {
		b.Run(bm.name, func(b *testing.B) {
			q := bm.conn.(driver.QueryerContext)
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				must(q.QueryContext(ctx, benchSelect, benchArgs))(b)
			}
		})
	}
}

// BenchmarkSelectPrepared is the same with a prepared statement.
func BenchmarkSelectPrepared(b *testing.B) {
	for _, bm := range []struct {
		name string
		conn driver.Conn
	}{{"base", idleConn{}}, {"shardkey", idleOurs(b)}} {
		b.Run(bm.name, func(b *testing.B) {
			st := must(bm.conn.Prepare(benchSelect))(b)
			q := st.(driver.StmtQueryContext)
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				must(q.QueryContext(ctx, benchArgs))(b)
			}
		})
	}
}

// BenchmarkUpdate is an UPDATE that passes through.
func BenchmarkUpdate(b *testing.B) {
	c := idleOurs(b).(driver.ExecerContext)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		must(c.ExecContext(ctx, "UPDATE t_order SET amount = ? WHERE order_id = ?", benchArgs))(b)
	}
}

// TestPassThrough_noAllocations holds what BenchmarkSelect shows.
func TestPassThrough_noAllocations(t *testing.T) {
	connector := mustConnector(t, idleConnector{}, testRule(t))
	defer connector.Close()
	c := must(connector.Connect(context.Background()))(t)
	defer c.Close()
	st := must(c.Prepare(benchSelect))(t)
	defer st.Close()
	ctx := context.Background()
	equal(t, testing.AllocsPerRun(100, func() {
		_, _ = c.(driver.QueryerContext).QueryContext(ctx, benchSelect, benchArgs)
		_, _ = st.(driver.StmtQueryContext).QueryContext(ctx, benchArgs)
	}), 0, "allocations")
}
