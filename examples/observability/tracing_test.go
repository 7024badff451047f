package main

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/XSAM/otelsql"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
)

const tracingRule = `
rules:
- !SHARDING
  tables:
    t_order:
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 6}}
`

// spans returns an option for otelsql that records spans, and their recorder.
func spans() (*tracetest.SpanRecorder, otelsql.Option) {
	recorder := tracetest.NewSpanRecorder()
	return recorder, otelsql.WithTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
}

// statements returns the INSERTs of all spans.
func statements(recorder *tracetest.SpanRecorder) string {
	var all strings.Builder
	for _, span := range recorder.Ended() {
		if text := statement(span); strings.HasPrefix(text, "INSERT") {
			all.WriteString(text + "\n")
		}
	}
	return all.String()
}

func TestTracing_bothOrders(t *testing.T) {
	if testserver.Each(t, TestTracing_bothOrders) {
		return
	}
	r, err := rule.Parse("tracing", []byte(tracingRule))
	must.Do(t, err)
	for _, test := range []struct {
		name     string
		open     func(string, *rule.Rule, otelsql.Option) (*sql.DB, *driver.Connector, error)
		withKeys bool // the spans' statements contain the keys
	}{
		{"otelsql over shardkey", tracingOverShardkey, false},
		{"shardkey over otelsql", shardkeyOverTracing, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			recorder, option := spans()
			db, connector, err := test.open(testserver.Database(t), r, option)
			must.Do(t, err)
			must.Equal(t, connector != nil, true, "has a connector")
			use(t, db)
			if text := statements(recorder); text == "" || strings.Contains(text, "order_id") != test.withKeys {
				t.Errorf("have: %s\nwant: statements with keys: %t", text, test.withKeys)
			}
		})
	}
}

// use inserts rows, whose keys are the same in both orders, and closes the database. TestWrappers of
// otherorms checks the rest.
func use(t *testing.T, db *sql.DB) {
	t.Helper()
	ctx := t.Context()
	must.Get(db.ExecContext(ctx, "CREATE TABLE t_order (order_id BIGINT PRIMARY KEY, item VARCHAR(20) UNIQUE)"))(t)
	var keys driver.Keys
	res := must.Get(db.ExecContext(driver.WithKeys(ctx, &keys), "INSERT INTO t_order (item) VALUES (?), (?)", "a", "b"))(t)
	id, err := res.LastInsertId()
	if values := keys.Values(); err != nil || len(values) != 2 || values[0] != id {
		t.Errorf("LastInsertId %d, %v, keys %v", id, err, values)
	}
	must.Do(t, db.Close())
}
