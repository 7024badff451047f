package driver

import (
	"context"

	"github.com/shardkey/shardkey/driver/internal/fill"
	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// GeneratedKeys describes an INSERT with generated keys that is about to be sent.
type GeneratedKeys struct {
	Table     string // the logical table
	Column    string // its key column
	Generator string // the generator's name in the rule
	Type      string // the generator's type in upper case; empty for a generator built in Go
	Rows      int    // the number of rows with a generated key
	FirstKey  any    // the first generated key
}

// WithKeyHook makes the driver call f for each INSERT with generated keys, before it is sent. The
// context is that of the execution, so f can add the keys to a trace span or a log. The keys of
// [NextKeys] aren't reported.
//
// Many goroutines call f at once, each in the goroutine of its caller, so f should return soon. If
// f panics, the statement returns an error.
func WithKeyHook(f func(ctx context.Context, filled GeneratedKeys)) Option {
	return optionFunc(func(o *options) { o.keyHook = f })
}

// callKeyHook calls the function of WithKeyHook, which there must be.
func (version *ruleVersion) callKeyHook(ctx context.Context, t *rule.Table, rows int, keys *rewrite.Keys) error {
	first := keys.At(0)
	return fill.HideBadConn(panics.Call("the function of WithKeyHook", func() error {
		version.keyHook(ctx, GeneratedKeys{t.Logical, t.Column, t.GeneratorName, t.GeneratorType, rows, first})
		return nil
	}))
}
