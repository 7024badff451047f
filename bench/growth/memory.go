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

const ruleText = `
rules:
- !SHARDING
  tables: {t_order: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}}
  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: 1, layout: 41-2-20}}}
`

// tables reads rules that write out so many tables.
func tables(top int) (growth, error) {
	g := growth{title: "Tables in a rule", counted: "tables"}
	var read, allocated, kept, found line
	read.name, allocated.name, kept.name, found.name = "to read it, µs", "allocated, kB", "kept, kB", "to find a table, µs"
	for _, n := range counts(top) {
		var text strings.Builder
		text.WriteString("rules:\n- !SHARDING\n  tables:\n")
		for i := range n {
			fmt.Fprintf(&text, "    t_order_%06d:\n      actualDataNodes: ds_0.t_order_%06d\n      keyGenerateStrategy:\n        column: id\n        keyGeneratorName: uuid\n", i, i)
		}
		text.WriteString("  keyGenerators:\n    uuid: {type: UUID}\n")
		data := []byte(text.String())
		var r *rule.Rule
		var live *rule.Live
		var err error
		var before, after runtime.MemStats
		repeat := max(3, 300/n)
		empty := heap()
		runtime.ReadMemStats(&before)
		took := best(repeat, func() {
			if err == nil {
				r, err = rule.Parse("growth.yaml", data)
			}
		})
		runtime.ReadMemStats(&after)
		if err == nil {
			live, err = r.Open(spi.Host{})
		}
		if err != nil {
			return g, err
		}
		full := heap()
		names := make([]string, min(n, 1000))
		for i := range names {
			names[i] = fmt.Sprintf("t_order_%06d", i*(n/len(names)))
		}
		look := best(20, func() {
			for _, name := range names {
				live.Lookup("", name)
			}
		})
		x := float64(n)
		read.points = append(read.points, point{x, micros(took)})
		allocated.points = append(allocated.points, point{x, float64(after.TotalAlloc-before.TotalAlloc) / float64(repeat) / 1000})
		kept.points = append(kept.points, point{x, max(1, (full-empty)/1000)})
		found.points = append(found.points, point{x, micros(look) / float64(len(names))})
		if err := live.Close(); err != nil {
			return g, err
		}
		runtime.KeepAlive(r)
	}
	g.lines = []line{read, allocated, kept, found}
	return g, nil
}

// best is the shortest of several times.
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

// texts executes so many different INSERTs in turn on one connection, over a base
// that does nothing: what is measured is the driver's own work.
func texts(top int) (growth, error) {
	g := growth{title: "Different texts on one connection", counted: "texts"}
	var each, kept line
	each.name, kept.name = "an INSERT, µs", "kept, kB"
	r, err := rule.Parse("growth.yaml", []byte(ruleText))
	if err != nil {
		return g, err
	}
	args := []driver.NamedValue{{Ordinal: 1, Value: int64(1)}, {Ordinal: 2, Value: int64(2)}}
	ctx := context.Background()
	for _, n := range counts(top) {
		queries := make([]string, n)
		for i := range queries {
			queries[i] = fmt.Sprintf("INSERT INTO t_order (user_id, amount, column_%06d) VALUES (?, ?, NULL)", i)
		}
		empty := heap()
		connector, err := shardkey.NewConnector(idle{}, r, shardkey.Config{Server: "mysql"})
		if err != nil {
			return g, err
		}
		c, err := connector.Connect(ctx)
		if err != nil {
			return g, err
		}
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
		if err != nil {
			return g, err
		}
		x := float64(n)
		each.points = append(each.points, point{x, micros(took) / float64(n*repeat)})
		kept.points = append(kept.points, point{x, max(1, (heap()-empty)/1000)})
		if err := c.Close(); err != nil {
			return g, err
		}
		if err := connector.Close(); err != nil {
			return g, err
		}
		runtime.KeepAlive(queries)
	}
	g.lines = []line{each, kept}
	return g, nil
}

// idle is a base whose connections answer at once.
type idle struct{}

func (idle) Connect(context.Context) (driver.Conn, error) { return idle{}, nil }
func (idle) Driver() driver.Driver                        { return nil }
func (idle) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (idle) Close() error                                 { return nil }
func (idle) Begin() (driver.Tx, error)                    { return nil, driver.ErrSkip }
func (idle) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}
