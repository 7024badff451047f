package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/internal/rewrite"
)

// Filled is an INSERT whose keys have been made, and which is about to be sent.
type Filled struct {
	Table     string // the logical table
	Column    string // its key column
	Generator string // the generator's name in the rule
	Type      string // the generator's type in upper case; empty for one built in Go
	Rows      int    // those that got a key
	FirstKey  any    // of the first of them
}

// WithFilled has f called for each INSERT that gets keys, with the context of its
// execution, in the caller's goroutine: to write the keys into the span of a trace, or
// into a log. f returns soon, and is called by many goroutines at once. A panic in it is
// an error of the statement. Keys of [NextKeys] are not told.
func WithFilled(f func(ctx context.Context, filled Filled)) Option {
	return optionFunc(func(o *options) { o.filled = f })
}

// tellFilled calls the program's function for an INSERT.
func (r *ruleSet) tellFilled(ctx context.Context, t *table, rows int, keys *rewrite.Keys) error {
	if r.filled == nil {
		return nil
	}
	return hideBadConn(guard.Call("the function of WithFilled", func() error {
		r.filled(ctx, Filled{t.rule.Logical, t.rule.Column, t.rule.GeneratorName, t.rule.GeneratorType, rows, keys.At(0)})
		return nil
	}))
}

// maxLogged is how much of a statement is logged, in bytes.
const maxLogged = 4 << 10

func logSent(ctx context.Context, p *plan, sent *sending, keys int, took time.Duration, err error) {
	text := sent.text
	if text == "" {
		text = p.BindText() // of a prepared statement
	}
	var tables, generators []string
	for i := range p.Inserts {
		tables = append(tables, strings.TrimPrefix(p.Inserts[i].Schema+"."+p.Inserts[i].Name, "."))
		generators = append(generators, p.targets[i].table.rule.GeneratorName)
	}
	how := rewrite.Options{Mode: p.key.mode, Charset: p.key.charset}
	attrs := []any{"statement", rewrite.WithoutLiterals(text, how, maxLogged), "args", len(sent.args), "keys", keys,
		"tables", tables, "generators", generators, "took", took}
	if err != nil {
		attrs = append(attrs, "error_type", errorType(err))
	}
	p.rules.logger.DebugContext(ctx, "shardkey: a filled statement was sent", attrs...)
}

// errorType is an error's type, and a server's number: its text may quote a value.
func errorType(err error) string {
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		return fmt.Sprintf("%T %d", server, server.Number)
	}
	return fmt.Sprintf("%T", err)
}
