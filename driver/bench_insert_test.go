package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

const benchRuleYAML = `
rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 1, layout: 41-2-20, max-vibration-offset: 0}}
`

func benchRule(tb testing.TB) *rule.Rule {
	tb.Helper()
	r := must(rule.Parse("bench.yaml", []byte(benchRuleYAML)))(tb)
	return r
}

// BenchmarkInsert is the driver's own work on an INSERT whose plan is cached,
// over a base that does nothing. The generator's layout has room enough that
// it never waits.
func BenchmarkInsert(b *testing.B) {
	connector := must(NewConnector(idleConnector{}, benchRule(b), Config{Server: "mysql"}))(b)
	c := must(connector.Connect(context.Background()))(b)
	defer c.Close()
	const one = "INSERT INTO t_order (user_id, amount) VALUES (?, ?)"
	ctx := context.Background()
	b.Run("bound", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(c.(driver.ExecerContext).ExecContext(ctx, one, benchArgs))(b)
		}
	})
	b.Run("literal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(c.(driver.ExecerContext).ExecContext(ctx, "INSERT INTO t_order (user_id, amount) VALUES (1, 2)", nil))(b)
		}
	})
	b.Run("prepared", func(b *testing.B) {
		st := must(c.Prepare(one))(b)
		defer st.Close()
		b.ReportAllocs()
		for b.Loop() {
			must(st.(driver.StmtExecContext).ExecContext(ctx, benchArgs))(b)
		}
	})
	for _, rows := range []int{100, 1000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			query := "INSERT INTO t_order (user_id, amount) VALUES (?, ?)" + strings.Repeat(", (?, ?)", rows-1)
			args := make([]driver.NamedValue, 2*rows)
			for i := range args {
				args[i] = driver.NamedValue{Ordinal: i + 1, Value: int64(i)}
			}
			b.ReportAllocs()
			for b.Loop() {
				must(c.(driver.ExecerContext).ExecContext(ctx, query, args))(b)
			}
		})
	}
}

// TestInsert_allocations holds what BenchmarkInsert shows: one allocation is the
// execution, with arguments and result, and one the key as an argument.
func TestInsert_allocations(t *testing.T) {
	connector := must(NewConnector(idleConnector{}, benchRule(t), Config{Server: "mysql"}))(t)
	defer connector.Close()
	c := must(connector.Connect(context.Background()))(t)
	defer c.Close()
	ctx := context.Background()
	equal(t, testing.AllocsPerRun(100, func() {
		must(c.(driver.ExecerContext).ExecContext(ctx, "INSERT INTO t_order (user_id, amount) VALUES (?, ?)", benchArgs))(t)
	}), 2, "allocations")
}

// BenchmarkPlan executes texts whose plans are not cached, over a base that does
// nothing: more texts in turn than the cache holds, and one that is too long for
// it. What BenchmarkInsert takes for the same text is what is left without
// planning. Once more without the second reader, which is most of it.
func BenchmarkPlan(b *testing.B) {
	for _, v := range []string{"on", "off"} {
		b.Run("verify="+v, func(b *testing.B) { benchmarkPlan(b, v) })
	}
}

func benchmarkPlan(b *testing.B, v string) {
	connector := must(NewConnector(idleConnector{}, benchRule(b), Config{Server: "mysql"}, Config{Verify: v}))(b)
	c := must(connector.Connect(context.Background()))(b)
	defer c.Close()
	cold := make([]string, maxPlans+1)
	for i := range cold {
		cold[i] = fmt.Sprintf("INSERT INTO t_order (user_id, amount) VALUES (?, ?) /* %d */", i)
	}
	long := "INSERT INTO t_order (user_id, amount) VALUES (1, 2)" + strings.Repeat(", (3, 'a row of some sixty bytes, quoted once and not a number')", 1000)
	ctx := context.Background()
	for _, of := range []struct {
		name  string
		texts []string
		args  []driver.NamedValue
	}{{"bound", cold, benchArgs}, {"long literal", []string{long}, nil}} {
		b.Run(of.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				must(c.(driver.ExecerContext).ExecContext(ctx, of.texts[i%len(of.texts)], of.args))(b)
			}
		})
	}
}

