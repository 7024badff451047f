package otelshardkey

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/shardkey/shardkey/driver"
)

// SpanAttributes is an option for driver.Open, driver.NewConnector and driver.Wrap. It adds
// attributes about the generated keys of an INSERT to the span in the statement's context, if the
// span is recording:
//
//	db.collection.name       t_order, the logical table
//	shardkey.generator.name  snowflake
//	shardkey.generator.type  SNOWFLAKE
//	shardkey.rows            2, the number of rows that got a key
//
// The span is your program's, or the span of an instrumenting driver above this one, such as
// otelsql.Open("shardkey", …). If a query has several INSERTs, the attributes describe the last
// one.
func SpanAttributes() driver.Option {
	return driver.WithKeyHook(func(ctx context.Context, f driver.GeneratedKeys) {
		span := trace.SpanFromContext(ctx)
		if !span.IsRecording() {
			return
		}
		span.SetAttributes(attrTable.String(f.Table), attrGenerator.String(f.Generator),
			attrGeneratorType.String(f.Type), attribute.Int("shardkey.rows", f.Rows))
	})
}
