package driver

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/shardkey/shardkey/rule"
)

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
