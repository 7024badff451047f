package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shardkey/shardkey/internal/policy"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// ruleVersion is a rule that a connector uses, with its live generators and its plans. To replace its
// rule, a connector replaces the ruleVersion, so the three always match.
//
// Reading a ruleVersion needs no lock. A caller that generates keys first acquires the generators
// ([rule.Live.Acquire]) and releases them afterwards.
type ruleVersion struct {
	*env
	rule       *rule.Rule
	generators *rule.Live
	plans      *planCache
	// generation is the rule's number among the connector's rules, from 1. since is the time when
	// the rule came into use. Both are set before that.
	generation int64
	since      time.Time
	// inUse has the tables as executions know them; nil unless this ruleVersion only plans.
	inUse *planCache
}

// env is what the rules of a connector share.
type env struct {
	logger   *slog.Logger
	counts   counts
	verifier verifier
	warned   sync.Map                             // tables that aren't in the rule, in lower case; see unlisted
	keyHook  func(context.Context, GeneratedKeys) // nil: no function was passed to WithKeyHook
	caches   bool                                 // connections cache prepared statements
}

// install opens the rule's generators and makes the rule the current one. It returns the old
// ruleVersion, for the caller to close.
func (connector *Connector) install(r *rule.Rule) (old *ruleVersion, err error) {
	next, err := connector.open(r)
	if err != nil {
		return nil, err
	}
	next.logWarnings()
	old = connector.rules.Load()
	connector.set(next)
	connector.logger.Info("shardkey: rule in use", next.attrs()...)
	return old, nil
}

// open opens the rule's generators. It reuses current generators with the same configuration.
func (connector *Connector) open(r *rule.Rule) (*ruleVersion, error) {
	if r == nil {
		return nil, fmt.Errorf("%w: the rule is nil", ErrNoRule)
	}
	var generators *rule.Live
	var err error
	if now := connector.rules.Load(); now != nil {
		generators, err = now.generators.Replace(r)
	} else {
		generators, err = r.Open(connector.host)
	}
	if err != nil {
		return nil, err
	}
	return &ruleVersion{env: &connector.env, rule: r, generators: generators, plans: newPlanCache(&connector.env)}, nil
}

// set makes next the current rule.
func (connector *Connector) set(next *ruleVersion) {
	next.generation, next.since = connector.counts.generation.Add(1), connector.now()
	connector.rules.Store(next)
}

// attrs returns the attributes of a log line about the rule.
func (version *ruleVersion) attrs() []any {
	if file, _ := version.rule.Source(); file != "" {
		return []any{"file", file, "hash", version.rule.Hash()}
	}
	return []any{"name", version.rule.Name(), "hash", version.rule.Hash()}
}

// noRules is the ruleVersion of a zero Connector.
var noRules = &ruleVersion{env: new(env), rule: new(rule.Rule), generators: new(rule.Live), plans: newPlanCache(new(env))}

// current returns the current rule.
func (connector *Connector) current() *ruleVersion { return cmp.Or(connector.rules.Load(), noRules) }

// use returns the current rule, with its generators acquired.
func (connector *Connector) use() (*ruleVersion, error) {
	for {
		rules := connector.rules.Load()
		if rules == nil {
			return nil, errZeroConnector
		}
		if rules.generators.Acquire() {
			return rules, nil
		}
		if rules == connector.rules.Load() {
			if err := connector.reopen(); err != nil {
				return nil, err
			}
			defer func() { _ = connector.leave() }() // the caller releases the generators
		}
	}
}

// SetRule replaces the rule with r. Running statements finish with the old rule, and then its
// generators are closed. Prepared statements are planned again at their next execution. Generators
// with the same configuration in both rules stay open and keep their worker ID; see
// [rule.Live.Replace].
//
// If r can't be opened, the old rule stays in use and SetRule returns the error. Otherwise the
// error is from closing the old generators, and r is in use. SetRule returns [spi.ErrClosed] for a
// closed Connector.
func (connector *Connector) SetRule(r *rule.Rule) error {
	old, err := connector.replace(r)
	if err != nil {
		return err
	}
	return old.generators.Close() // without the lock, since closing may contact a store
}

// change replaces old with next. It returns false if another rule replaced old before, or if the
// connector was closed; the caller then closes next.
func (connector *Connector) change(old, next *ruleVersion) bool {
	connector.mu.Lock()
	defer connector.mu.Unlock()
	if connector.closed || connector.rules.Load() != old { // mu guards all changes
		return false
	}
	connector.set(next)
	return true
}

func (connector *Connector) replace(r *rule.Rule) (old *ruleVersion, err error) {
	connector.mu.Lock()
	defer connector.mu.Unlock()
	if connector.rules.Load() == nil {
		return nil, errZeroConnector
	}
	if connector.closed {
		return nil, spi.ErrClosed
	}
	return connector.install(r)
}

// Rule returns the current rule. It returns an empty rule for a zero Connector.
func (connector *Connector) Rule() *rule.Rule { return connector.current().rule }

// takeRule makes next the rule of all connectors, or of none if it returns an error.
func takeRule(connectors []*Connector, next *rule.Rule) error {
	old, opened := make([]*ruleVersion, len(connectors)), make([]*ruleVersion, 0, len(connectors))
	for i, c := range connectors {
		old[i] = c.rules.Load()
		set, err := c.open(next)
		if err != nil {
			for _, set := range opened {
				err = errors.Join(err, set.generators.Close())
			}
			return err
		}
		opened = append(opened, set)
	}
	for i, c := range connectors {
		unused := old[i]
		if !c.change(old[i], opened[i]) {
			unused = opened[i]
		}
		if err := unused.generators.Close(); err != nil {
			c.logger.Warn("shardkey: closing the old rule's generators failed", "error", err)
		}
	}
	return nil
}

// logWarnings logs the warnings about the rule and its open generators.
func (version *ruleVersion) logWarnings() {
	for _, w := range slices.Concat(version.rule.Warnings(), version.generators.Warnings()) {
		version.logger.Warn("shardkey: rule warning", "warning", w)
	}
}

// unlisted returns the error for a table that gets no generated key, or nil: it isn't in the rule, but
// looks like a shard of a listed table. Such a table may have been added later. unlisted logs a warning
// once for each table.
func (shared *env) unlisted(live *rule.Live, schema, name string) *rule.UnlistedTableError {
	err := live.Unlisted(schema, name)
	if err == nil {
		return nil
	}
	switch err.Like.Unlisted {
	case policy.Pass:
		return nil
	case policy.Warn:
		if _, known := shared.warned.LoadOrStore(strings.ToLower(schema+"."+name), true); !known {
			shared.logger.Warn("shardkey: INSERT sent without a key", "table", err.Table, "error", err)
		}
		return nil
	}
	return err
}
