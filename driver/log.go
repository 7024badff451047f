package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/rewrite"
)

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
