// Command tracing stacks shardkey and an instrumenting driver wrapper, here
// OpenTelemetry's otelsql, in both orders:
//
//	go run -C examples ./tracing
//
//	application → otelsql → shardkey → go-sql-driver: spans hold the statements as written
//	application → shardkey → otelsql → go-sql-driver: spans hold the statements as sent, with the keys
//
// The first is one word at otelsql.Open; the second uses driver.Wrap. Keys,
// results and errors are the same in both.
package main

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/XSAM/otelsql"
	"github.com/go-sql-driver/mysql"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/embedded"
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

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tracing:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) (err error) {
	dsn, stop, err := embedded.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, order := range []struct {
		name string
		open func(string, otelsql.Option) (*sql.DB, error)
	}{
		{"otelsql over shardkey", tracingOverShardkey},
		{"shardkey over otelsql", shardkeyOverTracing},
	} {
		recorder, option := spans()
		db, err := order.open(dsn, option)
		if err != nil {
			return err
		}
		if err := insert(db); err != nil {
			return err
		}
		fmt.Fprintln(out, order.name)
		for _, span := range recorder.Ended() {
			fmt.Fprintf(out, "  span %-22s %s\n", span.Name(), statement(span))
		}
	}
	return nil
}

func tracingOverShardkey(dsn string, option otelsql.Option) (*sql.DB, error) {
	r, err := rule.Parse("tracing", []byte(ruleText))
	if err != nil {
		return nil, err
	}
	if err := driver.RegisterRule("tracing", r); err != nil {
		return nil, err
	}
	return otelsql.Open("shardkey", dsn+"?shardkeyRule=tracing", option) // was: "mysql", dsn
}

func shardkeyOverTracing(dsn string, option otelsql.Option) (*sql.DB, error) {
	r, err := rule.Parse("tracing", []byte(ruleText))
	if err != nil {
		return nil, err
	}
	traced := otelsql.WrapDriver(mysql.MySQLDriver{}, option)
	connector, err := driver.Wrap(traced, r).(sqldriver.DriverContext).OpenConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func insert(db *sql.DB) error {
	ctx := context.Background()
	_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS t_order (order_id BIGINT PRIMARY KEY, item VARCHAR(20))")
	if err == nil {
		_, err = db.ExecContext(ctx, "INSERT INTO t_order (item) VALUES (?)", "tea")
	}
	return errors.Join(err, db.Close())
}

// spans records what otelsql tells.
func spans() (*tracetest.SpanRecorder, otelsql.Option) {
	recorder := tracetest.NewSpanRecorder()
	return recorder, otelsql.WithTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
}

// statement is the statement of a span; it is empty for one without.
func statement(span trace.ReadOnlySpan) string {
	for _, attribute := range span.Attributes() {
		if attribute.Key == "db.query.text" || attribute.Key == "db.statement" {
			return attribute.Value.AsString()
		}
	}
	return ""
}
