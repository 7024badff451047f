package driver

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"

	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
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
func (c *Connector) NextKeys(ctx context.Context, table string, n int, values ...any) ([]any, error) {
	if n < 1 || n > maxNextKeys {
		return nil, noKeys(table, fmt.Sprintf("expected 1 to %d keys, found %d", maxNextKeys, n), nil)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rules, err := c.use()
	if err != nil {
		return nil, err
	}
	defer func() { _ = rules.generators.Release() }() // about closing the generators, not about the keys
	return rules.nextKeys(ctx, table, n, values)
}

// NextKeys calls [Connector.NextKeys] of a database of this driver. In a transaction, pass the
// *sql.DB. If another driver wraps this one, call the method of the connector that [Open] or
// [Driver.OpenConnector] returns; see [ConnectorOf].
func NextKeys(ctx context.Context, db *sql.DB, table string, n int, values ...any) ([]any, error) {
	if c := ConnectorOf(db); c != nil {
		return c.NextKeys(ctx, table, n, values...)
	}
	return nil, noKeys("", "the *sql.DB does not use this driver, or another driver hides it; "+
		"pass one that was opened with it, or call NextKeys of its connector", nil)
}

func (r *ruleVersion) nextKeys(ctx context.Context, name string, n int, values []any) ([]any, error) {
	t, x, err := r.find(name)
	if err != nil {
		return nil, err
	}
	var one [1]int64
	var made rewrite.Keys
	switch {
	case t.shardBits != nil:
		made, err = t.nextBitsKeys(ctx, r.logger, name, x, n, values)
	case len(values) > 0:
		err = noKeys(name, "its keys have no shard bits; pass no values", nil)
	default:
		made, err = (&plannedInsert{table: t, shard: x}).generate(ctx, n, &one)
	}
	if err != nil {
		return nil, err
	}
	t.counts.notInserted(n)
	keys := make([]any, n)
	for i := range keys {
		keys[i] = made.At(i)
	}
	return keys, nil
}

// nextBitsKeys searches keys with the shard bits of the given values.
func (t *keyedTable) nextBitsKeys(
	ctx context.Context, logger *slog.Logger, name string, x *actualTable, n int, values []any,
) (rewrite.Keys, error) {
	wrong := func(err error, format string, args ...any) (rewrite.Keys, error) {
		return rewrite.Keys{}, noKeys(name, fmt.Sprintf(format, args...), err)
	}
	if len(values) != 1 && len(values) != n {
		return wrong(nil, "its keys have shard bits of column %s: expected one value, "+
			"or one for each of %d keys, found %d", t.shardBits.Column, n, len(values))
	}
	rows := t.newBitsSearch(name, n)
	var g rowBits
	for i := range n {
		if i < len(values) {
			v, err := bitsArg(sqltoken.PlainValue(values[i]))
			if err == nil {
				g.value = v
				g.bits, err = t.shardBits.Of(v)
			}
			if err != nil {
				return wrong(err, "value %d is invalid for column %s", i+1, t.shardBits.Column)
			}
		}
		if err := x.checkBits(ctx, logger, i, g, nil); err != nil {
			return rewrite.Keys{}, err
		}
		rows.add(g.bits)
	}
	return rows.make(ctx, t, nil)
}

// find returns the table for a name in an INSERT.
func (r *ruleVersion) find(name string) (*keyedTable, *actualTable, error) {
	schema, unqualified := "", name
	ruled := r.generators.Lookup("", name)
	if before, after, ok := strings.Cut(name, "."); ruled == nil && ok {
		schema, unqualified = before, after
		ruled = r.generators.Lookup(schema, unqualified)
	}
	if ruled != nil {
		t := r.plans.table(ruled)
		return t, t.shard(schema, unqualified), nil
	}
	reason := "the rule does not list the table"
	if like := r.generators.Unlisted(schema, unqualified); like != nil {
		return nil, nil, noKeys(name, reason, like)
	}
	var known []string
	for _, t := range r.rule.Tables() {
		known = append(known, t.Logical)
	}
	if near := nearest.Word(name, known); near != "" {
		reason += fmt.Sprintf("; did you mean %q?", near)
	}
	return nil, nil, noKeys(name, reason, nil)
}

// noKeys returns the error for invalid arguments of NextKeys. err may be nil.
func noKeys(table, message string, err error) error {
	if err != nil {
		message += ": " + plainText(err)
	}
	return refuse(ReasonNoKey, StatementError{Table: table, Message: message, Err: err})
}
