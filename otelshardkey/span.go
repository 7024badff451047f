package otelshardkey

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/shardkey/shardkey/driver"
)

// SpanAttributes is an option for driver.Open, driver.NewConnector and
// driver.Wrap. It writes into the span of an INSERT's context, when that
// records, which table got how many keys from which generator, and with firstKey also the
// first of the keys:
//
//	db.collection.name       t_order, the logical table
//	shardkey.generator.name  snowflake
//	shardkey.generator.type  SNOWFLAKE
//	shardkey.rows            2, the rows that got a key
//	shardkey.first_key       "1084326182498902016"
//
// The span is the program's own, or that of an instrumenting driver above this one, as
// otelsql.Open("shardkey", …) has it. Of several INSERTs in one text the last one stays.
func SpanAttributes(firstKey bool) driver.Option {
	return driver.WithFilled(func(ctx context.Context, f driver.Filled) {
		span := trace.SpanFromContext(ctx)
		if !span.IsRecording() {
			return
		}
		attrs := []attribute.KeyValue{
			attrTable.String(f.Table),
			attrGenerator.String(f.Generator),
			attrGeneratorType.String(f.Type),
			attribute.Int("shardkey.rows", f.Rows),
		}
		if firstKey {
			attrs = append(attrs, attribute.String("shardkey.first_key", keyText(f.FirstKey)))
		}
		span.SetAttributes(attrs...)
	})
}

// keyText writes a key; a text, as integers of 64 bits do not survive JavaScript.
func keyText(key any) string {
	if bytes, ok := key.([]byte); ok {
		return fmt.Sprintf("%x", bytes)
	}
	return fmt.Sprint(key)
}
