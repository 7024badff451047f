package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// maxNextKeys bounds the keys of one call.
const maxNextKeys = 1_000_000

// NextKeys returns n keys for rows of a table, before they are inserted: for
// children that are inserted with their parent, for an outbox, or to choose the
// shard by the key. They come from the generator that fills the table's INSERTs, in
// one call, as the keys of one INSERT with n rows would. An INSERT that gives
// such a key keeps it; one that is not used is lost.
//
// db is a *sql.DB or a *sql.Conn of this driver, or a [*Connector]; any of an ORM or
// a helper that has the methods of a *sql.DB will do. A transaction's own key is taken
// from its *sql.DB. No connection is made, except to find this driver below one that
// wraps it. table is the name of a logical or an actual table, with or without its
// schema, and n is 1 to 1,000,000.
//
// A key is an int64, a uint64, a string or a []byte, or whatever a generator of one's own
// makes; all of one table are of one type. The error is a [*NextKeysError] for a
// table that the rule does not list or whose keys carry the shard of another column
// ([rule.Gene]), and for the other arguments, a
// [*GeneratorError] as an INSERT's, [spi.ErrClosed], or of a *sql.Conn that was
// closed sql.ErrConnDone. It is safe for use by many
// goroutines at once.
func NextKeys(ctx context.Context, db any, table string, n int) ([]any, error) {
	c, err := connectorFor(ctx, db)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > maxNextKeys {
		return nil, &NextKeysError{Table: table, Reason: fmt.Sprintf("%d keys are asked for: want 1 to %d", n, maxNextKeys)}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rules, err := c.use()
	if err != nil {
		return nil, err
	}
	defer func() { _ = rules.generators.Release() }() // its error is that of closing, not of the keys
	return rules.nextKeys(ctx, table, n)
}

func (r *ruleSet) nextKeys(ctx context.Context, name string, n int) ([]any, error) {
	ruled, x, err := r.find(name)
	if err != nil {
		return nil, err
	}
	if ruled.Gene != nil {
		return nil, &NextKeysError{Table: name, Reason: fmt.Sprintf("its keys carry the shard of %s, and which that is only an INSERT tells: take them from it, with WithKeys", ruled.Gene.Column)}
	}
	var one [1]int64
	var made rewrite.Keys
	if x != nil && x.fit != nil {
		made, err = x.generate(ctx, n, &one, []any{nil}, x.fit)
	} else {
		made, err = r.plans.table(ruled).generate(ctx, n, &one)
	}
	if err != nil {
		return nil, err
	}
	if made.Ints == nil {
		return made.Values, nil
	}
	keys := make([]any, n)
	for i := range keys {
		keys[i] = made.Ints[i]
	}
	return keys, nil
}

// find looks a table up by the name that an INSERT would have.
func (r *ruleSet) find(name string) (*rule.Table, *shard, error) {
	if t := r.generators.Lookup("", name); t != nil {
		return t, r.plans.table(t).shard("", name), nil
	}
	schema, table, qualified := strings.Cut(name, ".")
	if !qualified {
		schema, table = "", name
	}
	if t := r.generators.Lookup(schema, table); t != nil {
		return t, r.plans.table(t).shard(schema, table), nil
	}
	e := &NextKeysError{Table: name, Reason: "the rule has no key for it"}
	if like := r.generators.Unlisted(schema, table); like != nil {
		e.Err = like
		return nil, nil, e
	}
	var known []string
	for _, t := range r.rule.Tables() {
		known = append(known, t.Logical)
	}
	e.Nearest = nearest.Word(name, known)
	return nil, nil, e
}

// connectorFor finds the connector of a database. One that another driver wraps
// shows it on a connection only.
func connectorFor(ctx context.Context, db any) (*Connector, error) {
	if c := ConnectorOf(db); c != nil {
		return c, nil
	}
	if conn, ok := db.(*sql.Conn); ok && isDone(conn) {
		return nil, sql.ErrConnDone
	}
	if pool, ok := db.(interface {
		Conn(context.Context) (*sql.Conn, error)
	}); ok && !isNil(db) {
		var conn *sql.Conn
		err := guard.Call("its Conn", func() (err error) { conn, err = pool.Conn(ctx); return err })
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		if c := ConnectorOf(conn); c != nil {
			return c, nil
		}
	}
	reason := fmt.Sprintf("the %T is not of this driver: want a *sql.DB or *sql.Conn that was opened with it", db)
	if _, ok := db.(*sql.Tx); ok {
		reason = "a *sql.Tx does not show its driver: take the keys from its *sql.DB"
	}
	return nil, &NextKeysError{Reason: reason}
}

// isDone reports whether a connection was given back.
func isDone(conn *sql.Conn) bool {
	defer func() { _ = recover() }() // of a nil or a zero one
	return errors.Is(conn.Raw(func(any) error { return nil }), sql.ErrConnDone)
}
