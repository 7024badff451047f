package driver

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/shardkey/shardkey/driver/internal/fill"
	"github.com/shardkey/shardkey/internal/nearest"
)

// maxNextKeys limits the keys of one call.
const maxNextKeys = 1_000_000

// NextKeys returns n keys of a table before their INSERT. Use it for children that you insert with
// their parent, for an outbox, or to choose the shard by the key. The keys are consecutive if those
// of one INSERT with n rows would be. An INSERT keeps an explicit key. An unused key is lost.
//
// The parameter table is the name of a logical or an actual table, with or without a schema. n is 1
// to 1,000,000. The keys of an actual table belong in that table, if the key determines the table.
//
// If keys have shard bits of another column ([rule.ShardBits]), pass values of that column: one value
// for all rows, or one for each row. Pass an integer for an integer column and a string for a
// string column. Pass no values for other tables.
//
// A key is an int64, uint64, string or []byte, and never 0 or empty. All keys of a table have one
// type.
//
// The error is a [*StatementError] or [spi.ErrClosed]. A StatementError reports an invalid
// argument, such as a table that isn't in the rule, or a failed generator ([*GeneratorError]). It
// wraps [ErrWrongShard] for a value that belongs in another actual table.
//
// NextKeys uses no connection and is safe for concurrent use.
func (connector *Connector) NextKeys(ctx context.Context, table string, n int, values ...any) ([]any, error) {
	keys, err := connector.nextKeys(ctx, table, n, values)
	return keys, refusal(err)
}

func (connector *Connector) nextKeys(ctx context.Context, table string, n int, values []any) ([]any, error) {
	if n < 1 || n > maxNextKeys {
		return nil, fill.NoKeys(table, fmt.Sprintf("expected 1 to %d keys, found %d", maxNextKeys, n), nil)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rules, err := connector.use()
	if err != nil {
		return nil, err
	}
	defer func() { _ = rules.generators.Release() }() // about closing the generators, not about the keys
	t, a, err := rules.find(table)
	if err != nil {
		return nil, err
	}
	return t.Next(ctx, table, a, n, values)
}

// NextKeys calls [Connector.NextKeys] of a database of this driver. In a transaction, pass the
// *sql.DB. If another driver wraps this one, call the method of the connector that [Open] or
// [Driver.OpenConnector] returns; see [ConnectorOf].
func NextKeys(ctx context.Context, db *sql.DB, table string, n int, values ...any) ([]any, error) {
	if c := ConnectorOf(db); c != nil {
		return c.NextKeys(ctx, table, n, values...)
	}
	return nil, refusal(fill.NoKeys("", "the *sql.DB does not use this driver, or another driver hides it; "+
		"pass one that was opened with it, or call NextKeys of its connector", nil))
}

// find returns the table for a name in an INSERT.
func (version *ruleVersion) find(name string) (*keyedTable, *fill.ActualTable, error) {
	schema, unqualified := "", name
	ruled := version.generators.Lookup("", name)
	if before, after, ok := strings.Cut(name, "."); ruled == nil && ok {
		schema, unqualified = before, after
		ruled = version.generators.Lookup(schema, unqualified)
	}
	if ruled != nil {
		t := version.plans.table(ruled)
		return t, t.ActualTable(schema, unqualified), nil
	}
	reason := "the rule does not list the table"
	if like := version.generators.Unlisted(schema, unqualified); like != nil {
		return nil, nil, fill.NoKeys(name, reason, like)
	}
	var known []string
	for _, t := range version.rule.Tables() {
		known = append(known, t.Logical)
	}
	if near := nearest.Word(name, known); near != "" {
		reason += fmt.Sprintf("; did you mean %q?", near)
	}
	return nil, nil, fill.NoKeys(name, reason, nil)
}
