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

	"github.com/shardkey/shardkey/driver"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
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

// Producer returns a producer of the histogram shardkey.generate.duration, for all registered
// connectors. Pass it to the reader of your provider:
//
//	reader, err := prometheus.New(prometheus.WithProducer(otelshardkey.Producer()))
//
// OpenTelemetry's API has no asynchronous histogram. Recording each call would cost more than
// generating the key, so the driver counts into buckets, and the producer reads these.
func Producer() sdk.Producer { return producer{} }

type producer struct{}

// Produce returns the histograms of the registered connectors. The error is always nil.
func (producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	now := time.Now()
	var points []metricdata.HistogramDataPoint[float64]
	for _, r := range registered.all() {
		for _, c := range callsOf(r.connector.Stats().Tables) {
			points = append(points, c.point(r, now))
		}
	}
	if len(points) == 0 {
		return nil, nil
	}
	return []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: scope, Version: driver.Version()}, Metrics: []metricdata.Metrics{{
		Name: "shardkey.generate.duration", Unit: "s",
		Description: "Time of calls of the generator, of one call in 64.",
		Data:        metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality, DataPoints: points},
	}}}}, nil
}

// calls is the histogram of one generator.
type calls struct {
	generator, typ string
	driver.Histogram
}

// callsOf adds up the tables' histograms for each generator. A histogram for each table would be
// too many series.
func callsOf(tables []driver.TableStats) (list []*calls) {
	for _, t := range tables {
		i := slices.IndexFunc(list, func(c *calls) bool { return c.generator == t.Generator && c.typ == t.Type })
		if i < 0 {
			sum := driver.Histogram{Bounds: t.Generate.Bounds, Counts: make([]int64, len(t.Generate.Counts))}
			i, list = len(list), append(list, &calls{t.Generator, t.Type, sum})
		}
		list[i].Sum += t.Generate.Sum
		for bucket, n := range t.Generate.Counts {
			list[i].Counts[bucket] += n
		}
	}
	return list
}

func (c *calls) point(r *registration, now time.Time) metricdata.HistogramDataPoint[float64] {
	attrs := attribute.NewSet(r.with(attrGenerator.String(c.generator), attrGeneratorType.String(c.typ))...)
	p := metricdata.HistogramDataPoint[float64]{Attributes: attrs, StartTime: r.since, Time: now, Sum: c.Sum.Seconds()}
	for _, bound := range c.Bounds {
		p.Bounds = append(p.Bounds, bound.Seconds())
	}
	for _, n := range c.Counts {
		p.BucketCounts = append(p.BucketCounts, uint64(n))
		p.Count += uint64(n)
	}
	return p
}
