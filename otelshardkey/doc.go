// Package otelshardkey reports what shardkey does to OpenTelemetry: metrics of a
// connector, and attributes of spans.
//
//	db, connector, err := driver.Open(dsn, otelshardkey.SpanAttributes(false))
//	…
//	reader, err := prometheus.New(prometheus.WithProducer(otelshardkey.Producer()))
//	provider := metric.NewMeterProvider(metric.WithReader(reader))
//	…
//	metrics, err := otelshardkey.Register(connector, provider)
//	…
//	defer metrics.Unregister()
//
// The metrics are read from [driver.Connector.Stats] when they are collected, and cost
// nothing in between. docs/observability.md lists them; a dashboard for Grafana and alerts
// for Prometheus stand in examples/observability. Names follow OpenTelemetry's semantic
// conventions: dots, units of UCUM, db.collection.name for a table, error.type for a kind
// of error.
//
// Readers and exporters are the program's choice. Without the [Producer] all metrics but
// the histogram shardkey.generate.duration are reported.
package otelshardkey
