package bench

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// grow runs a benchmark for 1, 100, 10,000, … up to most.
func grow(b *testing.B, most int, f func(b *testing.B, n int)) {
	for n := 1; n <= most; n *= 100 {
		b.Run(fmt.Sprint(n), func(b *testing.B) { f(b, n) })
	}
}

// heap returns the memory in use after a garbage collection, in kB.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1000
}

// BenchmarkTables reads a rule that lists n tables, and finds one of them.
func BenchmarkTables(b *testing.B) {
	grow(b, 10_000, func(b *testing.B, n int) {
		var text strings.Builder
		text.WriteString("rules:\n- !SHARDING\n  tables:\n")
		for i := range n {
			fmt.Fprintf(&text, "    t_order_%06d: {keyGenerateStrategy: {column: id, keyGeneratorName: uuid}}\n", i)
		}
		text.WriteString("  keyGenerators:\n    uuid: {type: UUID}\n")
		data := []byte(text.String())
		before := heap()
		var r *rule.Rule
		b.Run("read", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if r, err = rule.Parse("growth.yaml", data); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(heap()-before, "kB-kept")
		})
		if r == nil {
			return // -bench matches only the other one
		}
		live := must.Get(r.Open(spi.Host{}))(b)
		defer live.Close()
		b.Run("find", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				live.Lookup("", "t_order_000000")
			}
		})
	})
}

const growthRule = `
rules:
- !SHARDING
  tables: {t_order: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}}
  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: 1, layout: 41-2-20}}}
`

// BenchmarkStatements executes n different INSERTs in turn on one connection, with a driver that
// does nothing.
func BenchmarkStatements(b *testing.B) {
	grow(b, 1_000_000, func(b *testing.B, n int) {
		r := must.Get(rule.Parse("growth.yaml", []byte(growthRule)))(b)
		queries := make([]string, n)
		for i := range queries {
			queries[i] = fmt.Sprintf("INSERT INTO t_order (user_id, amount, column_%06d) VALUES (?, ?, NULL)", i)
		}
		before := heap()
		connector := must.Get(driver.NewConnector(&fakedb.Server{Quiet: true}, r, driver.Config{Server: "mysql"}))(b)
		defer connector.Close()
		c := must.Get(connector.Connect(b.Context()))(b)
		defer c.Close()
		args := []sqldriver.NamedValue{{Ordinal: 1, Value: int64(1)}, {Ordinal: 2, Value: int64(2)}}
		for i := 0; b.Loop(); i++ {
			if _, err := c.(sqldriver.ExecerContext).ExecContext(b.Context(), queries[i%n], args); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(heap()-before, "kB-kept")
		runtime.KeepAlive(queries)
	})
}

// onServer runs a benchmark with go-sql-driver and AUTO_INCREMENT, and with shardkey.
func onServer(b *testing.B, most int, f func(b *testing.B, db *sql.DB, n int)) {
	for _, name := range []string{"mysql", "shardkey"} {
		b.Run(name, func(b *testing.B) {
			auto, params := " AUTO_INCREMENT", ""
			if name == "shardkey" {
				must.Do(b, driver.RegisterRule("growth", must.Get(rule.Parse("growth.yaml", []byte(growthRule)))(b)))
				defer driver.DeregisterRule("growth")
				auto, params = "", "?shardkeyRule=growth"
			}
			db := must.Open(b, name, testserver.Database(b)+params)
			execute(b, db, "CREATE TABLE t_order (id BIGINT NOT NULL"+auto+" PRIMARY KEY, user_id BIGINT)")
			grow(b, most, func(b *testing.B, n int) { f(b, db, n) })
		})
	}
}

func execute(b *testing.B, db *sql.DB, query string, args ...any) {
	if _, err := db.Exec(query, args...); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRows inserts n rows with one statement, without arguments.
func BenchmarkRows(b *testing.B) {
	onServer(b, 10_000, func(b *testing.B, db *sql.DB, n int) {
		query := "INSERT INTO t_order (user_id) VALUES (1)" + strings.Repeat(",(2)", n-1)
		for b.Loop() {
			execute(b, db, query)
		}
	})
}

// BenchmarkConnections inserts on n connections in turn.
func BenchmarkConnections(b *testing.B) {
	onServer(b, 100, func(b *testing.B, db *sql.DB, n int) {
		before := heap()
		conns := make([]*sql.Conn, n)
		insert := func(c *sql.Conn) {
			if _, err := c.ExecContext(b.Context(), "INSERT INTO t_order (user_id) VALUES (?)", 1); err != nil {
				b.Fatal(err)
			}
		}
		for i := range conns {
			conns[i] = must.Get(db.Conn(b.Context()))(b)
			defer conns[i].Close()
			insert(conns[i])
		}
		kept := heap() - before
		for i := 0; b.Loop(); i++ {
			insert(conns[i%n])
		}
		b.ReportMetric(kept/float64(n), "kB/conn")
	})
}
