package driver

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// Stats is what a connector has done and how it is, at one moment. Its counts start with the
// connector and only grow; those of a table and a generator that another rule brings start with
// that rule. It holds no secrets, and marshals to JSON, as for expvar:
//
//	expvar.Publish("shardkey", expvar.Func(func() any { return connector.Stats() }))
//
// In JSON durations are seconds, in fields whose names end so.
type Stats struct {
	// Database is the network address and the database of the DSN, as
	// "tcp(127.0.0.1:3306)/app"; empty over a base connector of one's own.
	Database string `json:"database,omitempty"`
	// Connections are those that are open.
	Connections int       `json:"connections"`
	Rule        RuleStats `json:"rule"`
	// Tables are the current rule's, in its order.
	Tables []TableStats `json:"tables"`
	// Generators are the current rule's generators, and then the worker-ID assigners
	// that they use, in the rule's order.
	Generators []GeneratorStats `json:"generators"`
	Plans      PlanStats        `json:"plans"`
	Kept       KeptStats        `json:"kept"`
	// Verification counts the statements that the second parser has read.
	Verification Verification `json:"verification"`
	// Refused counts the statements that were refused before they were sent, by
	// [StatementError.Reason]. It has all reasons.
	Refused map[string]int64 `json:"refused"`
}

// RuleStats says which rule holds.
type RuleStats struct {
	Name string `json:"name"`           // [rule.Rule.Name]
	File string `json:"file,omitempty"` // the file from the root; empty for a rule that is from none
	// Generation counts the rules that have held, from 1, and Since is when this one took hold.
	Generation int64     `json:"generation"`
	Since      time.Time `json:"since"`
	// Watched reports whether the file is looked at for changes.
	Watched bool `json:"watched"`
	// ReloadErrors counts the changed files that could not be taken, and ReloadError
	// is why the file as it is now could not; empty when it could.
	ReloadErrors int64  `json:"reloadErrors"`
	ReloadError  string `json:"reloadError,omitempty"`
}

// TableStats are the keys of a logical table.
type TableStats struct {
	Table     string `json:"table"`
	Column    string `json:"column"`
	Generator string `json:"generator"`      // its name in the rule
	Type      string `json:"type,omitempty"` // its type in upper case; empty for one built in Go
	// Keys are those made, for INSERTs and for [NextKeys].
	Keys int64 `json:"keys"`
	// Statements are the executions of INSERTs that keys were made for, and Rows
	// their rows with such a key. Whether the server took them does not count.
	Statements int64 `json:"statements"`
	Rows       int64 `json:"rows"`
	// Errors are the calls of the generator that failed.
	Errors int64 `json:"errors"`
	// Generate is how long calls of the generator took, of one call in 64.
	Generate Histogram `json:"generate"`
}

// GeneratorStats are a live generator or worker-ID assigner.
type GeneratorStats struct {
	rule.Status
	// LeaseLeft is how long keys can be made until Health.LeaseLimit, by the
	// connector's clock; negative when that has passed, 0 where there is no limit.
	LeaseLeft time.Duration
}

// MarshalJSON writes the lease's time left in seconds.
func (g GeneratorStats) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name        string     `json:"name"`
		Type        string     `json:"type,omitempty"`
		Assigner    bool       `json:"assigner,omitempty"`
		Description string     `json:"description,omitempty"`
		LeaseLeft   float64    `json:"leaseLeftSeconds,omitzero"`
		Health      spi.Health `json:"health"`
	}{g.Name, g.Type, g.Assigner, g.Description, g.LeaseLeft.Seconds(), g.Health})
}

// PlanStats are the texts of INSERTs that are understood and kept, under the
// current rule; Hits and Misses are under all.
type PlanStats struct {
	Entries int `json:"entries"`
	Bytes   int `json:"bytes"` // of text and plan, about
	// Hits and Misses count the looks into the cache. A connection that repeats its
	// last text does not look.
	Hits   int64 `json:"hits"`
	Misses int64 `json:"misses"`
}

