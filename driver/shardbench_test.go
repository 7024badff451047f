package driver

import (
	"context"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkey/shardkey/rule"
)

// BenchmarkShards is an INSERT of one row with arguments: into the logical table
// (plain), into an actual table that a generated key fits (fit), and into one that
// another column decides on (guard); and with keys that carry the gene of the
// latter, into the logical table (gene), into the actual one (gene-fit), and by the hash
// (gene-hash). The layout has so many keys that none is
// waited for.
func BenchmarkShards(b *testing.B) {
	for _, m := range []int{2, 16, 1024} {
		r := must(rule.Parse(fmt.Sprint(b.Name(), m), fmt.Appendf(nil, `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds.t_order_${0..%[1]d}
      tableStrategy: {standard: {shardingColumn: order_id, shardingAlgorithmName: o}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: s}
    t_hash:
      actualDataNodes: ds.t_hash_${0..%[1]d}
      tableStrategy: {standard: {shardingColumn: order_id, shardingAlgorithmName: h}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: s}
    t_user:
      actualDataNodes: ds.t_user_${0..%[1]d}
      tableStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: u}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: s}
    t_gene:
      actualDataNodes: ds.t_gene_${0..%[1]d}
      tableStrategy: {standard: {shardingColumn: order_id, shardingAlgorithmName: g}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: g}
    t_gene_hash:
      actualDataNodes: ds.t_gene_hash_${0..%[1]d}
      tableStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: h}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: g}
  keyGenerators:
    g: {type: SNOWFLAKE, props: {worker-id: 0, layout: 41-0-22, gene-column: user_id, gene-bits: 10}}
    s: {type: SNOWFLAKE, props: {worker-id: 0, layout: 41-0-22, max-vibration-offset: 4095}}
  shardingAlgorithms:
    o: {type: INLINE, props: {algorithm-expression: "t_order_${order_id %% %[2]d}"}}
    u: {type: INLINE, props: {algorithm-expression: "t_user_${user_id %% %[2]d}"}}
    g: {type: MOD, props: {sharding-count: %[2]d}}
    h: {type: HASH_MOD, props: {sharding-count: %[2]d}}
`, m-1, m)))(b)
		for _, bm := range []struct{ name, table string }{{"plain", "t_order"}, {"fit", "t_order_1"}, {"fit-hash", "t_hash_1"}, {"guard", "t_user_1"},
			{"gene", "t_gene"}, {"gene-fit", "t_gene_1"}, {"gene-hash", "t_gene_hash"}} {
			b.Run(fmt.Sprintf("m=%d/%s", m, bm.name), func(b *testing.B) {
				connector := must(NewConnector(idleConnector{}, r, Config{Server: "other"}, WithLogger(slog.New(slog.DiscardHandler))))(b)
				defer connector.Close()
				c := must(connector.Connect(context.Background()))(b)
				e, ctx := c.(driver.ExecerContext), context.Background()
				query := "INSERT INTO " + bm.table + " (user_id, amount) VALUES (?, ?)"
				args := []driver.NamedValue{{Ordinal: 1, Value: int64(1)}, {Ordinal: 2, Value: int64(2)}}
				b.ReportAllocs()
				for b.Loop() {
					must(e.ExecContext(ctx, query, args))(b)
				}
			})
		}
	}
}

