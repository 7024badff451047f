package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/shardkey/shardkey/rule"
)

// namedRules are the rules for names in a DSN, similar to mysql.RegisterTLSConfig.
var namedRules = registeredRules{rules: map[string]*rule.Rule{}}

type registeredRules struct {
	sync.RWMutex
	rules map[string]*rule.Rule
}

// RegisterRule registers a rule under a name, so that a DSN can have shardkeyRule=name instead of a
// file's path. If the name is registered already, connectors opened later get the new rule. The
// error is for an empty name or a nil rule.
//
// RegisterRule is safe for concurrent use.
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

// DeregisterRule removes a registered rule. Open connectors keep it. It does nothing for an unknown
// name, and is safe for concurrent use.
func DeregisterRule(name string) {
	namedRules.Lock()
	defer namedRules.Unlock()
	delete(namedRules.rules, name)
}

// renew replaces all registered rules that were loaded from file with next.
func (reg *registeredRules) renew(file string, next *rule.Rule) {
	reg.Lock()
	defer reg.Unlock()
	for name, r := range reg.rules {
		if of, _ := r.Source(); of == file {
			reg.rules[name] = next
		}
	}
}

func (reg *registeredRules) get(name string) *rule.Rule {
	reg.RLock()
	defer reg.RUnlock()
	return reg.rules[name]
}

func (reg *registeredRules) list() string {
	reg.RLock()
	defer reg.RUnlock()
	if len(reg.rules) == 0 {
		return "none is registered"
	}
	return "registered: " + strings.Join(slices.Sorted(maps.Keys(reg.rules)), ", ")
}

// ruleName returns the rule's name or path in a shardkeyRule parameter: the value if it is a registered
// name or its percent-encoding is invalid, otherwise the decoded value. Unlike in a form, '+' is a plus
// sign.
func ruleName(value string) string {
	if path, err := url.PathUnescape(value); err == nil && namedRules.get(value) == nil {
		return path
	}
	return value
}

// ruleOf returns a registered rule, or the rule of a file.
func ruleOf(path string) (*rule.Rule, error) {
	if r := namedRules.get(path); r != nil {
		return r, nil
	}
	r, err := rule.Load(path)
	var failed *fs.PathError
	switch {
	case err == nil:
		return r, nil
	case errors.As(err, &failed) && strings.Contains(path, "@"):
		// It may be the end of a password that contains "@/?". Systems return several errors for the
		// name of no file.
		return nil, &DSNError{Param: paramRule, Err: failed.Err,
			Reason: "the value is neither a registered rule nor a readable file; it isn't shown because it contains an @"}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &DSNError{Param: paramRule, Err: err,
			Reason: fmt.Sprintf("%q is neither a registered rule (%s) nor a file", path, namedRules.list())}
	}
	return nil, &DSNError{Param: paramRule, Reason: "cannot load the rule", Err: err}
}