// KeptStats are the prepared statements that connections keep.
type KeptStats struct {
	Mode string `json:"mode"`
	Open int64  `json:"open"`
	// Limit is how many may be; -1 when the server has not been asked yet, 0 when it had no room.
	Limit int64 `json:"limit"`
	// Hits are the executions by a statement that was kept, counted by connections
	// up to 16 at a time; Misses are the statements prepared to be kept, and Dropped
	// those that were closed again.
	Hits    int64 `json:"hits"`
	Misses  int64 `json:"misses"`
	Dropped int64 `json:"dropped"`
}

// Histogram counts durations.
type Histogram struct {
	// Bounds are the upper bounds of the buckets, inclusive and ascending. They are the
	// same for all histograms.
	Bounds []time.Duration
	// Counts are the durations in each bucket; the last, one more than Bounds, has
	// those above all bounds.
	Counts []int64
	Sum    time.Duration // of all
}

// Count is the number of durations.
func (h Histogram) Count() (n int64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// MarshalJSON writes durations in seconds.
func (h Histogram) MarshalJSON() ([]byte, error) {
	bounds := make([]float64, len(h.Bounds))
	for i, b := range h.Bounds {
		bounds[i] = b.Seconds()
	}
	return json.Marshal(struct {
		Count  int64     `json:"count"`
		Sum    float64   `json:"sumSeconds"`
		Bounds []float64 `json:"boundsSeconds"`
		Counts []int64   `json:"counts"`
	}{h.Count(), h.Sum.Seconds(), bounds, h.Counts})
}

// Stats returns what the connector has done and how it is. It asks no server, and
// works also while none can be reached, and after Close. It may be called by many
// goroutines at once, as often as a page or a collector of metrics asks.
func (c *Connector) Stats() Stats {
	rules := c.current()
	c.mu.Lock()
	connections := c.connections
	c.mu.Unlock()
	s := Stats{
		Database:     c.database,
		Connections:  connections,
		Rule:         c.ruleStats(rules),
		Generators:   []GeneratorStats{},
		Plans:        PlanStats{Hits: c.counts.planHits.Load(), Misses: c.counts.planMisses.Load()},
		Kept:         c.cacheStats(),
		Verification: c.verifier.stats(),
		Refused:      c.counts.refusals(),
	}
	s.Plans.Entries, s.Plans.Bytes = rules.plans.size()
	tables := rules.rule.Tables()
	s.Tables = make([]TableStats, len(tables))
	for i := range tables {
		s.Tables[i] = c.counts.table(&tables[i]).stats(&tables[i])
	}
	now := c.now()
	for _, status := range rules.generators.Status() {
		g := GeneratorStats{Status: status}
		if limit := g.Health.LeaseLimit; !limit.IsZero() {
			g.LeaseLeft = limit.Sub(now)
		}
		s.Generators = append(s.Generators, g)
	}
	return s
}

func (c *Connector) ruleStats(rules *ruleSet) RuleStats {
	file, _ := rules.rule.Source()
	s := RuleStats{Name: rules.rule.Name(), File: file, Generation: rules.generation, Since: rules.since,
		Watched: openConnectors.watches(file), ReloadErrors: c.counts.reloadErrors.Load()}
	if err := c.counts.reloadError.Load(); err != nil {
		s.ReloadError = *err
	}
	return s
}

// now is the time of the connector's clock.
func (c *Connector) now() time.Time {
	if c.host.Clock == nil {
		return time.Now()
	}
	return guard.NewClock(c.host.Clock).Now()
}

// stats are the counts of a table of the rule.
func (t *tableCounts) stats(of *rule.Table) TableStats {
	errors, statements := t.errors.Load(), t.statements.Load()
	return TableStats{
		Table: of.Logical, Column: of.Column, Generator: of.GeneratorName, Type: of.GeneratorType,
		Keys: t.calls.Load() - errors + t.moreKeys.Load(), Statements: statements, Rows: statements + t.moreRows.Load(),
		Errors: errors, Generate: t.generate.stats(),
	}
}

func (c *Connector) cacheStats() KeptStats {
	s := c.cache.Stats()
	return KeptStats{Mode: cmp.Or(c.config.Statements, statementsAuto), Open: s.Open, Limit: s.Limit,
		Hits: s.Hits, Misses: s.Misses, Dropped: s.Dropped}
}

// counts are what a connector counts, under all its rules.
type counts struct {
	tables   sync.Map // *tableCounts by tableKey
	planHits atomic.Int64
	// planMisses are the texts that were not in the cache.
	planMisses   atomic.Int64
	generation   atomic.Int64 // rules that have held
	reloadErrors atomic.Int64
	reloadError  atomic.Pointer[string] // nil while all is well
	refused      sync.Map               // *atomic.Int64 by reason
}

// tableKey is a table and what its keys come from.
type tableKey struct{ table, column, generator, typ string }

// table returns the counts of a table of a rule.
func (c *counts) table(r *rule.Table) *tableCounts {
	key := tableKey{strings.ToLower(r.Logical), strings.ToLower(r.Column), strings.ToLower(r.GeneratorName),
		r.GeneratorType}
	t, ok := c.tables.Load(key)
	if !ok {
		t, _ = c.tables.LoadOrStore(key, new(tableCounts))
	}
	return t.(*tableCounts)
}

// refuse counts a statement that was refused.
func (c *counts) refuse(reason string) {
	n, ok := c.refused.Load(reason)
	if !ok {
		n, _ = c.refused.LoadOrStore(reason, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1)
}

func (c *counts) refusals() map[string]int64 {
	all := map[string]int64{}
	for reason := range sentinels {
		all[reason] = 0
	}
	c.refused.Range(func(reason, n any) bool {
		all[reason.(string)] = n.(*atomic.Int64).Load()
		return true
	})
	return all
}

// reloaded notes that the rule's file was loaded, or why it could not be.
func (c *counts) reloaded(err error) {
	if err == nil {
		c.reloadError.Store(nil)
		return
	}
	c.reloadErrors.Add(1)
	c.reloadError.Store(new(err.Error()))
}

// tableCounts are the keys of one table. What all connections count on takes longer to
// add to than a key to make: an INSERT of one row adds to two of them.
type tableCounts struct {
	calls      atomic.Int64 // of the generator, the current ones too
	errors     atomic.Int64 // calls that failed
	moreKeys   atomic.Int64 // those after the first of each call
	statements atomic.Int64
	moreRows   atomic.Int64 // those after the first of each statement
	generate   histogram
}

// timedOneIn is of how many calls one is timed: the clock takes longer to read than a key to make.
const timedOneIn = 64

// start is called before a call of the generator, and returns the time if the call is to
// be timed, otherwise zero.
func (t *tableCounts) start() (start time.Time) {
	if t.calls.Add(1)%timedOneIn == 1 {
		start = time.Now()
	}
	return start
}

// made is called after a call for n keys.
func (t *tableCounts) made(start time.Time, n int, err error) {
	if err != nil {
		t.errors.Add(1)
	} else if n != 1 {
		t.moreKeys.Add(int64(n - 1))
	}
	if !start.IsZero() {
		t.generate.add(time.Since(start))
	}
}

// filled counts an execution with keys for so many rows.
func (t *tableCounts) filled(rows int) {
	if t.statements.Add(1); rows != 1 {
		t.moreRows.Add(int64(rows - 1))
	}
}

// bounds are those of all histograms: a key from memory takes less than a
// microsecond, one that waits for a store milliseconds.
var bounds = [...]time.Duration{
	250 * time.Nanosecond, time.Microsecond, 5 * time.Microsecond, 25 * time.Microsecond,
	100 * time.Microsecond, 500 * time.Microsecond, 2 * time.Millisecond, 10 * time.Millisecond,
	50 * time.Millisecond, 250 * time.Millisecond, time.Second, 5 * time.Second,
}

// histogram is a [Histogram] that is counted on.
type histogram struct {
	counts [len(bounds) + 1]atomic.Int64
	sum    atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	i, _ := slices.BinarySearchFunc(bounds[:], d, cmp.Compare[time.Duration])
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

func (h *histogram) stats() Histogram {
	s := Histogram{Bounds: slices.Clone(bounds[:]), Sum: time.Duration(h.sum.Load())}
	for i := range h.counts {
		s.Counts = append(s.Counts, h.counts[i].Load())
	}
	return s
}
