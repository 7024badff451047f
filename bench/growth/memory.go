package main

import (
	"context"
	"database/sql/driver"
	"fmt"
	"runtime"
	"strings"
	"time"

	shardkey "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// inMemory are the tables that need no server.
var inMemory = []growth{
	{"tables", "Tables in a rule", "tables", 100_000,
		[]string{"to read it, µs", "allocated, kB", "kept, kB", "to find a table, µs"}, tables},
	{"statements", "Different statements on one connection", "statements", 1_000_000,
		[]string{"an INSERT, µs", "kept, kB"}, statements},
}

// tables measures a rule with n tables.
func tables(n int) ([]float64, error) {
	var text strings.Builder
	text.WriteString("rules:\n- !SHARDING\n  tables:\n")
	for i := range n {
		fmt.Fprintf(&text, "    t_order_%06d:\n      actualDataNodes: ds_0.t_order_%06d\n"+
			"      keyGenerateStrategy:\n        column: id\n        keyGeneratorName: uuid\n", i, i)
	}
	text.WriteString("  keyGenerators:\n    uuid: {type: UUID}\n")
	data := []byte(text.String())
	var r *rule.Rule
	var err error
	var before, after runtime.MemStats
	repeat := max(3, 300/n)
	empty := heap()
	runtime.ReadMemStats(&before)
	read := best(repeat, func() {
		if err == nil {
			r, err = rule.Parse("growth.yaml", data)
		}
	})
	runtime.ReadMemStats(&after)
	if err != nil {
		return nil, err
	}
	live, err := r.Open(spi.Host{})
	if err != nil {
		return nil, err
	}
	kept := heap() - empty
	names := make([]string, min(n, 1000))
	for i := range names {
		names[i] = fmt.Sprintf("t_order_%06d", i*(n/len(names)))
	}
	found := best(20, func() {
		for _, name := range names {
			live.Lookup("", name)
		}
	})
	runtime.KeepAlive(r)
	allocated := float64(after.TotalAlloc-before.TotalAlloc) / float64(repeat)
	return []float64{micros(read), allocated / 1000, max(1, kept/1000), micros(found) / float64(len(names))}, live.Close()
}

const ruleText = `
rules:
- !SHARDING
  tables: {t_order: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}}
  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: 1, layout: 41-2-20}}}
`

// statements executes n different INSERTs in turn on one connection, with a driver that does
// nothing. It measures shardkey's own work.
func statements(n int) ([]float64, error) {
	r, err := rule.Parse("growth.yaml", []byte(ruleText))
	if err != nil {
		return nil, err
	}
	queries := make([]string, n)
	for i := range queries {
		queries[i] = fmt.Sprintf("INSERT INTO t_order (user_id, amount, column_%06d) VALUES (?, ?, NULL)", i)
	}
	empty := heap()
	connector, err := shardkey.NewConnector(idle{}, r, shardkey.Config{Server: "mysql"})
	if err != nil {
		return nil, err
	}
	defer connector.Close()
	ctx := context.Background()
	c, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	args := []driver.NamedValue{{Ordinal: 1, Value: int64(1)}, {Ordinal: 2, Value: int64(2)}}
	repeat := max(1, 10_000/n)
	took := best(3, func() {
		for range repeat {
			for _, query := range queries {
				if _, failed := c.(driver.ExecerContext).ExecContext(ctx, query, args); failed != nil {
					err = failed
				}
			}
		}
	})
	kept := heap() - empty
	runtime.KeepAlive(queries)
	return []float64{micros(took) / float64(n*repeat), max(1, kept/1000)}, err
}

// best returns the shortest time of several calls.
func best(repeat int, f func()) (least time.Duration) {
	for i := range repeat {
		start := time.Now()
		f()
		if d := time.Since(start); i == 0 || d < least {
			least = d
		}
	}
	return least
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// heap returns the memory in use after a garbage collection.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// idle is a driver whose connections answer immediately.
type idle struct{}

func (idle) Connect(context.Context) (driver.Conn, error) { return idle{}, nil }
func (idle) Driver() driver.Driver                        { return nil }
func (idle) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (idle) Close() error                                 { return nil }
func (idle) Begin() (driver.Tx, error)                    { return nil, driver.ErrSkip }
func (idle) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}