// BenchmarkMariaDB inserts into MariaDB through shardkey, and through
// go-sql-driver with the key given by the caller. The ratio of both is what the
// wrapper costs: to a server that does not wait for the disk, and to one with
// MariaDB's own settings, which does at each commit.
func BenchmarkMariaDB(b *testing.B) {
	b.Run("unsynced", func(b *testing.B) { benchmarkMariaDB(b, testserver.Database(b)) })
	b.Run("synced", func(b *testing.B) {
		server := testserver.StartMariaDB(b)
		mustExec(b, mustOpen(b, "mysql", server.DSN()), "CREATE DATABASE bench")
		benchmarkMariaDB(b, server.DSN()+"bench")
	})
}

func benchmarkMariaDB(b *testing.B, dsn string) {
	r := benchRule(b)
	noError(b, RegisterRule("bench", r))
	generators := must(r.Open(spi.Host{}))(b)
	defer generators.Close()
	keys := generators.Lookup("", "t_order").Generator
	for _, params := range []string{"interpolateParams=false", "interpolateParams=true"} {
		plain := mustOpen(b, "mysql", dsn+"?"+params)
		ours := mustOpen(b, "shardkey", dsn+"?shardkeyRule=bench&"+params)
		mustExec(b, plain, "CREATE TABLE IF NOT EXISTS t_order (order_id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT, amount BIGINT)")
		b.Run(params, func(b *testing.B) {
			// One of each in turn, so that both see the same server, and medians,
			// so that what else the machine does falls out.
			var took [2][]time.Duration
			for i := 0; b.Loop(); i++ {
				for _, which := range [2]int{i % 2, 1 - i%2} {
					start := time.Now()
					if which == 0 {
						key := must(keys.GenerateKeys(b.Context(), spi.Column{Table: "t_order", Name: "order_id"}, 1))(b)
						mustExec(b, plain, "INSERT INTO t_order (user_id, amount, order_id) VALUES (?, ?, ?)", 1, 2, key[0])
					} else if _, err := ours.Exec("INSERT INTO t_order (user_id, amount) VALUES (?, ?)", 1, 2); err != nil {
						b.Fatal(err)
					}
					took[which] = append(took[which], time.Since(start))
				}
			}
			slices.Sort(took[0])
			slices.Sort(took[1])
			plain, ours := float64(took[0][len(took[0])/2]), float64(took[1][len(took[1])/2])
			b.ReportMetric(plain, "plain-ns/op")
			b.ReportMetric(ours, "shardkey-ns/op")
			b.ReportMetric(plain/ours, "throughput-ratio")
		})
	}
}

// BenchmarkMariaDBRows is an INSERT of 1,000 literal rows, and planning and
// writing it alone, which must be a small part of the former.
func BenchmarkMariaDBRows(b *testing.B) {
	dsn := testserver.Database(b)
	noError(b, RegisterRule("bench", benchRule(b)))
	ours := mustOpen(b, "shardkey", dsn+"?shardkeyRule=bench")
	mustExec(b, ours, "CREATE TABLE t_order (order_id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT, amount BIGINT, note VARCHAR(100))")
	query := "INSERT INTO t_order (user_id, amount, note) VALUES (1, 2, 'a note of some length')" +
		strings.Repeat(", (12345, 67890, 'another note, as people write')", 999)
	b.Run("server", func(b *testing.B) {
		b.SetBytes(int64(len(query)))
		for i := 0; b.Loop(); i++ {
			mustExec(b, ours, fmt.Sprintf("/* %d */%s", i, query))
		}
	})
	b.Run("own", func(b *testing.B) {
		connector := must(NewConnector(idleConnector{}, benchRule(b), Config{Server: "mysql"}))(b)
		c := must(connector.Connect(context.Background()))(b)
		defer c.Close()
		b.SetBytes(int64(len(query)))
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			must(c.(driver.ExecerContext).ExecContext(context.Background(), fmt.Sprintf("/* %d */%s", i, query), nil))(b)
		}
	})
}

func mustOpen(tb testing.TB, name, dsn string) *sql.DB {
	tb.Helper()
	db := must(sql.Open(name, dsn))(tb)
	tb.Cleanup(func() { db.Close() })
	return db
}
