package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/rule"
)

// These benchmarks measure the driver's own work, with a server that does nothing. The
// generators' layouts have so many keys that no call waits.

const (
	benchSelect = "SELECT order_id, user_id, amount, created_at FROM t_order WHERE order_id = ? AND user_id = ?"
	benchInsert = "INSERT INTO t_order (user_id, amount) VALUES (?, ?)"
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
	return must(rule.Parse("bench.yaml", []byte(benchRuleYAML)))(tb)
}

// benchArgs returns n arguments.
func benchArgs(n int) []driver.NamedValue {
	args := make([]driver.NamedValue, n)
	for i := range args {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: int64(i + 1)}
	}
	return args
}

// quietConn returns a connection of this driver as over go-sql-driver, or of the underlying driver if r is nil.
func quietConn(tb testing.TB, r *rule.Rule, opts ...Option) driver.Conn {
	tb.Helper()
	base := &fakedb.Server{Quiet: true}
	if r == nil {
		return must(base.Connect(tb.Context()))(tb)
	}
	c := openConn(tb, base, r, opts...)
	c.overMySQL = true // the quiet server doesn't keep arguments either
	return c
}

// benchExec executes the queries in turn.
func benchExec(b *testing.B, name string, c driver.Conn, args []driver.NamedValue, queries ...string) {
	b.Run(name, func(b *testing.B) {
		e, ctx := c.(driver.ExecerContext), context.Background()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := e.ExecContext(ctx, queries[i%len(queries)], args); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// traced returns a statement with many trace IDs.
func traced(statement string) []string {
	all := make([]string, 1000)
	for i := range all {
		all[i] = fmt.Sprintf("%s /*traceparent='00-%032x-%016x-01'*/", statement, i*i, i)
	}
	return all
}

// BenchmarkPassThrough executes statements other than INSERTs. The cases called base use the
// underlying driver alone.
func BenchmarkPassThrough(b *testing.B) {
	for name, c := range map[string]driver.Conn{"base": quietConn(b, nil), "shardkey": quietConn(b, testRule(b))} {
		ctx, args := context.Background(), benchArgs(2)
		benchExec(b, "update/"+name, c, args, "UPDATE t_order SET amount = ? WHERE order_id = ?")
		benchExec(b, "traced insert/"+name, c, args, traced("INSERT INTO t_item (user_id, amount) VALUES (?, ?)")...)
		b.Run("select/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.(driver.QueryerContext).QueryContext(ctx, benchSelect, args); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("prepared/"+name, func(b *testing.B) {
			st := must(c.Prepare(benchSelect))(b).(driver.StmtQueryContext)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := st.QueryContext(ctx, args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkInsert executes INSERTs whose plans are cached.
func BenchmarkInsert(b *testing.B) {
	c := quietConn(b, benchRule(b), Config{Server: "mysql"})
	benchExec(b, "bound", c, benchArgs(2), benchInsert)
	benchExec(b, "literal", c, nil, "INSERT INTO t_order (user_id, amount) VALUES (1, 2)")
	benchExec(b, "traced", c, benchArgs(2), traced(benchInsert)...)
	b.Run("prepared", func(b *testing.B) {
		st, args := must(c.Prepare(benchInsert))(b), benchArgs(2)
		defer st.Close()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := st.(driver.StmtExecContext).ExecContext(context.Background(), args); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, rows := range []int{100, 1000} {
		benchExec(b, fmt.Sprintf("rows=%d", rows), c, benchArgs(2*rows), benchInsert+strings.Repeat(", (?, ?)", rows-1))
	}
}

// BenchmarkWarmInsert executes an INSERT through database/sql; make path lists the functions that it calls.
func BenchmarkWarmInsert(b *testing.B) {
	db := sql.OpenDB(must(NewConnector(&fakedb.Server{Kind: fakedb.Skipping, Quiet: true}, benchRule(b), Config{Server: "mysql"}, WithLogger(slog.New(slog.DiscardHandler))))(b))
	defer db.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := db.ExecContext(b.Context(), benchInsert, 7, 8); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPlan executes INSERTs whose plans are not cached: more statements than the cache
// holds, and one that is too long for it. Each runs with the second parser and without.
func BenchmarkPlan(b *testing.B) {
	cold := make([]string, maxPlans+1)
	for i := range cold {
		cold[i] = strings.Replace(benchInsert, "VALUES", fmt.Sprintf("/* %d */ VALUES", i), 1)
	}
	row := ", (3, 'a row of some sixty bytes, quoted once and not a number')"
	for _, verify := range []string{"on", "off"} {
		c := quietConn(b, benchRule(b), Config{Server: "mysql", Verify: verify})
		benchExec(b, "bound/verify="+verify, c, benchArgs(2), cold...)
		benchExec(b, "long literal/verify="+verify, c, nil,
			"INSERT INTO t_order (user_id, amount) VALUES (1, 2)"+strings.Repeat(row, 1000))
	}
}

// Passing through allocates nothing. An INSERT allocates its result and the key as an argument.
func TestAllocations(t *testing.T) {
	ctx, args := context.Background(), benchArgs(2)
	passing, inserting := quietConn(t, testRule(t)), quietConn(t, benchRule(t), Config{Server: "mysql"})
	st := must(passing.Prepare(benchSelect))(t)
	for _, of := range []struct {
		name string
		run  func() error
		want float64
	}{
		{"SELECT", func() error {
			_, err := passing.(driver.QueryerContext).QueryContext(ctx, benchSelect, args)
			return err
		}, 0},
		{"SELECT, prepared", func() error { _, err := st.(driver.StmtQueryContext).QueryContext(ctx, args); return err }, 0},
		{"INSERT", func() error {
			_, err := inserting.(driver.ExecerContext).ExecContext(ctx, benchInsert, args)
			return err
		}, 2},
	} {
		equal(t, testing.AllocsPerRun(100, func() {
			noError(t, of.run())
		}), of.want, of.name)
	}
}

// BenchmarkShards executes an INSERT of one row with arguments: into the logical table (plain),
// into an actual table that must match the generated key (fit), and into an actual table that
// depends on another column (guard). The other cases have keys with that column's shard bits:
// into the logical table (bits), into the actual table (bits-fit), and with a hash (bits-hash).
// The layout has so many keys that no call waits.
func BenchmarkShards(b *testing.B) {
	for _, m := range []int{2, 16, 1024} {
		r := mustParseRule(b, fmt.Sprintf(ruleText(`
			t_order     ds.t_order_${0..%[1]d}     - order_id:o order_id:s
			t_hash      ds.t_hash_${0..%[1]d}      - order_id:h order_id:s
			t_user      ds.t_user_${0..%[1]d}      - user_id:u  order_id:s
			t_bits      ds.t_bits_${0..%[1]d}      - order_id:g order_id:g
			t_bits_hash ds.t_bits_hash_${0..%[1]d} - user_id:h  order_id:g
		`, "", `
  keyGenerators:
    g: {type: SNOWFLAKE, props: {worker-id: 0, layout: 41-0-22, gene-column: user_id, gene-bits: 10}}
    s: {type: SNOWFLAKE, props: {worker-id: 0, layout: 41-0-22, max-vibration-offset: 4095}}
  shardingAlgorithms:
    o: {type: INLINE, props: {algorithm-expression: "t_order_${order_id %% %[2]d}"}}
    u: {type: INLINE, props: {algorithm-expression: "t_user_${user_id %% %[2]d}"}}
    g: {type: MOD, props: {sharding-count: %[2]d}}
    h: {type: HASH_MOD, props: {sharding-count: %[2]d}}
`), m-1, m))
		for _, bm := range []struct{ name, table string }{{"plain", "t_order"}, {"fit", "t_order_1"}, {"fit-hash", "t_hash_1"}, {"guard", "t_user_1"},
			{"bits", "t_bits"}, {"bits-fit", "t_bits_1"}, {"bits-hash", "t_bits_hash"}} {
			c := quietConn(b, r, Config{Server: "other"}, WithLogger(slog.New(slog.DiscardHandler)))
			benchExec(b, fmt.Sprintf("m=%d/%s", m, bm.name), c, benchArgs(2), "INSERT INTO "+bm.table+" (user_id, amount) VALUES (?, ?)")
		}
	}
}

// BenchmarkSearchedRows executes an INSERT of 1,000 rows with SNOWFLAKE's default layout: into the
// logical table (plain), into one of 16 tables (table), and with 4 shard bits of random users
// (bits). The layout has 4,096 keys a millisecond.
func BenchmarkSearchedRows(b *testing.B) {
	const rows = 1000
	rnd := rand.New(rand.NewPCG(1, 2))
	args := benchArgs(rows)
	for i := range args {
		args[i].Value = rnd.Int64N(1 << 40)
	}
	const mod = "type: MOD, props: {sharding-count: 16}"
	for _, bm := range []struct{ name, table, props string }{
		{"plain", "t_order", "worker-id: 3"},
		{"table", "t_order_1", "worker-id: 3"},
		{"bits", "t_order", "worker-id: 3, gene-column: user_id, gene-bits: 4"},
	} {
		c := quietConn(b, searchRule(b, 16, mod, "SNOWFLAKE, props: {"+bm.props+"}"), Config{Server: "other"})
		benchExec(b, bm.name, c, args, "INSERT INTO "+bm.table+" (user_id) VALUES (?)"+strings.Repeat(",(?)", rows-1))
	}
}
