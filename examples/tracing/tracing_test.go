package main

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/XSAM/otelsql"
	"github.com/go-sql-driver/mysql"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/embedded"
	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"otelsql over shardkey\n",
		"  span sql.conn.exec          INSERT INTO t_order (item) VALUES (?)\n",
		"shardkey over otelsql\n",
		"INSERT INTO t_order (item, `order_id`) VALUES (?, ?)\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("have: %swant: %s", out.String(), want)
		}
	}
}

// statements are the INSERTs of all spans.
func statements(recorder *tracetest.SpanRecorder) string {
	var all strings.Builder
	for _, span := range recorder.Ended() {
		if text := statement(span); strings.HasPrefix(text, "INSERT") {
			all.WriteString(text + "\n")
		}
	}
	return all.String()
}

// The connector below a wrapper is known when it is opened first; a connection shows
// it in any case.
func TestTracing_connector(t *testing.T) {
	dsn, stop, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	r, err := rule.Parse("tracing", []byte(ruleText))
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.RegisterRule("tracing", r); err != nil {
		t.Fatal(err)
	}
	below, err := driver.Driver{}.OpenConnector(dsn + "?shardkeyRule=tracing")
	if err != nil {
		t.Fatal(err)
	}
	_, option := spans()
	db := otelsql.OpenDB(below, option)
	connector := driver.ConnectorOf(below)
	if err := connector.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if have := driver.ConnectorOf(db); have != nil {
		t.Errorf("have: %v\nwant: nil, as the wrapper does not show it", have)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if have := driver.ConnectorOf(conn); have != connector || connector == nil {
		t.Errorf("of a connection\nhave: %p\nwant: %p", have, connector)
	}
	if err := errors.Join(conn.Close(), db.Close(), stop()); err != nil {
		t.Error(err)
	}
}

func TestTracingOverShardkey(t *testing.T) {
	if testserver.Each(t, TestTracingOverShardkey) {
		return
	}
	recorder, option := spans()
	db, err := tracingOverShardkey(testserver.Database(t), option)
	if err != nil {
		t.Fatal(err)
	}
	use(t, db)
	if text := statements(recorder); strings.Contains(text, "order_id)") {
		t.Errorf("spans hold the statement as sent:\n%s", text)
	}
}

func TestShardkeyOverTracing(t *testing.T) {
	if testserver.Each(t, TestShardkeyOverTracing) {
		return
	}
	recorder, option := spans()
	db, err := shardkeyOverTracing(testserver.Database(t), option)
	if err != nil {
		t.Fatal(err)
	}
	use(t, db)
	if text := statements(recorder); !strings.Contains(text, "order_id") {
		t.Errorf("spans hold the statement as written:\n%s", text)
	}
}

// use does what must work in both orders, and closes the database.
func use(t *testing.T, db *sql.DB) {
	t.Helper()
	ctx := context.Background()
	if _, err := db.ExecContext(ctx, "CREATE TABLE t_order (order_id BIGINT PRIMARY KEY, item VARCHAR(20) UNIQUE)"); err != nil {
		t.Fatal(err)
	}
	var keys driver.Keys
	res, err := db.ExecContext(driver.WithKeys(ctx, &keys), "INSERT INTO t_order (item) VALUES (?), (?)", "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	id, err := res.LastInsertId()
	if values := keys.Values(); err != nil || len(values) != 2 || values[0] != id {
		t.Errorf("LastInsertId %d, %v, keys %v", id, err, values)
	}
	st, err := db.PrepareContext(ctx, "INSERT INTO t_order (item) VALUES (?)")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.ExecContext(ctx, "c"); err != nil {
		t.Error(err)
	}
	var refused *mysql.MySQLError
	if _, err := st.ExecContext(ctx, "c"); !errors.As(err, &refused) || refused.Number != 1062 {
		t.Errorf("a duplicate: %v", err)
	}
	var n int
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM t_order WHERE order_id > 0").Scan(&n); err != nil || n != 3 {
		t.Errorf("%d rows, %v", n, err)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Raw(func(c any) error {
		if driver.ConnectorOf(c) == nil {
			t.Errorf("no connector found behind %T", c)
		}
		return nil
	})
	if err := errors.Join(conn.Close(), st.Close(), db.Close()); err != nil {
		t.Error(err)
	}
}
