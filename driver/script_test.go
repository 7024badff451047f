package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// script is a generator whose keys a test writes out.
type script func(ctx context.Context, c spi.Column, n int) ([]any, error)

func (s script) GenerateKeys(ctx context.Context, c spi.Column, n int) ([]any, error) {
	return s(ctx, c, n)
}

// scripts are those that rules can name.
var scripts sync.Map

// scriptRules counts the rules that scriptRule made.
var scriptRules atomic.Int64

func init() {
	spi.RegisterKeyGenerator("SCRIPT", func(p spi.Props) (spi.KeyGenerator, error) {
		s, ok := scripts.Load(p.String("name", ""))
		if !ok {
			return nil, errors.New("no such script")
		}
		return s.(script), nil
	})
}

// scriptRule rules the tables of "table.column" with the keys of one script.
// More of the strategy follows a blank: "ruled.id explicitKeys: keep".
func scriptRule(t testing.TB, s script, columns ...string) *rule.Rule {
	t.Helper()
	scripts.Store(t.Name(), s)
	t.Cleanup(func() { scripts.Delete(t.Name()) })
	var b strings.Builder
	fmt.Fprintf(&b, "rules:\n- !SHARDING\n  keyGenerators: {script: {type: SCRIPT, props: {name: '%s'}}}\n  tables:\n", t.Name())
	for _, column := range columns {
		column, more, _ := strings.Cut(column, " ")
		table, column, _ := strings.Cut(column, ".")
		if more != "" {
			more = ", " + more
		}
		fmt.Fprintf(&b, "    %s: {keyGenerateStrategy: {column: %s, keyGeneratorName: script%s}}\n", table, column, more)
	}
	// A name of its own: rules of one name and text share their generators.
	r := must(rule.Parse(fmt.Sprintf("script%d.yaml", scriptRules.Add(1)), []byte(b.String())))(t)
	return r
}

// listed makes a script of a list of keys, each given once.
func listed(keys ...any) script {
	var mu sync.Mutex
	return func(_ context.Context, _ spi.Column, n int) ([]any, error) {
		mu.Lock()
		defer mu.Unlock()
		if n > len(keys) {
			return nil, fmt.Errorf("%d keys are wanted, %d are left", n, len(keys))
		}
		some := keys[:n]
		keys = keys[n:]
		return append([]any(nil), some...), nil
	}
}

// openScripted opens a database of its own through a rule, and plainly.
func openScripted(t *testing.T, r *rule.Rule, params ...string) (ours, plain *sql.DB) {
	t.Helper()
	return openScriptedOn(t, testserver.Database(t)+"?"+strings.Join(params, "&"), r)
}

func openScriptedOn(t *testing.T, dsn string, r *rule.Rule) (ours, plain *sql.DB) {
	t.Helper()
	cfg := must(mysql.ParseDSN(dsn))(t)
	base := must(mysql.NewConnector(cfg))(t)
	ours, plain = sql.OpenDB(mustConnector(t, base, r)), sql.OpenDB(base)
	t.Cleanup(func() {
		check(t, errors.Join(ours.Close(), plain.Close()))
	})
	return ours, plain
}

// door is a way to execute a statement.
type door struct {
	name string
	exec func(ctx context.Context, db *sql.DB, query string, args ...any) (sql.Result, error)
}

// doors are all the ways of database/sql.
var doors = []door{
	{"DB", func(ctx context.Context, db *sql.DB, query string, args ...any) (sql.Result, error) {
		return db.ExecContext(ctx, query, args...)
	}},
	{"Tx", func(ctx context.Context, db *sql.DB, query string, args ...any) (sql.Result, error) {
		tx, err := db.BeginTx(context.Background(), nil)
		if err != nil {
			return nil, err
		}
		res, err := tx.ExecContext(ctx, query, args...)
		return res, errors.Join(err, tx.Commit())
	}},
	{"Conn", func(ctx context.Context, db *sql.DB, query string, args ...any) (sql.Result, error) {
		c, err := db.Conn(context.Background())
		if err != nil {
			return nil, err
		}
		res, err := c.ExecContext(ctx, query, args...)
		return res, errors.Join(err, c.Close())
	}},
	{"Stmt", func(ctx context.Context, db *sql.DB, query string, args ...any) (sql.Result, error) {
		s, err := db.PrepareContext(context.Background(), query)
		if err != nil {
			return nil, err
		}
		res, err := s.ExecContext(ctx, args...)
		return res, errors.Join(err, s.Close())
	}},
	{"Query", func(ctx context.Context, db *sql.DB, query string, args ...any) (sql.Result, error) {
		return nil, drain(db.QueryContext(ctx, query, args...))
	}},
}
