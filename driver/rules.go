package driver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// ruleSet is one rule in use by one connector: its live generators and the
// plans made with it. A connector's rule is replaced by replacing its ruleSet,
// so a holder of one sees rule, generators and plans that belong together.
//
// Reading a ruleSet is free. A caller that takes keys from it acquires its
// generators first ([rule.Live.Acquire]) and releases them afterwards.
type ruleSet struct {
	rule       *rule.Rule
	generators *rule.Live
	plans      *planCache
	logger     *slog.Logger
	verifier   *verifier
	unlisted   *unlisted
	counts     *counts
	filled     func(context.Context, Filled)
	// generation is the rule's number, from 1, among those that the connector has had,
	// and since is when it became the current one. They are set before it does.
	generation int64
	since      time.Time
	// inUse has the tables as executions know them, if these rules only plan.
	inUse *planCache
}

// install opens the rule's generators and makes them the current ones. It
// returns what they replace, for the caller to close.
func (c *Connector) install(r *rule.Rule) (old *ruleSet, err error) {
	next, err := c.open(r)
	if err != nil {
		return nil, err
	}
	logWarnings(r, c.host.Logger)
	old = c.rules.Load()
	c.set(next)
	return old, nil
}

// open opens the rule's generators, which are the current ones where the rule
// configures them in the same way.
func (c *Connector) open(r *rule.Rule) (*ruleSet, error) {
	if r == nil {
		return nil, fmt.Errorf("%w: the rule is nil", ErrNoRule)
	}
	if warnings := r.Warnings(); len(warnings) > 0 && c.config.RuleWarnings == "error" {
		return nil, &DSNError{Param: paramWarnings, Err: warnings[0],
			Reason: fmt.Sprintf("the rule has %d warnings, the first being", len(warnings))}
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
	return &ruleSet{rule: r, generators: generators, plans: newPlanCache(&c.counts), logger: c.host.Logger,
		verifier: &c.verifier, unlisted: &c.unlisted, counts: &c.counts, filled: c.filled}, nil
}

// set makes next the current rule.
func (c *Connector) set(next *ruleSet) {
	next.generation, next.since = c.counts.generation.Add(1), c.now()
	c.rules.Store(next)
}

// noRules are the rules of a zero Connector.
var noRules = &ruleSet{rule: new(rule.Rule), generators: new(rule.Live), plans: newPlanCache(new(counts))}

// current returns the current rule.
func (c *Connector) current() *ruleSet { return cmp.Or(c.rules.Load(), noRules) }

// use returns the current rule, with its generators acquired.
func (c *Connector) use() (*ruleSet, error) {
	for {
		rules := c.rules.Load()
		if rules == nil {
			return nil, errZeroConnector
		}
		if rules.generators.Acquire() {
			return rules, nil
		}
		if rules == c.rules.Load() {
			return nil, fmt.Errorf("%w: the database's generators", spi.ErrClosed)
		}
	}
}

// SetRule replaces the rule. Statements that are running finish with the rule
// that they began with, and then its generators are closed; prepared statements
// are planned again at their next execution. When the new rule cannot be opened,
// the old one stays. Generators that both rules configure in the same way stay as
// well, with their worker ID and their state; see [rule.Live.Replace].
//
// The error is the rule's, that of closing the old generators when nobody uses
// them any more (the new rule holds all the same), or [spi.ErrClosed].
func (c *Connector) SetRule(r *rule.Rule) error {
	old, err := c.replace(r)
	if err != nil {
		return err
	}
	return old.generators.Close() // without the lock: closing may talk to a store
}

// change makes next the current rule in place of old. It is false, and next is to
// be closed, when another came before or the connector was closed.
func (c *Connector) change(old, next *ruleSet) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.rules.Load() != old { // as all changes are under mu
		return false
	}
	c.set(next)
	return true
}

func (c *Connector) replace(r *rule.Rule) (old *ruleSet, err error) {
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

// Rule returns the rule that new statements are filled by.
func (c *Connector) Rule() *rule.Rule { return c.current().rule }

// takeRule makes next the rule of all connectors, or of none.
func takeRule(connectors []*Connector, next *rule.Rule) error {
	old, opened := make([]*ruleSet, len(connectors)), make([]*ruleSet, 0, len(connectors))
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
			c.host.Logger.Warn("shardkey: closing the old rule's generators failed", "error", err)
		}
	}
	return nil
}

func logWarnings(r *rule.Rule, logger *slog.Logger) {
	for _, w := range r.Warnings() {
		logger.Warn("shardkey: rule warning", "warning", w)
	}
}

// namedRules are the rules that a DSN can name, as mysql.RegisterTLSConfig's are for tls=.
var namedRules = registeredRules{rules: map[string]*rule.Rule{}}

type registeredRules struct {
	sync.RWMutex
	rules map[string]*rule.Rule
}

// RegisterRule lets a DSN say shardkeyRule=name instead of a file's path. A
// name that is registered already gets the new rule, for connectors opened from
// then on. The error is for an empty name and a nil rule.
//
// It is safe for use by many goroutines at once.
func RegisterRule(name string, r *rule.Rule) error {
	switch {
	case name == "":
		return errors.New("shardkey: register rule: the name is empty")
	case r == nil:
		return fmt.Errorf("shardkey: register rule %q: %w", name, ErrNoRule)
	}
	namedRules.Lock()
	defer namedRules.Unlock()
	namedRules.rules[name] = r
	return nil
}

