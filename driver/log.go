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

func logSent(ctx context.Context, p *plan, on running, took time.Duration, err error) {
	sent := on.sending()
	text := sent.text
	if sent.stmt != nil {
		text = p.BindText()
	}
	keys := 0
	switch on := on.(type) {
	case *execution:
		for i := range on.inserts {
			keys += on.inserts[i].keys.Len()
		}
	case *insertSelect:
		text = sent.text
		keys = on.keys.Len()
	}
	var tables, generators []string
	for i := range p.Inserts {
		tables = append(tables, strings.TrimPrefix(p.Inserts[i].Schema+"."+p.Inserts[i].Name, "."))
		generators = append(generators, p.tables[i].rule.GeneratorName)
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