// BenchmarkDrawnRows is an INSERT of 1,000 rows by SNOWFLAKE of the usual layout: into the logical
// table (plain), into one of 16 tables (table), and with shard bits of 4 of random users (bits). The layout
// has 4,096 keys a millisecond.
func BenchmarkDrawnRows(b *testing.B) {
	const rows = 1000
	rnd := rand.New(rand.NewPCG(1, 2))
	args := make([]driver.NamedValue, rows)
	for i := range args {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: rnd.Int64N(1 << 40)}
	}
	const mod = "type: MOD, props: {sharding-count: 16}"
	for _, bm := range []struct{ name, table, props string }{
		{"plain", "t_order", "worker-id: 3"},
		{"table", "t_order_1", "worker-id: 3"},
		{"bits", "t_order", "worker-id: 3, gene-column: user_id, gene-bits: 4"},
	} {
		b.Run(bm.name, func(b *testing.B) {
			_, connector := openDrawn(b, drawnRule(b, 16, mod, "SNOWFLAKE, props: {"+bm.props+"}"))
			c := must(connector.Connect(context.Background()))(b)
			e, ctx := c.(driver.ExecerContext), context.Background()
			query := "INSERT INTO " + bm.table + " (user_id) VALUES (?)" + strings.Repeat(",(?)", rows-1)
			for b.Loop() {
				must(e.ExecContext(ctx, query, args))(b)
			}
		})
	}
}

// BenchmarkHopeless is the time that an ordinary caller waits for a key while 64 goroutines ask for
// tables that no key belongs to (64), and while none does (0).
func BenchmarkHopeless(b *testing.B) {
	for _, n := range []int{0, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			_, c := openDrawn(b, drawnRule(b, 8192, "type: MOD, props: {sharding-count: 8192}", "SNOWFLAKE, props: {worker-id: 2}"))
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					for ctx.Err() == nil {
						_, _ = c.NextKeys(ctx, fmt.Sprint("t_order_", 4096+i), 1)
					}
				})
			}
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				must(c.NextKeys(ctx, "t_order", 1))(b)
				took = append(took, time.Since(start))
			}
			cancel()
			wg.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}

// BenchmarkHotTable is eight goroutines that insert rows by SNOWFLAKE of the usual
// layout, 4,096 keys a millisecond and worker: all into one of m tables (fixed), where
// one key of m is right, or into the logical table. keys/ms is what that came to;
// most/mean is how many keys the fullest of the m tables got, over the mean of all.
func BenchmarkHotTable(b *testing.B) {
	for _, m := range []int{2, 3, 7, 16, 1024} {
		r := must(rule.Parse(fmt.Sprint(b.Name(), m), fmt.Appendf(nil, `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds.t_order_${0..%[1]d}
      tableStrategy: {standard: {shardingColumn: order_id, shardingAlgorithmName: o}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: s}
  keyGenerators:
    s: {type: SNOWFLAKE, props: {worker-id: 1, max-vibration-offset: %[1]d}}
  shardingAlgorithms:
    o: {type: MOD, props: {sharding-count: %[2]d}}
`, m-1, m)))(b)
		for _, bm := range []struct{ name, table string }{{"fixed", "t_order_1"}, {"logical", "t_order"}} {
			b.Run(fmt.Sprintf("m=%d/%s", m, bm.name), func(b *testing.B) {
				connector := must(NewConnector(idleConnector{}, r, Config{Server: "other"}))(b)
				defer connector.Close()
				rows := make([]atomic.Int64, m)
				b.SetParallelism(max(1, 8/runtime.GOMAXPROCS(0)))
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					c, err := connector.Connect(context.Background())
					if err != nil {
						b.Error(err)
						return
					}
					e, ctx := c.(driver.ExecerContext), context.Background()
					args := []driver.NamedValue{{Ordinal: 1, Value: int64(1)}}
					for pb.Next() {
						res, err := e.ExecContext(ctx, "INSERT INTO "+bm.table+" (user_id) VALUES (?)", args)
						if err != nil {
							b.Error(err)
							return
						}
						key, _ := res.LastInsertId()
						rows[key%int64(m)].Add(1)
					}
				})
				most := int64(0)
				for i := range rows {
					most = max(most, rows[i].Load())
				}
				b.ReportMetric(float64(b.N)/float64(b.Elapsed().Milliseconds()+1), "keys/ms")
				b.ReportMetric(float64(most)*float64(m)/float64(b.N), "most/mean")
			})
		}
	}
}
