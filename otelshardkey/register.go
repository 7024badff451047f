package otelshardkey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/shardkey/shardkey/driver"
)

// scope is the instrumentation scope of the metrics.
const scope = "github.com/shardkey/shardkey/otelshardkey"

// Option changes what [Register] does.
type Option func(*options)

type options struct {
	provider metric.MeterProvider
	name     string
	attrs    []attribute.KeyValue
}

// WithMeterProvider takes another provider than the global one, otel.GetMeterProvider().
func WithMeterProvider(provider metric.MeterProvider) Option {
	return func(o *options) { o.provider = provider }
}

// WithName names the connector among several of a program: the attribute
// db.client.connection.pool.name of all its metrics. The default is the database of its
// DSN, as "tcp(127.0.0.1:3306)/app", or the rule's name where that is not known; a name
// that is taken gets a number, as "app#2".
func WithName(name string) Option {
	return func(o *options) { o.name = name }
}

// WithAttributes adds attributes to all metrics of the connector.
func WithAttributes(attrs ...attribute.KeyValue) Option {
	return func(o *options) { o.attrs = append(o.attrs, attrs...) }
}

// Register reports a connector's metrics each time that they are collected, and lets a
// [Producer] report its histogram, until the registration's Unregister is called; do
// that before or after the sql.DB is closed. The error is for a nil connector, as of a
// sql.DB that another driver opened, or comes from the meter.
//
// It may be called by many goroutines at once, for as many connectors as there are.
func Register(c *driver.Connector, opts ...Option) (metric.Registration, error) {
	if c == nil {
		return nil, errors.New("otelshardkey: there is no connector: driver.ConnectorOf returns nil for a sql.DB that another driver opened")
	}
	var o options
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if o.provider == nil {
		o.provider = otel.GetMeterProvider()
	}
	m, err := newInstruments(o.provider.Meter(scope))
	if err != nil {
		return nil, fmt.Errorf("otelshardkey: %w", err)
	}
	name := names.take(c, o.name)
	all := attribute.NewSet(append(o.attrs, attribute.String("db.client.connection.pool.name", name))...)
	named := new(namedTables)
	callback, err := m.meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		observation{m, to, all.ToSlice(), named}.observe(c.Stats())
		return nil
	}, m.all...)
	if err != nil {
		names.release(name)
		return nil, fmt.Errorf("otelshardkey: %w", err)
	}
	r := &registration{Registration: callback, connector: c, name: name, attrs: all, since: time.Now()}
	registered.add(r)
	return r, nil
}

// registration is what one call of [Register] made.
type registration struct {
	metric.Registration
	connector *driver.Connector
	name      string
	attrs     attribute.Set
	since     time.Time
	once      sync.Once
}

// Unregister ends the reports, and gives the name back.
func (r *registration) Unregister() error {
	err := r.Registration.Unregister()
	r.once.Do(func() {
		registered.remove(r)
		names.release(r.name)
	})
	return err
}

// names are those in use.
var names = nameList{taken: map[string]bool{}}

type nameList struct {
	mu    sync.Mutex
	taken map[string]bool
}

func (l *nameList) take(c *driver.Connector, given string) string {
	if given == "" {
		s := c.Stats()
		given = cmp.Or(s.Database, s.Rule.Name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name := given
	for n := 2; l.taken[name]; n++ {
		name = fmt.Sprintf("%s#%d", given, n)
	}
	l.taken[name] = true
	return name
}

func (l *nameList) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.taken, name)
}
