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
func (c *Connector) install(r *rule.Rule) (old *ruleVersion, err error) {
	next, err := c.open(r)
	if err != nil {
		return nil, err
	}
	next.logWarnings()
	old = c.rules.Load()
	c.set(next)
	c.logger.Info("shardkey: rule in use", next.attrs()...)
	return old, nil
}

// open opens the rule's generators. It reuses current generators with the same configuration.
func (c *Connector) open(r *rule.Rule) (*ruleVersion, error) {
	if r == nil {
		return nil, fmt.Errorf("%w: the rule is nil", ErrNoRule)
	}
	var generators *rule.Live
	var err error
	if now := c.rules.Load(); now != nil {
		generators, err = now.generators.Replace(r)
	} else {
		generators, err = r.Open(c.host)
	}
	if err != nil {
		return nil, err
	}
	return &ruleVersion{env: &c.env, rule: r, generators: generators, plans: newPlanCache(&c.env)}, nil
}

// set makes next the current rule.
func (c *Connector) set(next *ruleVersion) {
	next.generation, next.since = c.counts.generation.Add(1), c.now()
	c.rules.Store(next)
}

// attrs returns the attributes of a log line about the rule.
func (r *ruleVersion) attrs() []any {
	if file, _ := r.rule.Source(); file != "" {
		return []any{"file", file, "hash", r.rule.Hash()}
	}
	return []any{"name", r.rule.Name(), "hash", r.rule.Hash()}
}

// noRules is the ruleVersion of a zero Connector.
var noRules = &ruleVersion{env: new(env), rule: new(rule.Rule), generators: new(rule.Live), plans: newPlanCache(new(env))}

// current returns the current rule.
func (c *Connector) current() *ruleVersion { return cmp.Or(c.rules.Load(), noRules) }

// use returns the current rule, with its generators acquired.
func (c *Connector) use() (*ruleVersion, error) {
	for {
		rules := c.rules.Load()
		if rules == nil {
			return nil, errZeroConnector
		}
		if rules.generators.Acquire() {
			return rules, nil
		}
		if rules == c.rules.Load() {
			if err := c.reopen(); err != nil {
				return nil, err
			}
			defer func() { _ = c.leave() }() // the caller releases the generators
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
func (c *Connector) SetRule(r *rule.Rule) error {
	old, err := c.replace(r)
	if err != nil {
		return err
	}
	return old.generators.Close() // without the lock, since closing may contact a store
}

// change replaces old with next. It returns false if another rule replaced old before, or if the
// connector was closed; the caller then closes next.
func (c *Connector) change(old, next *ruleVersion) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.rules.Load() != old { // mu guards all changes
		return false
	}
	c.set(next)
	return true
}

func (c *Connector) replace(r *rule.Rule) (old *ruleVersion, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rules.Load() == nil {
		return nil, errZeroConnector
	}
	if c.closed {
		return nil, spi.ErrClosed
	}
	return c.install(r)
}

// Rule returns the current rule. It returns an empty rule for a zero Connector.
func (c *Connector) Rule() *rule.Rule { return c.current().rule }

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
func (r *ruleVersion) logWarnings() {
	for _, w := range slices.Concat(r.rule.Warnings(), r.generators.Warnings()) {
		r.logger.Warn("shardkey: rule warning", "warning", w)
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