// DeregisterRule forgets a registered rule. Connectors that have it keep it.
func DeregisterRule(name string) {
	namedRules.Lock()
	defer namedRules.Unlock()
	delete(namedRules.rules, name)
}

// renew gives the names of rules of a file the newer one.
func (n *registeredRules) renew(file string, next *rule.Rule) {
	n.Lock()
	defer n.Unlock()
	for name, r := range n.rules {
		if of, _ := r.Source(); of == file {
			n.rules[name] = next
		}
	}
}

// ruleOf finds the rule of a shardkeyRule parameter: a registered name as it is written, else a
// registered name, an environment variable or a path after percent-decoding.
func ruleOf(value string) (*rule.Rule, error) {
	path := unescape(value)
	for _, name := range []string{value, path} {
		if r := namedRules.get(name); r != nil {
			return r, nil
		}
	}
	if variable, ok := strings.CutPrefix(path, envPrefix); ok {
		return envRule(variable)
	}
	r, err := rule.Load(path)
	switch {
	case err == nil:
		return r, nil
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(path, "@"):
		// It may be the end of a password that has "@/?" in it.
		return nil, &DSNError{Param: paramRule, Err: fs.ErrNotExist,
			Reason: "it is neither a registered rule nor a file, and not shown, as it has an @ in it"}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &DSNError{Param: paramRule, Err: err,
			Reason: fmt.Sprintf("%q is neither a registered rule (%s) nor a file", path, namedRules.list())}
	}
	return nil, &DSNError{Param: paramRule, Reason: "the rule does not load", Err: err}
}

func (n *registeredRules) get(name string) *rule.Rule {
	n.RLock()
	defer n.RUnlock()
	return n.rules[name]
}

func (n *registeredRules) list() string {
	n.RLock()
	defer n.RUnlock()
	if len(n.rules) == 0 {
		return "none is registered"
	}
	return "registered: " + strings.Join(slices.Sorted(maps.Keys(n.rules)), ", ")
}

// envPrefix begins a shardkeyRule that names an environment variable with the rule's text.
const envPrefix = "env:"

// envRules are the rules read from environment variables, by variable. The same
// text is the same rule, whose generators all connectors share.
var envRules = registeredRules{rules: map[string]*rule.Rule{}}

// envRule reads the rule that is the text of an environment variable.
func envRule(variable string) (*rule.Rule, error) {
	if !isVariable(variable) {
		return nil, &DSNError{Param: paramRule,
			Reason: "env: is followed by no variable's name: write shardkeyRule=env:SHARDKEY_RULE for the rule in " +
				"the variable SHARDKEY_RULE"}
	}
	text, set := os.LookupEnv(variable)
	switch {
	case !set:
		return nil, &DSNError{Param: paramRule, Err: ErrNoRule,
			Reason: fmt.Sprintf("the environment variable %s is not set: it is to have the rule's text", variable)}
	case strings.TrimSpace(text) == "":
		return nil, &DSNError{Param: paramRule, Err: ErrNoRule,
			Reason: fmt.Sprintf("the environment variable %s is empty: it is to have the rule's text", variable)}
	}
	envRules.Lock()
	defer envRules.Unlock()
	if r := envRules.rules[variable]; r != nil {
		if _, sum := r.Source(); sum == sha256.Sum256([]byte(text)) {
			return r, nil
		}
	}
	r, err := rule.Parse(envPrefix+variable, []byte(text))
	if err != nil {
		reason := fmt.Sprintf("the rule in the environment variable %s does not load", variable)
		if !strings.ContainsAny(text, "\n{") {
			reason += " (it is to have the rule's text, not its path)"
		}
		return nil, &DSNError{Param: paramRule, Reason: reason, Err: err}
	}
	envRules.rules[variable] = r
	return r, nil
}

// isVariable reports whether a text can be a variable's name, and not the end of a password.
func isVariable(name string) bool {
	for _, c := range name {
		if c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return name != ""
}

// unlisted decides on INSERTs into tables that no rule lists, but that look like
// one of a sharded table's: shards that were added and forgotten in the rule.
type unlisted struct {
	policy string // Config.Unlisted, where the table's own does not say
	logger *slog.Logger
	warned sync.Map // names of tables, in lower case
}

// check returns the error for a table that is to be refused. It logs once a table
// where it is to warn.
func (u *unlisted) check(live *rule.Live, schema, name string) error {
	e := live.Unlisted(schema, name)
	if e == nil {
		return nil
	}
	switch u.policyFor(e) {
	case "pass":
		return nil
	case "warn":
		if _, known := u.warned.LoadOrStore(strings.ToLower(schema+"."+name), true); !known {
			u.logger.Warn("shardkey: INSERT sent without a key", "table", e.Table, "error", e)
		}
		return nil
	}
	return refuseUnlisted(e)
}

// policyFor is what happens to an INSERT: warn, pass or refuse.
func (u *unlisted) policyFor(e *rule.UnlistedTableError) string {
	return cmp.Or(e.Like.Unlisted, u.policy, "refuse")
}

func refuseUnlisted(e *rule.UnlistedTableError) error {
	return &StatementError{Reason: reasonUnlisted, Table: e.Table, Err: e}
}
