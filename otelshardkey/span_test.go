package otelshardkey_test

import (
	"database/sql"
	"maps"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/otelshardkey"
)

func TestSpanAttributes_inTheSpanOfTheContext(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(recorder)).Tracer("test")
	db := sql.OpenDB(newConnector(t, new(fake), otelshardkey.SpanAttributes()))
	defer db.Close()
	ctx, span := tracer.Start(t.Context(), "order")
	must.Get(db.ExecContext(ctx, "INSERT INTO t_order (a) VALUES (?), (?)", 1, 2))(t)
	span.End()
	have := map[string]string{}
	for _, a := range recorder.Ended()[0].Attributes() {
		have[string(a.Key)] = a.Value.String()
	}
	want := map[string]string{"db.collection.name": "t_order", "shardkey.generator.name": "g",
		"shardkey.generator.type": "", "shardkey.rows": "2"}
	if !maps.Equal(have, want) {
		t.Errorf("have: %v\nwant: %v", have, want)
	}
	// Without a span there are no attributes and no error.
	must.Get(db.ExecContext(t.Context(), "INSERT INTO t_order (a) VALUES (?)", 1))(t)
}
