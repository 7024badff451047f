package otelshardkey

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/spi"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Attributes, in addition to db.client.connection.pool.name and the program's own.
const (
	attrTable         = attribute.Key("db.collection.name")
	attrGenerator     = attribute.Key("shardkey.generator.name")
	attrGeneratorType = attribute.Key("shardkey.generator.type")
	attrErrorType     = attribute.Key("error.type")
	attrReason        = attribute.Key("shardkey.reason")
	attrOutcome       = attribute.Key("shardkey.outcome")
	attrResult        = attribute.Key("shardkey.result")
)

// definition defines a metric that is read from a T.
type definition[T any] struct {
	counter           bool // counter if true, gauge otherwise
	name, unit, about string
	attr              attribute.Key // attribute of each point, or "" for a metric with one point
	points            func(*T) points
}

const counter, gauge = true, false

type (
	tableStats     = driver.TableStats
	generatorStats = driver.GeneratorStats
)

var tableMetrics = []definition[tableStats]{
	{counter, "shardkey.keys", "{key}", "Generated keys, for INSERTs and in advance.", "",
		func(t *tableStats) points { return one(t.Keys) }},
	{counter, "shardkey.statements", "{statement}", "Executions of INSERTs that got keys.", "",
		func(t *tableStats) points { return one(t.Statements) }},
	{counter, "shardkey.generate.errors", "{error}", "Failed calls of the generator: INSERTs without keys.", "",
		func(t *tableStats) points { return one(t.Errors) }},
}

var healthMetrics = []definition[generatorStats]{
	{gauge, "shardkey.generator.healthy", "{flag}",
		"1 while the generator reports no error, otherwise 0. It has keys while a lease or segment lasts.", "",
		func(g *generatorStats) points { return flag(g.Health.Err == nil) }},
	{counter, "shardkey.errors", "{error}", "Errors of generators and worker-ID assigners, by kind.", attrErrorType,
		func(g *generatorStats) points { return each(g.Health.Errors) }},
}

// generatorMetrics are the metrics of generators. The generators that use an assigner report its
// leases.
var generatorMetrics = []definition[generatorStats]{
	{gauge, "shardkey.worker.id", "{id}", "The worker ID in use.", "",
		func(g *generatorStats) points { return figure(g.Health.WorkerID) }},
	{counter, "shardkey.waits", "{call}", "Calls that waited: for the clock, a store or the next sequence.", "",
		func(g *generatorStats) points { return figure(g.Health.Waits) }},
	{counter, "shardkey.wait.time", "s", "Total time of the calls that waited.", "",
		func(g *generatorStats) points { return seconds(g.Health.Waited).when(g.Health.Waits != nil) }},
	{counter, "shardkey.clock.steps", "{step}", "Backward steps of the clock.", "",
		inClock(func(c *spi.ClockHealth) points { return figure(c.Steps) })},
	{gauge, "shardkey.clock.ahead", "s", "How far the time of the newest key is ahead of the clock.", "",
		inClock(func(c *spi.ClockHealth) points { return seconds(c.Ahead) })},
	{gauge, "shardkey.lease.remaining", "s", "Time until the worker ID's lease ends; negative once it has ended.", "",
		func(g *generatorStats) points {
			return seconds(g.LeaseLeft).when(g.Health.Lease != nil && !g.Health.Lease.Limit.IsZero())
		}},
	{gauge, "shardkey.lease.length", "s", "The time that remains right after a renewal.", "",
		inLease(func(l *spi.LeaseHealth) points { return seconds(l.Length).when(!l.Limit.IsZero()) })},
	{counter, "shardkey.lease.renewals", "{renewal}", "Renewals of leases.", "",
		inLease(func(l *spi.LeaseHealth) points { return one(l.Renewals) })},
	{counter, "shardkey.lease.losses", "{lease}", "Leases that another process has now.", "",
		inLease(func(l *spi.LeaseHealth) points { return one(l.Lost) })},
	{gauge, "shardkey.segment.remaining", "{key}", "Keys in memory.", "",
		inSegment(func(s *spi.SegmentHealth) points { return figure(s.Left) })},
	{gauge, "shardkey.segment.size", "{key}", "Keys that come with one fetch.", "",
		inSegment(func(s *spi.SegmentHealth) points { return one(s.Size).when(s.Size > 0) })},
	{counter, "shardkey.fetches", "{fetch}", "Requests to the store of segments or tickets.", "",
		inSegment(func(s *spi.SegmentHealth) points { return one(s.Fetches) })},
	{gauge, "shardkey.fetch.duration", "s", "Duration of the last fetch.", "",
		inSegment(func(s *spi.SegmentHealth) points { return seconds(s.FetchTime).when(s.FetchTime > 0) })},
}

