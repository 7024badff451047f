package driver

import (
	"sync/atomic"

	"github.com/shardkey/shardkey/rule"
)

// ruleSet is one rule at work in one connector: its live generators and the
// plans made with it. A connector's rule is replaced by replacing its ruleSet,
// so whoever holds one sees rule, generators and plans that belong together.
//
// Looking at a ruleSet is free. Whoever takes keys from it acquires it first
// and releases it afterwards; the last to leave a replaced ruleSet closes its
// generators.
type ruleSet struct {
	rule       *rule.Rule
	generators *rule.Generators
	plans      *planCache

	// refs counts the users, the connector being one while this is its
	// current rule. At 0 the generators are closed, and it never rises again.
	refs atomic.Int64
}

func newRuleSet(r *rule.Rule, generators *rule.Generators) *ruleSet {
	s := &ruleSet{rule: r, generators: generators, plans: newPlanCache()}
	s.refs.Store(1)
	return s
}

// acquire keeps the generators open until release. It returns false when they
// have been closed: the rule was replaced, and the statement is planned anew.
func (s *ruleSet) acquire() bool {
	for {
		n := s.refs.Load()
		if n == 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release ends a use. The error is that of closing the generators, which only
// the last user sees. Releasing nil does nothing.
func (s *ruleSet) release() error {
	if s != nil && s.refs.Add(-1) == 0 {
		return s.generators.Close()
	}
	return nil
}
