// Package otelshardkey reports a connector's metrics, and attributes of spans, to
// OpenTelemetry.
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
// It reads [driver.Connector.Stats] when metrics are collected, and costs nothing in between.
// docs/reference/metrics.md lists the metrics. A dashboard for Grafana and alerts for
// Prometheus are in examples/observability. Names follow OpenTelemetry's semantic
// conventions.
//
// You choose readers and exporters. Without the [Producer], the histogram
// shardkey.generate.duration is missing.
package otelshardkey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/shardkey/shardkey/driver"
)

const (
	// scope is the instrumentation scope of the metrics.
	scope = "github.com/shardkey/shardkey/otelshardkey"
	// poolName is the attribute that names the connector.
	poolName = attribute.Key("db.client.connection.pool.name")
)

// Register reports a connector's metrics each time they are collected, until you call Unregister.
// A [Producer] then also reports the connector's histogram. You may call Unregister before or
// after you close the sql.DB.
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
	r := &registration{connector: c, since: time.Now()}
	registered.add(r, attrs)
	if err := r.report(provider.Meter(scope, metric.WithInstrumentationVersion(driver.Version()))); err != nil {
		registered.remove(r)
		return nil, fmt.Errorf("otelshardkey: %w", err)
	}
	return r, nil
}

// registration is the result of one call of [Register].
type registration struct {
	metric.Registration
	connector *driver.Connector
	name      string
	attrs     attribute.Set
	since     time.Time
	named     namedTables
}

// Unregister ends the reports and releases the connector's name.
func (r *registration) Unregister() error {
	registered.remove(r)
	return r.Registration.Unregister()
}

// report creates the instruments and registers a callback that observes them.
func (r *registration) report(meter metric.Meter) error {
	var all []metric.Observable
	tables, err1 := create(meter, tableMetrics, &all)
	health, err2 := create(meter, healthMetrics, &all)
	generators, err3 := create(meter, generatorMetrics, &all)
	connector, err4 := create(meter, connectorMetrics, &all)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	callback, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		s := r.connector.Stats()
		observe(to, connector, &s, r.with()...)
		for _, t := range r.named.group(s.Tables) {
			attrs := r.with(attrTable.String(t.Table),
				attrGenerator.String(t.Generator), attrGeneratorType.String(t.Type))
			observe(to, tables, &t, attrs...)
		}
		for _, g := range s.Generators {
			attrs := r.with(attrGenerator.String(g.Name), attrGeneratorType.String(g.Type))
			if observe(to, health, &g, attrs...); !g.Assigner {
				observe(to, generators, &g, attrs...)
			}
		}
		return nil
	}, all...)
	r.Registration = callback
	return err
}

// with returns the attributes of all metrics of the connector, and more.
func (r *registration) with(more ...attribute.KeyValue) []attribute.KeyValue {
	return append(r.attrs.ToSlice(), more...)
}

// registered are the connectors that a [Producer] reads.
var registered registrations

type registrations struct {
	mu   sync.Mutex
	list []*registration
}

func (l *registrations) all() []*registration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// add adds a registration with a unique name.
func (l *registrations) add(r *registration, attrs []attribute.KeyValue) {
	given, _ := new(attribute.NewSet(attrs...)).Value(poolName)
	stats := r.connector.Stats()
	name := cmp.Or(given.AsString(), stats.Database, stats.Rule.Name)
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := func(o *registration) bool { return o.name == r.name }
	r.name = name
	for n := 2; slices.ContainsFunc(l.list, taken); n++ {
		r.name = fmt.Sprintf("%s#%d", name, n)
	}
	r.attrs = attribute.NewSet(append(slices.Clone(attrs), poolName.String(r.name))...)
	l.list = append(l.list, r)
}

func (l *registrations) remove(r *registration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(o *registration) bool { return o == r })
}
