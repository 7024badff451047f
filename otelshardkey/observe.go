package otelshardkey

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/shardkey/shardkey/driver"
)

// The attributes, beside db.client.connection.pool.name and the program's own.
const (
	attrTable         = "db.collection.name"
	attrGenerator     = "shardkey.generator.name"
	attrGeneratorType = "shardkey.generator.type"
	attrErrorType     = "error.type"
	attrReason        = "shardkey.reason"
	attrOutcome       = "shardkey.outcome"
	attrResult        = "shardkey.result"
)

// reasons are those for which the driver refuses a statement. They are reported before
// anything was refused: a counter that begins with 1 has no rate yet.
var reasons = []string{
	"unsupported", "unlisted", "unverified", "wrong-shard", "no-fitting-key", "not-consecutive", "placeholders", "narrow-column",
	"no-gene", "no-key",
}

// observation is one collection of a connector's metrics.
type observation struct {
	*instruments
	to    metric.Observer
	base  []attribute.KeyValue // of all
	named *namedTables
}

func (o observation) with(attrs ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(o.base[:len(o.base):len(o.base)], attrs...)...)
}

func (o observation) observe(s driver.Stats) {
	o.tables(s.Tables)
	for i := range s.Generators {
		o.generator(&s.Generators[i])
	}
	for _, reason := range reasons {
		if _, ok := s.Refused[reason]; !ok {
			o.to.ObserveInt64(o.refused, 0, o.with(attribute.String(attrReason, reason)))
		}
	}
	for reason, n := range s.Refused {
		o.to.ObserveInt64(o.refused, n, o.with(attribute.String(attrReason, reason)))
	}
	o.each(o.verified, attrOutcome, "agreed", s.Verification.Agreed, "unknown", s.Verification.Unknown, "refused", s.Verification.Refused)

	all := o.with()
	o.to.ObserveInt64(o.planEntries, int64(s.Plans.Entries), all)
	o.to.ObserveInt64(o.planBytes, int64(s.Plans.Bytes), all)
	o.each(o.planLookups, attrResult, "hit", s.Plans.Hits, "miss", s.Plans.Misses)
	o.to.ObserveInt64(o.keptOpen, s.Kept.Open, all)
	if s.Kept.Limit >= 0 {
		o.to.ObserveInt64(o.keptLimit, s.Kept.Limit, all)
	}
	o.each(o.keptUses, attrResult, "hit", s.Kept.Hits, "miss", s.Kept.Misses)
	o.to.ObserveInt64(o.keptClosed, s.Kept.Dropped, all)

	o.to.ObserveInt64(o.ruleGeneration, s.Rule.Generation, all)
	o.to.ObserveInt64(o.reloadErrors, s.Rule.ReloadErrors, all)
	o.to.ObserveInt64(o.ruleOutdated, number(s.Rule.ReloadError != ""), all)
}

// each observes an instrument once for each pair of an attribute's value and a number.
func (o observation) each(of metric.Int64Observable, attr string, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		o.to.ObserveInt64(of, pairs[i+1].(int64), o.with(attribute.String(attr, pairs[i].(string))))
	}
}

// tables observes keys by table.
func (o observation) tables(tables []driver.TableStats) {
	type maker struct{ name, typ string }
	var makers []maker
	others := map[maker]driver.TableStats{}
	named := o.named.of(tables)
	for _, t := range tables {
		if named[t.Table] {
			o.table(&t)
			continue
		}
		by := maker{t.Generator, t.Type}
		sum, found := others[by]
		if !found {
			makers = append(makers, by)
		}
		sum.Table, sum.Generator, sum.Type = otherTables, by.name, by.typ
		sum.Keys += t.Keys
		sum.Statements += t.Statements
		sum.Errors += t.Errors
		others[by] = sum
	}
	for _, by := range makers {
		sum := others[by]
		o.table(&sum)
	}
}

// table observes the counts of one table.
func (o observation) table(t *driver.TableStats) {
	attrs := o.with(attribute.String(attrTable, t.Table), attribute.String(attrGenerator, t.Generator), attribute.String(attrGeneratorType, t.Type))
	o.to.ObserveInt64(o.keys, t.Keys, attrs)
	o.to.ObserveInt64(o.statements, t.Statements, attrs)
	o.to.ObserveInt64(o.generateErrors, t.Errors, attrs)
}

// generator observes what applies to a generator or a worker-id assigner.
func (o observation) generator(g *driver.GeneratorStats) {
	h := &g.Health
	name, typ := attribute.String(attrGenerator, g.Name), attribute.String(attrGeneratorType, g.Type)
	attrs := o.with(name, typ)
	for kind, n := range h.Errors {
		o.to.ObserveInt64(o.errors, n, o.with(name, typ, attribute.String(attrErrorType, kind)))
	}
	o.to.ObserveInt64(o.healthy, number(h.Err == nil), attrs)
	if g.Assigner {
		return // what it knows of leases the generators that use it report
	}
	if h.Waits != nil {
		o.to.ObserveInt64(o.waits, *h.Waits, attrs)
		o.seconds(o.waitTime, h.Waited, attrs)
	}
	if h.ClockSteps != nil {
		o.to.ObserveInt64(o.clockSteps, *h.ClockSteps, attrs)
	}
	if h.Borrowed != nil {
		o.seconds(o.clockAhead, *h.Borrowed, attrs)
	}
	if h.WorkerID != nil {
		o.to.ObserveInt64(o.workerID, *h.WorkerID, attrs)
	}
	if !h.LeaseLimit.IsZero() {
		o.seconds(o.leaseRemaining, g.LeaseLeft, attrs)
		o.seconds(o.leaseLength, h.LeaseLength, attrs)
	}
	if h.LeaseRenewals != nil {
		o.to.ObserveInt64(o.leaseRenewals, *h.LeaseRenewals, attrs)
	}
	if h.LeasesLost != nil {
		o.to.ObserveInt64(o.leaseLosses, *h.LeasesLost, attrs)
	}
	if h.SegmentLeft != nil {
		o.to.ObserveInt64(o.segmentRemaining, *h.SegmentLeft, attrs)
	}
	if h.SegmentSize > 0 {
		o.to.ObserveInt64(o.segmentSize, h.SegmentSize, attrs)
	}
	if h.Fetches != nil {
		o.to.ObserveInt64(o.fetches, *h.Fetches, attrs)
	}
	if h.FetchTime > 0 {
		o.seconds(o.fetchDuration, h.FetchTime, attrs)
	}
}

func (o observation) seconds(of metric.Float64Observable, d time.Duration, attrs metric.MeasurementOption) {
	o.to.ObserveFloat64(of, d.Seconds(), attrs)
}

func number(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