func inClock(f func(*spi.ClockHealth) points) func(*generatorStats) points {
	return func(g *generatorStats) points { return of(g.Health.Clock, f) }
}

func inLease(f func(*spi.LeaseHealth) points) func(*generatorStats) points {
	return func(g *generatorStats) points { return of(g.Health.Lease, f) }
}

func inSegment(f func(*spi.SegmentHealth) points) func(*generatorStats) points {
	return func(g *generatorStats) points { return of(g.Health.Segment, f) }
}

// of returns the points of a part of a generator's health, or none if the part doesn't apply.
func of[T any](part *T, f func(*T) points) points {
	if part == nil {
		return nil
	}
	return f(part)
}

var connectorMetrics = []definition[driver.Stats]{
	{counter, "shardkey.refused", "{statement}", "Statements that were refused before they were sent.", attrReason,
		func(s *driver.Stats) points { return each(s.Refused) }},
	{counter, "shardkey.verified", "{statement}", "Statements that the second parser has read.", attrOutcome,
		func(s *driver.Stats) points {
			v := s.Verification
			return each(map[string]int64{"agreed": v.Agreed, "unknown": v.Unknown, "refused": v.Refused})
		}},
	{gauge, "shardkey.plan.cache.entries", "{statement}", "Statements in the plan cache.", "",
		func(s *driver.Stats) points { return one(s.Plans.Entries) }},
	{gauge, "shardkey.plan.cache.size", "By", "Estimated memory of the plan cache.", "",
		func(s *driver.Stats) points { return one(s.Plans.Bytes) }},
	{counter, "shardkey.plan.cache.lookups", "{lookup}", "Lookups in the plan cache.", attrResult,
		func(s *driver.Stats) points { return lookups(s.Plans.Hits, s.Plans.Misses) }},
	{gauge, "shardkey.statement.cache.open", "{statement}", "Prepared statements in the caches.", "",
		func(s *driver.Stats) points { return one(s.StatementCache.Open) }},
	{gauge, "shardkey.statement.cache.limit", "{statement}", "Limit of the caches, once the server was asked.", "",
		func(s *driver.Stats) points { return one(s.StatementCache.Limit).when(s.StatementCache.Limit >= 0) }},
	{counter, "shardkey.statement.cache.lookups", "{lookup}",
		"Executions by a cached statement, and statements that were prepared for the cache.", attrResult,
		func(s *driver.Stats) points { return lookups(s.StatementCache.Hits, s.StatementCache.Misses) }},
	{counter, "shardkey.statement.cache.closed", "{statement}", "Cached statements that were closed.", "",
		func(s *driver.Stats) points { return one(s.StatementCache.Dropped) }},
	{gauge, "shardkey.rule.generation", "{rule}", "The number of the rule among the connector's rules, from 1.", "",
		func(s *driver.Stats) points { return one(s.Rule.Generation) }},
	{counter, "shardkey.rule.reload.errors", "{error}", "Changed rule files that could not be loaded.", "",
		func(s *driver.Stats) points { return one(s.Rule.ReloadErrors) }},
	{gauge, "shardkey.rule.outdated", "{flag}", "1 while the rule's file cannot be loaded, otherwise 0.", "",
		func(s *driver.Stats) points { return flag(s.Rule.ReloadError != "") }},
}

// points are the numbers of a metric, by the value of its attribute.
type points map[string]float64

func one[N int | int64](n N) points { return points{"": float64(n)} }

func seconds(d time.Duration) points { return points{"": d.Seconds()} }

