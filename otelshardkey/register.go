// Package otelshardkey reports a connector's metrics, and attributes of spans, to
// OpenTelemetry.
//
//	db, connector, err := driver.Open(dsn, otelshardkey.SpanAttributes())
//	…
//	reader, err := prometheus.New()
//	provider := metric.NewMeterProvider(metric.WithReader(reader))
//	…
//	metrics, err := otelshardkey.Register(connector, provider)
//	…
//	defer metrics.Unregister()
//
// It reads [driver.Connector.Stats] when metrics are collected, and costs nothing in between.
// The page about [metrics] lists them. A dashboard for Grafana and alerts for
// Prometheus are in examples/observability. Names follow OpenTelemetry's semantic
// conventions.
//
// You choose readers and exporters.
//
// [metrics]: https://github.com/shardkey/shardkey/blob/main/docs/reference/metrics.md
package otelshardkey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/shardkey/shardkey/driver"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const (
	// scope is the instrumentation scope of the metrics.
	scope = "github.com/shardkey/shardkey/otelshardkey"
	// poolName is the attribute that names the connector.
	poolName = attribute.Key("db.client.connection.pool.name")
)

// Register reports a connector's metrics each time they are collected, until you call Unregister.
// You may call Unregister before or after you close the sql.DB.
//
// A nil provider means the global one, otel.GetMeterProvider(). All metrics of the connector have
// attrs. One of them, db.client.connection.pool.name, names the connector. Its default is the
// database of the DSN, for example "tcp(127.0.0.1:3306)/app", or the rule's name if the database
// is unknown. If a name is in use, the connector's name gets a number, for example "app#2".
//
// Register returns an error if the connector is nil, or if the meter returns one.
// [driver.ConnectorOf] returns a nil connector for a sql.DB of another driver. Register is safe
// for concurrent use.
func Register(c *driver.Connector, provider metric.MeterProvider, attrs ...attribute.KeyValue) (
	metric.Registration, error) {
	if c == nil {
		return nil, errors.New("otelshardkey: the connector is nil: " +
			"driver.ConnectorOf returns nil for a sql.DB that another driver opened")
	}
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	given, _ := new(attribute.NewSet(attrs...)).Value(poolName)
	stats := c.Stats()
	r := &registration{connector: c, name: takeName(cmp.Or(given.AsString(), stats.Database, stats.Rule.Name))}
	r.attrs = append(slices.Clone(attrs), poolName.String(r.name))
	if err := r.report(provider.Meter(scope, metric.WithInstrumentationVersion(driver.Version()))); err != nil {
		names.Delete(r.name)
		return nil, fmt.Errorf("otelshardkey: %w", err)
	}
	return r, nil
}

type registration struct {
	metric.Registration
	connector *driver.Connector
	name      string
	release   sync.Once
	attrs     []attribute.KeyValue
	named     namedTables
}

// Unregister ends the reports and releases the connector's name.
func (r *registration) Unregister() error {
	r.release.Do(func() { names.Delete(r.name) })
	return r.Registration.Unregister()
}

// report creates the instruments and registers a callback that observes them.
func (r *registration) report(meter metric.Meter) error {
	all, err := create(meter)
	if err != nil {
		return err
	}
	r.Registration, err = meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		o := observer{all, to, r.attrs}
		s := r.connector.Stats()
		o.connector(&s)
		for _, t := range r.named.group(s.Tables) {
			o.with(attrTable.String(t.Table),
				attrGenerator.String(t.Generator), attrGeneratorType.String(t.Type)).table(&t)
		}
		for _, g := range s.Generators {
			o.with(attrGenerator.String(g.Name), attrGeneratorType.String(g.Type)).generator(&g)
		}
		return nil
	}, slices.Collect(maps.Values(all))...)
	return err
}

// names are the names in use, of connectors.
var names sync.Map

// takeName returns name, or name with a number if it is in use.
func takeName(name string) string {
	unique := name
	for n := 2; ; n++ {
		if _, used := names.LoadOrStore(unique, true); !used {
			return unique
		}
		unique = fmt.Sprintf("%s#%d", name, n)
	}
}
