package otelshardkey

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/rule"
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
	attrHash          = attribute.Key("shardkey.rule.hash")
)

// definition defines a metric. One with the unit "s" has a fraction, others are integers.
type definition struct {
	counter           bool // counter if true, gauge otherwise
	name, unit, about string
}

const counter, gauge = true, false

// definitions are the metrics. The generators that use an assigner report its leases.
var definitions = []definition{
	{counter, "shardkey.keys", "{key}", "Generated keys, for INSERTs and in advance."},
	{counter, "shardkey.statements", "{statement}", "Executions of INSERTs that got keys."},
	{counter, "shardkey.generate.errors", "{error}", "Failed calls of the generator: INSERTs without keys."},
	{counter, "shardkey.duplicates", "{statement}", "INSERTs that the server refused because a generated key exists already."},

	{gauge, "shardkey.generator.healthy", "{flag}",
		"1 while the generator reports no error, otherwise 0. It has keys while a lease or segment lasts."},
	{counter, "shardkey.errors", "{error}", "Errors of generators and worker-ID assigners, by kind."},
	{gauge, "shardkey.worker.id", "{id}", "The worker ID in use."},
	{counter, "shardkey.waits", "{call}", "Calls that waited: for the clock, a store or the next sequence."},
	{counter, "shardkey.wait.time", "s", "Total time of the calls that waited."},
	{counter, "shardkey.clock.steps", "{step}", "Backward steps of the clock."},
	{gauge, "shardkey.clock.ahead", "s", "How far the time of the newest key is ahead of the clock."},
	{gauge, "shardkey.lease.remaining", "s", "Time until the worker ID's lease ends; negative once it has ended."},
	{gauge, "shardkey.lease.length", "s", "The time that remains right after a renewal."},
	{counter, "shardkey.lease.renewals", "{renewal}", "Renewals of leases."},
	{counter, "shardkey.lease.losses", "{lease}", "Leases that another process has now."},
	{gauge, "shardkey.segment.remaining", "{key}", "Keys in memory."},
	{gauge, "shardkey.segment.size", "{key}", "Keys that come with one fetch."},
	{counter, "shardkey.fetches", "{fetch}", "Requests to the store of segments or tickets."},
	{gauge, "shardkey.fetch.duration", "s", "Duration of the last fetch."},

	{counter, "shardkey.refused", "{statement}", "Statements that were refused before they were sent."},
	{counter, "shardkey.verified", "{statement}", "Statements that the second parser has read."},
	{gauge, "shardkey.plan.cache.entries", "{statement}", "Statements in the plan cache."},
	{gauge, "shardkey.plan.cache.size", "By", "Estimated memory of the plan cache."},
	{counter, "shardkey.plan.cache.lookups", "{lookup}", "Lookups in the plan cache."},
	{gauge, "shardkey.statement.cache.open", "{statement}", "Prepared statements in the caches."},
	{gauge, "shardkey.statement.cache.limit", "{statement}", "Limit of the caches, once the server was asked."},
	{counter, "shardkey.statement.cache.lookups", "{lookup}",
		"Executions by a cached statement, and statements that were prepared for the cache."},
	{counter, "shardkey.statement.cache.closed", "{statement}", "Cached statements that were closed."},
	{gauge, "shardkey.rule.generation", "{rule}", "The number of the rule among the connector's rules, from 1."},
	{counter, "shardkey.rule.reload.errors", "{error}", "Changed rule files that could not be loaded."},
	{gauge, "shardkey.rule.outdated", "{flag}", "1 while the rule's file cannot be loaded, otherwise 0."},
}

// instruments are OpenTelemetry's instruments of the metrics, by name.
type instruments map[string]metric.Observable

