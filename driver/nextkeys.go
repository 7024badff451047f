package driver

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/shardkey/shardkey/internal/rewrite"
)

// maxNextKeys bounds the keys of one call.
const maxNextKeys = 1_000_000

// NextKeys returns n keys for rows of a table, before they are inserted: for
// children that are inserted with their parent, for an outbox, or to choose the
// actual table by the key. They come from the table's generator, as the keys of one INSERT
// with n rows would. An INSERT that gives such a key keeps it; a key that isn't used is lost.
//
// table is the name of a logical or an actual table, with or without its schema, and n is 1 to
// 1,000,000. The keys of an actual table belong to it, where the key decides on the table.
//
// If the keys carry the shard of another column ([rule.Gene]), values are what that column has in
// the rows: one value for all rows, or one for each. A value is of the column's type: an
// integer for a column of integers, a string for a column of text. For other tables there
// are no values.
//
// A key is an int64, a uint64, a string or a []byte, or whatever a custom generator makes; all
// keys of one table are of one type. The error is a [*StatementError]: for a table that the rule
// doesn't list and for other wrong arguments, for a value whose keys belong to another actual
// table ([ErrWrongShard]), and as an INSERT's if the generator fails ([*GeneratorError]); or it is
// [spi.ErrClosed].
//
// No connection is used. NextKeys may be called by many goroutines at once.
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
	defer func() { _ = rules.generators.Release() }() // its error is that of closing, not of the keys
	return rules.nextKeys(ctx, table, n, values)
}

// NextKeys is the [Connector.NextKeys] of a database of this driver. It makes a connection only to
// find this driver below another one that wraps it. In a transaction, call it with the *sql.DB.
func NextKeys(ctx context.Context, db *sql.DB, table string, n int, values ...any) ([]any, error) {
	c, err := connectorFor(ctx, db)
	if err != nil {
		return nil, err
	}
	return c.NextKeys(ctx, table, n, values...)
}

func (r *ruleSet) nextKeys(ctx context.Context, name string, n int, values []any) ([]any, error) {
	t, x, err := r.find(name)
	if err != nil {
		return nil, err
	}
	var one [1]int64
	var made rewrite.Keys
	switch {
	case t.gene != nil:
		made, err = t.nextGeneKeys(ctx, r.logger, name, x, n, values)
	case len(values) > 0:
		err = noKeys(name, "its keys carry no shard of another column; leave the values out", nil)
	default:
		made, err = (&target{table: t, shard: x}).generate(ctx, n, &one)
	}
	if err != nil {
		return nil, err
	}
	keys := make([]any, n)
	for i := range keys {
		keys[i] = made.At(i)
	}
	return keys, nil
}

// nextGeneKeys draws the keys of rows whose gene's column has the given values.
func (t *table) nextGeneKeys(
	ctx context.Context, logger *slog.Logger, name string, x *shard, n int, values []any,
) (rewrite.Keys, error) {
	wrong := func(err error, format string, args ...any) (rewrite.Keys, error) {
		return rewrite.Keys{}, noKeys(name, fmt.Sprintf(format, args...), err)
	}
	if len(values) != 1 && len(values) != n {
		return wrong(nil, "its keys carry the shard of %s, and %d values of that column are given for %d keys: "+
			"want one value, or one for each key", t.gene.Column, len(values), n)
	}
	rows := t.newGeneRows(name, n)
	var g rowGene
	for i := range n {
		if i < len(values) {
			v, err := geneArg(plainKey(values[i]))
			if err == nil {
				g.value = v
				g.gene, err = t.gene.Of(v)
			}
			if err != nil {
				return wrong(err, "value %d cannot be one of %s", i+1, t.gene.Column)
			}
		}
		if err := x.checkGene(ctx, logger, i, g, nil); err != nil {
			return rewrite.Keys{}, err
		}
		rows.add(g.gene)
	}
	return rows.make(ctx, t, nil)
}

// find looks a table up by the name that an INSERT would have.
func (r *ruleSet) find(name string) (*table, *shard, error) {
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
	reason := "the rule has no key for it"
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

// noKeys returns the error for arguments of NextKeys; err may be nil.
func noKeys(table, message string, err error) error {
	if err != nil {
		message += ": " + plainText(err, "")
	}
	return &StatementError{Reason: reasonNoKey, Table: table, Message: message, Err: err}
}

// connectorFor finds the connector of a database. One that another driver wraps
// shows it on a connection only.
func connectorFor(ctx context.Context, db *sql.DB) (*Connector, error) {
	if c := ConnectorOf(db); c != nil {
		return c, nil
	}
	if db != nil {
		var conn *sql.Conn
		err := guard.Call("its Conn", func() (err error) { conn, err = db.Conn(ctx); return err })
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		if c := ConnectorOf(conn); c != nil {
			return c, nil
		}
	}
	return nil, noKeys("", "the *sql.DB is not of this driver; give one that was opened with it", nil)
}
