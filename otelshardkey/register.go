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

// scope is the instrumentation scope of the metrics.
const scope = "github.com/shardkey/shardkey/otelshardkey"

// poolName is the attribute that names the connector.
const poolName = attribute.Key("db.client.connection.pool.name")

// Register reports a connector's metrics each time that they are collected, and lets a
// [Producer] report its histogram, until the registration's Unregister is called; do
// that before or after the sql.DB is closed. The error is for a nil connector, as of a
// sql.DB that another driver opened, or comes from the meter.
//
// A nil provider is the global one, otel.GetMeterProvider(). All metrics of the connector
// have attrs. One of them, db.client.connection.pool.name, names the connector among several
// of a program. Its default is the database of the DSN, for example
// "tcp(127.0.0.1:3306)/app", or the rule's name where that is not known. A name that is
// taken gets a number, for example "app#2".
//
// It may be called by many goroutines at once, for as many connectors as there are.
func Register(c *driver.Connector, provider metric.MeterProvider, attrs ...attribute.KeyValue) (metric.Registration, error) {
	if c == nil {
		return nil, errors.New("otelshardkey: there is no connector: driver.ConnectorOf returns nil for a sql.DB that another driver opened")
	}
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	m, err := newInstruments(provider.Meter(scope))
	if err != nil {
		return nil, fmt.Errorf("otelshardkey: %w", err)
	}
	given, _ := new(attribute.NewSet(attrs...)).Value(poolName)
	name := names.take(c, given.AsString())
	all := attribute.NewSet(append(slices.Clone(attrs), poolName.String(name))...)
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
