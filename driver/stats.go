package driver

import (
	"cmp"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/driver/internal/fill"
	"github.com/shardkey/shardkey/rule"
)

// Stats are statistics of a connector, and its health, at one moment. Counts start at 0 with the
// connector and only grow. Those of a table or generator start when a rule first has it. Stats
// contains no secrets. It marshals to JSON, for example for expvar:
//
//	expvar.Publish("shardkey", expvar.Func(func() any { return connector.Stats() }))
//
// In JSON, durations are numbers of seconds, and the names of their fields end in Seconds.
type Stats struct {
	// Database is the network address and the database of the DSN, for example
	// "tcp(127.0.0.1:3306)/app". It is empty for a connector of [NewConnector].
	Database string `json:"database,omitempty"`
	// Connections is the number of open connections.
	Connections int `json:"connections"`
	// Rule describes the current rule.
	Rule struct {
		Name string `json:"name"`           // [rule.Rule.Name]
		File string `json:"file,omitempty"` // the absolute path of the file; empty for a rule without a file
		Hash string `json:"hash"`           // [rule.Rule.Hash]; the same for connectors with the same rule
		// Generation is the rule's number among the connector's rules, from 1. Since is the time when
		// the rule came into use.
		Generation int64     `json:"generation"`
		Since      time.Time `json:"since"`
		// Watched reports whether the file is checked for changes.
		Watched bool `json:"watched"`
		// ReloadErrors counts the changed files that could not be loaded. ReloadError is the error for
		// the current content of the file; empty if there is none.
		ReloadErrors int64  `json:"reloadErrors"`
		ReloadError  string `json:"reloadError,omitempty"`
	} `json:"rule"`
	// Tables are the tables of the current rule, in its order.
	Tables []TableStats `json:"tables"`
	// Generators are the generators of the current rule and then their worker-ID assigners, in the
	// rule's order.
	Generators []rule.Status `json:"generators"`
	// Plans describes the cache of parsed INSERTs. Hits and Misses are for all rules, the other fields
	// for the current rule.
	Plans struct {
		Entries int `json:"entries"`
		Bytes   int `json:"bytes"` // approximate size of statements and plans
		// Hits and Misses count lookups in the cache. A connection that repeats one of its last
		// statements makes no lookup.
		Hits   int64 `json:"hits"`
		Misses int64 `json:"misses"`
	} `json:"plans"`
	// StatementCache describes the cached prepared statements of all connections. Mode is
	// [Config].Statements, and Open is the number of open statements.
	StatementCache struct {
		Mode string `json:"mode"`
		Open int64  `json:"open"`
		// Limit is the maximum of Open; -1 if the server was not queried yet, 0 if the server had no
		// capacity.
		Limit int64 `json:"limit"`
		// Hits counts executions of a cached statement; connections report up to 16 at a time. Misses
		// counts statements prepared for the cache. Dropped counts statements that were closed to free
		// their place.
		Hits    int64 `json:"hits"`
		Misses  int64 `json:"misses"`
		Dropped int64 `json:"dropped"`
	} `json:"statementCache"`
	// Verification counts the statements that the second parser has read; see [Config].Verify.
	Verification struct {
		Agreed  int64 `json:"agreed"`  // both parsers agreed
		Unknown int64 `json:"unknown"` // TiDB's parser doesn't support the statement
		Refused int64 `json:"refused"` // the parsers disagreed, and the statement was refused
	} `json:"verification"`
	// Refused counts the refused statements by [StatementError.Reason]. It has an entry for each
	// reason.
	Refused map[string]int64 `json:"refused"`
}

// TableStats are the statistics of a logical table.
type TableStats struct {
	Table     string `json:"table"`
	Column    string `json:"column"`
	Generator string `json:"generator"`      // the generator's name in the rule
	Type      string `json:"type,omitempty"` // the generator's type in upper case; empty for a generator built in Go
	// Keys is the number of generated keys, for INSERTs and for [NextKeys].
	Keys int64 `json:"keys"`
	// Statements is the number of executed INSERTs with generated keys. Rows is the number of their
	// rows with a generated key. Both include INSERTs that the server refused.
	Statements int64 `json:"statements"`
	Rows       int64 `json:"rows"`
	// Errors is the number of failed calls of the generator.
	Errors int64 `json:"errors"`
	// Duplicates is the number of INSERTs that the server refused because a generated key is in the
	// table already. It should stay 0.
	Duplicates int64 `json:"duplicates"`
	// Generate has the durations of calls of the generator, sampled from one call in 64.
	Generate Histogram `json:"generate"`
}

