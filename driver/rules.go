package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/shardkey/shardkey/rule"
)

// namedRules are the rules that a DSN can name, as mysql.RegisterTLSConfig's
// are for tls=.
var namedRules = struct {
	sync.RWMutex
	rules map[string]*rule.Rule
}{rules: map[string]*rule.Rule{}}

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

// ruleOf finds the rule of a shardkeyRule parameter: a registered name as it is
// written, else a registered name or a path after percent-decoding.
func ruleOf(value string) (*rule.Rule, error) {
	if r, ok := namedRule(value); ok {
		return r, nil
	}
	path := unescape(value)
	if r, ok := namedRule(path); ok {
		return r, nil
	}
	r, err := rule.Load(path)
	switch {
	case err == nil:
		return r, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &DSNError{Param: paramRule, Err: err,
			Reason: fmt.Sprintf("%q is neither a registered rule (%s) nor a file", path, registeredRules())}
	}
	return nil, &DSNError{Param: paramRule, Reason: "the rule does not load", Err: err}
}

func namedRule(name string) (*rule.Rule, bool) {
	namedRules.RLock()
	defer namedRules.RUnlock()
	r, ok := namedRules.rules[name]
	return r, ok
}

func registeredRules() string {
	namedRules.RLock()
	defer namedRules.RUnlock()
	if len(namedRules.rules) == 0 {
		return "none is registered"
	}
	return "registered: " + strings.Join(slices.Sorted(maps.Keys(namedRules.rules)), ", ")
}