// figure returns the point for n, or none if n is nil.
func figure(n *int64) points {
	if n == nil {
		return nil
	}
	return one(*n)
}

func flag(set bool) points {
	if set {
		return one(1)
	}
	return one(0)
}

func lookups(hits, misses int64) points { return each(map[string]int64{"hit": hits, "miss": misses}) }

func each(counts map[string]int64) points {
	p := points{}
	for value, n := range counts {
		p[value] = float64(n)
	}
	return p
}

// when returns the points if applies is set, otherwise none.
func (p points) when(applies bool) points {
	if !applies {
		return nil
	}
	return p
}

// instrument is a metric that is read from a T, with its OpenTelemetry instrument.
type instrument[T any] struct {
	definition[T]
	metric.Observable
}

func create[T any](m metric.Meter, of []definition[T], all *[]metric.Observable) (list []instrument[T], err error) {
	for _, d := range of {
		var o metric.Observable
		var failed error
		unit, about := metric.WithUnit(d.unit), metric.WithDescription(d.about)
		switch {
		case d.counter && d.unit == "s":
			o, failed = m.Float64ObservableCounter(d.name, unit, about)
		case d.counter:
			o, failed = m.Int64ObservableCounter(d.name, unit, about)
		case d.unit == "s":
			o, failed = m.Float64ObservableGauge(d.name, unit, about)
		default:
			o, failed = m.Int64ObservableGauge(d.name, unit, about)
		}
		list, *all, err = append(list, instrument[T]{d, o}), append(*all, o), errors.Join(err, failed)
	}
	return list, err
}

func observe[T any](to metric.Observer, metrics []instrument[T], of *T, attrs ...attribute.KeyValue) {
	for _, m := range metrics {
		for value, n := range m.points(of) {
			with := metric.WithAttributes(attrs...)
			if m.attr != "" {
				with = metric.WithAttributes(append(attrs[:len(attrs):len(attrs)], m.attr.String(value))...)
			}
			switch o := m.Observable.(type) {
			case metric.Int64Observable:
				to.ObserveInt64(o, int64(n), with)
			case metric.Float64Observable:
				to.ObserveFloat64(o, n, with)
			}
		}
	}
}

const (
	// maxTables is the largest number of tables with their own series.
	maxTables = 1000
	// otherTables is the table name of the series that adds up all other tables.
	otherTables = "_OTHER"
)

// namedTables are the tables with their own series. A table doesn't get or lose its series later,
// because the sum over the others must not decrease.
type namedTables struct {
	mu    sync.Mutex
	names map[string]bool
}

// group returns the named tables, and for each generator the sum of its other tables.
func (n *namedTables) group(tables []driver.TableStats) (list []driver.TableStats) {
	named := n.choose(tables)
	for _, t := range tables {
		if named[t.Table] {
			list = append(list, t)
			continue
		}
		t.Table = otherTables
		i := slices.IndexFunc(list, func(o driver.TableStats) bool {
			return o.Table == otherTables && o.Generator == t.Generator && o.Type == t.Type
		})
		if i < 0 {
			list = append(list, t)
			continue
		}
		list[i].Keys += t.Keys
		list[i].Statements += t.Statements
		list[i].Errors += t.Errors
	}
	return list
}

// choose returns the named tables: all tables of a small rule, otherwise the first ones in use.
// If several tables come into use at once, the busiest come first.
func (n *namedTables) choose(tables []driver.TableStats) map[string]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := len(tables) <= maxTables
	names := make(map[string]bool, min(len(tables), maxTables))
	var fresh []*driver.TableStats
	for i := range tables {
		switch t := &tables[i]; {
		case all || n.names[t.Table]:
			names[t.Table] = true
		case t.Keys+t.Errors > 0:
			fresh = append(fresh, t)
		}
	}
	slices.SortStableFunc(fresh, func(a, b *driver.TableStats) int {
		return cmp.Compare(b.Keys+b.Errors, a.Keys+a.Errors)
	})
	for _, t := range fresh[:min(len(fresh), maxTables-len(names))] {
		names[t.Table] = true
	}
	n.names = names
	return names
}