// Histogram counts durations in buckets.
type Histogram struct {
	// Bounds are the upper bounds of the buckets, inclusive and ascending. All histograms have the
	// same bounds.
	Bounds []time.Duration
	// Counts are the numbers of durations in each bucket. It has one more element than Bounds, for
	// durations above all bounds.
	Counts []int64
	Sum    time.Duration // the sum of all durations
}

// MarshalJSON marshals h, with durations in seconds.
func (h Histogram) MarshalJSON() ([]byte, error) {
	count, bounds := int64(0), make([]float64, len(h.Bounds))
	for _, n := range h.Counts {
		count += n
	}
	for i, b := range h.Bounds {
		bounds[i] = b.Seconds()
	}
	return json.Marshal(struct {
		Count  int64     `json:"count"`
		Sum    float64   `json:"sumSeconds"`
		Bounds []float64 `json:"boundsSeconds"`
		Counts []int64   `json:"counts"`
	}{count, h.Sum.Seconds(), bounds, h.Counts})
}

// Stats returns the connector's statistics. It doesn't contact a server, and also works while the
// server is unavailable and after Close. It is safe for concurrent use and cheap enough to call for
// each scrape.
func (connector *Connector) Stats() Stats {
	rules := connector.current()
	connector.mu.Lock()
	connections := connector.connections
	connector.mu.Unlock()
	s := Stats{Database: connector.database, Connections: connections, Generators: rules.generators.Status(), Refused: connector.refusals.counts()}
	connector.setRule(&s, rules)
	s.Plans.Entries, s.Plans.Bytes = rules.plans.size()
	s.Plans.Hits, s.Plans.Misses = connector.counts.planHits.Load(), connector.counts.planMisses.Load()
	connector.setCache(&s)
	connector.verifier.setStats(&s)
	tables := rules.rule.Tables()
	s.Tables = make([]TableStats, len(tables))
	for i := range tables {
		s.Tables[i] = tableStats(&tables[i], connector.counts.table(&tables[i]).Totals())
	}
	return s
}

func (connector *Connector) setRule(s *Stats, rules *ruleVersion) {
	r := &s.Rule
	r.File, _ = rules.rule.Source()
	r.Name, r.Hash, r.Generation, r.Since = rules.rule.Name(), rules.rule.Hash(), rules.generation, rules.since
	r.Watched, r.ReloadErrors = watchers.watches(connector), connector.counts.reloadErrors.Load()
	if err := connector.counts.reloadError.Load(); err != nil {
		r.ReloadError = *err
	}
}

func (connector *Connector) setCache(s *Stats) {
	have, r := connector.cache.Stats(), &s.StatementCache
	r.Mode, r.Open, r.Limit = cmp.Or(connector.config.Statements, statementsAuto), have.Open, have.Limit
	r.Hits, r.Misses, r.Dropped = have.Hits, have.Misses, have.Dropped
}

// now returns the time of the connector's clock.
func (connector *Connector) now() time.Time {
	if connector.host.Clock == nil {
		return time.Now()
	}
	return connector.host.Clock.Now()
}

// tableStats returns the counts of a table.
func tableStats(of *rule.Table, t fill.Totals) TableStats {
	return TableStats{
		Table: of.Logical, Column: of.Column, Generator: of.GeneratorName, Type: of.GeneratorType,
		Keys: t.Keys, Statements: t.Statements, Rows: t.Rows,
		Errors: t.Errors, Duplicates: t.Duplicates, Generate: Histogram(t.Generate),
	}
}

// counts are the counters of a connector, for all its rules.
type counts struct {
	tables   sync.Map // *fill.Counts by tableKey
	planHits atomic.Int64
	// planMisses counts statements that were not in the cache.
	planMisses   atomic.Int64
	generation   atomic.Int64 // the number of rules so far
	reloadErrors atomic.Int64
	reloadError  atomic.Pointer[string] // nil if the last reload succeeded
}

// tableKey identifies a table and the generator of its keys.
type tableKey struct{ table, column, generator, typ string }

// table returns the counts of a table of a rule.
func (cs *counts) table(r *rule.Table) *fill.Counts {
	key := tableKey{strings.ToLower(r.Logical), strings.ToLower(r.Column), strings.ToLower(r.GeneratorName),
		r.GeneratorType}
	t, ok := cs.tables.Load(key)
	if !ok {
		t, _ = cs.tables.LoadOrStore(key, new(fill.Counts))
	}
	return t.(*fill.Counts)
}

// reloaded records the result of reloading the rule's file.
func (cs *counts) reloaded(err error) {
	if err == nil {
		cs.reloadError.Store(nil)
		return
	}
	cs.reloadErrors.Add(1)
	cs.reloadError.Store(new(err.Error()))
}