func create(m metric.Meter) (instruments, error) {
	all := instruments{}
	var errs []error
	for _, d := range definitions {
		var o metric.Observable
		var err error
		unit, about := metric.WithUnit(d.unit), metric.WithDescription(d.about)
		switch {
		case d.counter && d.unit == "s":
			o, err = m.Float64ObservableCounter(d.name, unit, about)
		case d.counter:
			o, err = m.Int64ObservableCounter(d.name, unit, about)
		case d.unit == "s":
			o, err = m.Float64ObservableGauge(d.name, unit, about)
		default:
			o, err = m.Int64ObservableGauge(d.name, unit, about)
		}
		all[d.name] = o
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// observer observes metrics with the same attributes.
type observer struct {
	instruments
	to    metric.Observer
	attrs []attribute.KeyValue
}

// with returns an observer with more attributes.
func (o observer) with(attrs ...attribute.KeyValue) observer {
	o.attrs = append(slices.Clip(o.attrs), attrs...)
	return o
}

func (o observer) number(name string, n int64) {
	o.to.ObserveInt64(o.instruments[name].(metric.Int64Observable), n, metric.WithAttributes(o.attrs...))
}

func (o observer) seconds(name string, d time.Duration) {
	o.to.ObserveFloat64(o.instruments[name].(metric.Float64Observable), d.Seconds(), metric.WithAttributes(o.attrs...))
}

// figure observes n, if it isn't nil.
func (o observer) figure(name string, n *int64) {
	if n != nil {
		o.number(name, *n)
	}
}

// flag observes 1 if set is true, otherwise 0.
func (o observer) flag(name string, set bool) {
	n := int64(0)
	if set {
		n = 1
	}
	o.number(name, n)
}

// each observes one number for each value of an attribute.
func (o observer) each(name string, attr attribute.Key, counts map[string]int64) {
	for value, n := range counts {
		o.with(attr.String(value)).number(name, n)
	}
}

func (o observer) table(t *driver.TableStats) {
	o.number("shardkey.keys", t.Keys)
	o.number("shardkey.statements", t.Statements)
	o.number("shardkey.generate.errors", t.Errors)
	o.number("shardkey.duplicates", t.Duplicates)
}

func (o observer) generator(g *rule.Status) {
	h := &g.Health
	o.flag("shardkey.generator.healthy", h.Err == nil)
	o.each("shardkey.errors", attrErrorType, h.Errors)
	if g.Assigner {
		return
	}
	o.figure("shardkey.worker.id", h.WorkerID)
	if h.Waits != nil {
		o.number("shardkey.waits", *h.Waits)
		o.seconds("shardkey.wait.time", h.Waited)
	}
	if clock := h.Clock; clock != nil {
		o.figure("shardkey.clock.steps", clock.Steps)
		o.seconds("shardkey.clock.ahead", clock.Ahead)
	}
	if lease := h.Lease; lease != nil {
		o.number("shardkey.lease.renewals", lease.Renewals)
		o.number("shardkey.lease.losses", lease.Lost)
		if !lease.Limit.IsZero() {
			o.seconds("shardkey.lease.remaining", lease.Left)
			o.seconds("shardkey.lease.length", lease.Length)
		}
	}
	if segment := h.Segment; segment != nil {
		o.segment(segment)
	}
}

func (o observer) segment(s *spi.SegmentHealth) {
	o.figure("shardkey.segment.remaining", s.Left)
	o.number("shardkey.fetches", s.Fetches)
	if s.Size > 0 {
		o.number("shardkey.segment.size", s.Size)
	}
	if s.FetchTime > 0 {
		o.seconds("shardkey.fetch.duration", s.FetchTime)
	}
}

func (o observer) connector(s *driver.Stats) {
	lookups := func(hits, misses int64) map[string]int64 { return map[string]int64{"hit": hits, "miss": misses} }
	o.each("shardkey.refused", attrReason, s.Refused)
	v := s.Verification
	o.each("shardkey.verified", attrOutcome,
		map[string]int64{"agreed": v.Agreed, "unknown": v.Unknown, "refused": v.Refused})
	o.number("shardkey.plan.cache.entries", int64(s.Plans.Entries))
	o.number("shardkey.plan.cache.size", int64(s.Plans.Bytes))
	o.each("shardkey.plan.cache.lookups", attrResult, lookups(s.Plans.Hits, s.Plans.Misses))
	o.number("shardkey.statement.cache.open", s.StatementCache.Open)
	if s.StatementCache.Limit >= 0 {
		o.number("shardkey.statement.cache.limit", s.StatementCache.Limit)
	}
	o.each("shardkey.statement.cache.lookups", attrResult, lookups(s.StatementCache.Hits, s.StatementCache.Misses))
	o.number("shardkey.statement.cache.closed", s.StatementCache.Dropped)
	o.with(attrHash.String(s.Rule.Hash)).number("shardkey.rule.generation", s.Rule.Generation)
	o.number("shardkey.rule.reload.errors", s.Rule.ReloadErrors)
	o.flag("shardkey.rule.outdated", s.Rule.ReloadError != "")
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
		list[i].Duplicates += t.Duplicates
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
