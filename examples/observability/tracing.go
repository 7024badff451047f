package main

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"io"
	"strings"

	"github.com/XSAM/otelsql"
	"github.com/go-sql-driver/mysql"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/otelshardkey"
	"github.com/shardkey/shardkey/rule"
)

// tracingOverShardkey opens a database with otelsql above shardkey. Its spans have the program's
// statements, and the table and generator as attributes.
func tracingOverShardkey(dsn string, r *rule.Rule, option otelsql.Option) (*sql.DB, *driver.Connector, error) {
	sharded, err := connector(driver.Wrap(mysql.MySQLDriver{}, r, otelshardkey.SpanAttributes()), dsn)
	if err != nil {
		return nil, nil, err
	}
	return otelsql.OpenDB(sharded, option), driver.ConnectorOf(sharded), nil
}

// shardkeyOverTracing opens a database with otelsql below shardkey. Its spans have the statements
// as sent, with the keys. Keys, results and errors are the same as with tracingOverShardkey.
func shardkeyOverTracing(dsn string, r *rule.Rule, option otelsql.Option) (*sql.DB, *driver.Connector, error) {
	sharded, err := connector(driver.Wrap(otelsql.WrapDriver(mysql.MySQLDriver{}, option), r), dsn)
	if err != nil {
		return nil, nil, err
	}
	return sql.OpenDB(sharded), driver.ConnectorOf(sharded), nil
}

func connector(d sqldriver.Driver, dsn string) (sqldriver.Connector, error) {
	return d.(sqldriver.DriverContext).OpenConnector(dsn)
}

// firstSpans is an exporter that prints the first INSERTs.
type firstSpans struct {
	out  io.Writer
	left int
}

func (f *firstSpans) ExportSpans(_ context.Context, spans []trace.ReadOnlySpan) error {
	for _, span := range spans {
		if text := statement(span); f.left > 0 && strings.HasPrefix(text, "INSERT INTO") {
			f.left--
			fmt.Fprintf(f.out, "span     %s  %s\n", span.Name(), text)
		}
	}
	return nil
}

func (*firstSpans) Shutdown(context.Context) error { return nil }

func statement(span trace.ReadOnlySpan) string {
	for _, attribute := range span.Attributes() {
		if attribute.Key == "db.query.text" || attribute.Key == "db.statement" {
			return attribute.Value.AsString()
		}
	}
	return ""
}
