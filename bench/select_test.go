package bench

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
)

// BenchmarkInsertSelect compares an INSERT … SELECT of n rows with that of a table with AUTO_INCREMENT,
// in turns. It reports the median of AUTO_INCREMENT's time as a part of shardkey's.
func BenchmarkInsertSelect(b *testing.B) {
	r := must.Get(rule.Parse("select.yaml", []byte(`rules:
- !SHARDING
  tables:
    ruled: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 1}}
`)))(b)
	must.Do(b, driver.RegisterRule("bench select", r))
	defer driver.DeregisterRule("bench select")
	dsn := testserver.Database(b)
	plain, ours := must.Open(b, "mysql", dsn), must.Open(b, "shardkey", dsn+"?shardkeyRule=bench%20select")
	for _, db := range []*sql.DB{plain, ours} {
		db.SetMaxOpenConns(1)
	}
	exec := func(db *sql.DB, query string, args ...any) { must.Get(db.Exec(query, args...))(b, query) }
	exec(plain, "CREATE TABLE src (n INT PRIMARY KEY, s VARCHAR(40), d DATETIME)")
	exec(plain, "CREATE TABLE auto (id BIGINT PRIMARY KEY AUTO_INCREMENT, n INT, s VARCHAR(40), d DATETIME)")
	exec(plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, n INT, s VARCHAR(40), d DATETIME)")
	exec(plain, "INSERT INTO src VALUES (0, REPEAT('x', 30), NOW())")
	const most = 1_000_000
	for n := 1; n < most; n *= 2 {
		exec(plain, "INSERT INTO src SELECT n + ?, s, d FROM src", n)
	}
	for _, n := range []int{1, 10, 1000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rounds := min(max(200_000/n, 7), 500)
			query := "INSERT INTO %s (n, s, d) SELECT n, s, d FROM src WHERE n < ?"
			args := []any{n}
			if n == 1 {
				query, args = "INSERT INTO %s (n, s, d) SELECT ?, s, d FROM src LIMIT 1", []any{5}
			}
			ratios := []float64(nil)
			for b.Loop() {
				took := must.Get(Rounds(rounds, 2, func(i int) (t Times, err error) {
					var m Meter
					table, db := "auto", plain
					if i == 1 {
						table, db = "ruled", ours
					}
					exec(plain, "TRUNCATE TABLE "+table)
					m.Start()
					exec(db, fmt.Sprintf(query, table), args...)
					m.Stop()
					return m.Times, nil
				}))(b)
				for i := range took[0] {
					ratios = append(ratios, took[0][i].Wall.Seconds()/took[1][i].Wall.Seconds())
				}
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "of-AUTO_INCREMENT")
			b.ReportMetric(0, "ns/op")
		})
	}
}
