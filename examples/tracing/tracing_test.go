package tracing

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/XSAM/otelsql"
	"github.com/go-sql-driver/mysql"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
)

const ruleText = `
rules:
- !SHARDING
  tables:
    t_order:
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 6}}
`

func parse(t *testing.T) *rule.Rule {
	t.Helper()
	r, err := rule.Parse("tracing", []byte(ruleText))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// spans records what otelsql tells.
func spans() (*tracetest.SpanRecorder, otelsql.Option) {
	recorder := tracetest.NewSpanRecorder()
	return recorder, otelsql.WithTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
}

func TestTracingOverShardkey(t *testing.T) {
	if testserver.Each(t, TestTracingOverShardkey) {
		return
	}
	if err := driver.RegisterRule("tracing", parse(t)); err != nil {
		t.Fatal(err)
	}
	defer driver.DeregisterRule("tracing")
	recorder, option := spans()
	db, err := otelsql.Open("shardkey", testserver.Database(t)+"?shardkeyRule=tracing", option)
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
	traced := otelsql.WrapDriver(mysql.MySQLDriver{}, option)
	connector, err := driver.Wrap(traced, parse(t)).(sqldriver.DriverContext).OpenConnector(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	use(t, sql.OpenDB(connector))
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

// statements are the texts of all spans.
func statements(recorder *tracetest.SpanRecorder) string {
	var all strings.Builder
	for _, span := range recorder.Ended() {
		for _, attribute := range span.Attributes() {
			if strings.HasPrefix(attribute.Value.AsString(), "INSERT") {
				all.WriteString(attribute.Value.AsString() + "\n")
			}
		}
	}
	return all.String()
}
