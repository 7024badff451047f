package otelshardkey

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// instruments are those of a meter.
type instruments struct {
	meter metric.Meter
	all   []metric.Observable
	errs  []error

	keys, statements, generateErrors           metric.Int64Observable
	healthy, workerID                          metric.Int64Observable
	waits                                      metric.Int64Observable
	waitTime                                   metric.Float64Observable
	clockSteps                                 metric.Int64Observable
	clockAhead                                 metric.Float64Observable
	leaseRemaining, leaseLength                metric.Float64Observable
	leaseRenewals, leaseLosses                 metric.Int64Observable
	segmentRemaining, segmentSize, fetches     metric.Int64Observable
	fetchDuration                              metric.Float64Observable
	errors                                     metric.Int64Observable
	refused, verified                          metric.Int64Observable
	planEntries, planBytes, planLookups        metric.Int64Observable
	keptOpen, keptLimit, keptUses, keptClosed  metric.Int64Observable
	ruleGeneration, reloadErrors, ruleOutdated metric.Int64Observable
}

func newInstruments(meter metric.Meter) (*instruments, error) {
	m := &instruments{meter: meter}

	m.keys = m.count("shardkey.keys", "{key}", "Keys that were made, for INSERTs and in advance.")
	m.statements = m.count("shardkey.statements", "{statement}", "Executions of INSERTs that keys were made for.")
	m.generateErrors = m.count("shardkey.generate.errors", "{error}", "Calls of the generator that failed: INSERTs without keys.")

	m.healthy = m.gauge("shardkey.generator.healthy", "{flag}", "1 while the generator reports no error, else 0; keys may still come while a lease or a segment lasts.")
	m.workerID = m.gauge("shardkey.worker.id", "{id}", "The worker id in use.")
	m.waits = m.count("shardkey.waits", "{call}", "Calls that had to wait: for the clock, a store, a sequence's end.")
	m.waitTime = m.countSeconds("shardkey.wait.time", "Time of the calls that had to wait.")
	m.clockSteps = m.count("shardkey.clock.steps", "{step}", "Backward steps of the clock that were seen.")
	m.clockAhead = m.gaugeSeconds("shardkey.clock.ahead", "How far the newest key's time is ahead of the clock.")
	m.leaseRemaining = m.gaugeSeconds("shardkey.lease.remaining", "How long keys can be made until the lease of the worker id ends; negative once it has.")
	m.leaseLength = m.gaugeSeconds("shardkey.lease.length", "What is left right after a renewal.")
	m.leaseRenewals = m.count("shardkey.lease.renewals", "{renewal}", "Renewals of leases.")
	m.leaseLosses = m.count("shardkey.lease.losses", "{lease}", "Leases that another process has now.")
	m.segmentRemaining = m.gauge("shardkey.segment.remaining", "{key}", "Keys in memory.")
	m.segmentSize = m.gauge("shardkey.segment.size", "{key}", "Keys that come with one fetch.")
	m.fetches = m.count("shardkey.fetches", "{fetch}", "Requests to the store of segments or tickets.")
	m.fetchDuration = m.gaugeSeconds("shardkey.fetch.duration", "Time of the last fetch.")
	m.errors = m.count("shardkey.errors", "{error}", "Errors of generators and worker-id assigners, by kind.")

	m.refused = m.count("shardkey.refused", "{statement}", "Statements that were refused before they were sent.")
	m.verified = m.count("shardkey.verified", "{text}", "Texts that the second reader has read.")
	m.planEntries = m.gauge("shardkey.plan.cache.entries", "{text}", "Texts whose plan is kept.")
	m.planBytes = m.gauge("shardkey.plan.cache.size", "By", "Memory of the plans that are kept, about.")
	m.planLookups = m.count("shardkey.plan.cache.lookups", "{lookup}", "Looks into the cache of plans.")
	m.keptOpen = m.gauge("shardkey.statement.cache.open", "{statement}", "Prepared statements that are kept.")
	m.keptLimit = m.gauge("shardkey.statement.cache.limit", "{statement}", "How many may be kept; nothing before the server was asked.")
	m.keptUses = m.count("shardkey.statement.cache.lookups", "{lookup}", "Executions by a statement that was kept, and statements that were prepared to be kept.")
	m.keptClosed = m.count("shardkey.statement.cache.closed", "{statement}", "Prepared statements that were kept and closed again.")

	m.ruleGeneration = m.gauge("shardkey.rule.generation", "{rule}", "The number of the rule among those that the connector has had, from 1.")
	m.reloadErrors = m.count("shardkey.rule.reload.errors", "{error}", "Changed rule files that could not be taken.")
	m.ruleOutdated = m.gauge("shardkey.rule.outdated", "{flag}", "1 while the rule's file is another one that cannot be taken, else 0.")
	return m, errors.Join(m.errs...)
}

func (m *instruments) add(o metric.Observable, err error) {
	m.all, m.errs = append(m.all, o), append(m.errs, err)
}

func (m *instruments) count(name, unit, says string) metric.Int64Observable {
	o, err := m.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(says))
	m.add(o, err)
	return o
}

func (m *instruments) countSeconds(name, says string) metric.Float64Observable {
	o, err := m.meter.Float64ObservableCounter(name, metric.WithUnit("s"), metric.WithDescription(says))
	m.add(o, err)
	return o
}

func (m *instruments) gauge(name, unit, says string) metric.Int64Observable {
	o, err := m.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(says))
	m.add(o, err)
	return o
}

func (m *instruments) gaugeSeconds(name, says string) metric.Float64Observable {
	o, err := m.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(says))
	m.add(o, err)
	return o
}
