package driver

import (
	"log/slog"
	"strings"
	"sync"

	"github.com/shardkey/shardkey/rule"
)

// unlisted decides on INSERTs into tables that no rule lists, but that look like
// one of a ruled table's: shards that were added and forgotten in the rule.
type unlisted struct {
	policy rule.Unlisted // where the table's own does not say
	logger *slog.Logger
	warned sync.Map // names of tables, in lower case
}

// unlistedPolicy is the policy of Config.Unlisted.
func unlistedPolicy(value string) rule.Unlisted {
	switch value {
	case "warn":
		return rule.UnlistedWarn
	case "pass":
		return rule.UnlistedPass
	}
	return rule.UnlistedRefuse
}

// check returns the error for a table that is to be refused. It logs once a table
// where it is to warn.
func (u *unlisted) check(live *rule.Live, schema, name string) error {
	e := live.Unlisted(schema, name)
	if e == nil {
		return nil
	}
	switch u.policyFor(e) {
	case rule.UnlistedPass:
		return nil
	case rule.UnlistedWarn:
		if _, known := u.warned.LoadOrStore(strings.ToLower(schema+"."+name), true); !known {
			u.logger.Warn("shardkey: an INSERT is sent without a key", "table", e.Table, "error", e)
		}
		return nil
	}
	return unlistedError{e}
}

// policyFor is what becomes of an INSERT: warn, pass or refuse.
func (u *unlisted) policyFor(e *rule.UnlistedTableError) rule.Unlisted {
	policy := e.Like.Unlisted
	if policy == rule.UnlistedDefault {
		policy = u.policy
	}
	if policy == rule.UnlistedDefault {
		return rule.UnlistedRefuse
	}
	return policy
}

// unlistedError is a *rule.UnlistedTableError and an [ErrUnsupportedStatement].
type unlistedError struct{ *rule.UnlistedTableError }

func (e unlistedError) Unwrap() []error {
	return []error{ErrUnsupportedStatement, e.UnlistedTableError}
}
