package driver

import (
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

	"github.com/shardkey/shardkey/rule"
)

// namedRules are the rules that a DSN can name, as mysql.RegisterTLSConfig's
// are for tls=.
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

// ruleOf finds the rule of a shardkeyRule parameter: a registered name as it is
// written, else a registered name, an environment variable or a path after
// percent-decoding.
func ruleOf(value string) (*rule.Rule, error) {
	if r, ok := namedRule(value); ok {
		return r, nil
	}
	path := unescape(value)
	if r, ok := namedRule(path); ok {
		return r, nil
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
		return nil, &DSNError{Param: paramRule, Err: fs.ErrNotExist, Reason: "it is neither a registered rule nor a file, and not shown, as it has an @ in it"}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &DSNError{Param: paramRule, Err: err,
			Reason: fmt.Sprintf("%q is neither a registered rule (%s) nor a file", path, namedRules.list())}
	}
	return nil, &DSNError{Param: paramRule, Reason: "the rule does not load", Err: err}
}

// checkWarnings refuses a rule that has warnings where they are errors.
func checkWarnings(r *rule.Rule, mode string) error {
	warnings := r.Warnings()
	if len(warnings) > 0 && mode == "error" {
		return &DSNError{Param: paramWarnings, Reason: fmt.Sprintf("the rule has %d warnings, the first being", len(warnings)), Err: warnings[0]}
	}
	return nil
}

func logWarnings(r *rule.Rule, logger *slog.Logger) {
	for _, w := range r.Warnings() {
		logger.Warn("shardkey: the rule has a warning", "warning", w)
	}
}

func namedRule(name string) (*rule.Rule, bool) {
	namedRules.RLock()
	defer namedRules.RUnlock()
	r, ok := namedRules.rules[name]
	return r, ok
}

func (n *registeredRules) list() string {
	n.RLock()
	defer n.RUnlock()
	if len(n.rules) == 0 {
		return "none is registered"
	}
	return "registered: " + strings.Join(slices.Sorted(maps.Keys(n.rules)), ", ")
}

// envPrefix begins a shardkeyRule that names an environment variable with the
// rule's text.
const envPrefix = "env:"

// envRules are the rules read from environment variables, by variable. The same
// text is the same rule, whose generators all connectors share.
var envRules = struct {
	sync.Mutex
	rules map[string]*rule.Rule
}{rules: map[string]*rule.Rule{}}

// envRule reads the rule that is the text of an environment variable.
func envRule(variable string) (*rule.Rule, error) {
	if !isVariable(variable) {
		return nil, &DSNError{Param: paramRule, Reason: "env: is followed by no variable's name: write shardkeyRule=env:SHARDKEY_RULE for the rule in the variable SHARDKEY_RULE"}
	}
	text, set := os.LookupEnv(variable)
	switch {
	case !set:
		return nil, &DSNError{Param: paramRule, Err: ErrNoRule, Reason: fmt.Sprintf("the environment variable %s is not set: it is to have the rule's text", variable)}
	case strings.TrimSpace(text) == "":
		return nil, &DSNError{Param: paramRule, Err: ErrNoRule, Reason: fmt.Sprintf("the environment variable %s is empty: it is to have the rule's text", variable)}
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

// isVariable reports whether a text can be a variable's name, and not the end of a
// password.
func isVariable(name string) bool {
	for _, c := range name {
		if c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return name != ""
}
