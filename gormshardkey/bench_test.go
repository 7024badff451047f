package gormshardkey_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/gormshardkey"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

const benchRule = `
rules:
- !SHARDING
  tables: {tags: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 1, layout: 41-2-20, max-vibration-offset: 0}}
`

// BenchmarkCreate measures the plugin's own work, with a server that does nothing: the median
// difference between a Create with the plugin and the next one without it. ns/op is of the pair.
func BenchmarkCreate(b *testing.B) {
	for _, rows := range []int{1, 100} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			with, without := benchCreate(b, rows, gormshardkey.Plugin{}), benchCreate(b, rows)
			var took []time.Duration
			for b.Loop() {
				took = append(took, timed(with)-timed(without))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "plugin-ns/op")
			b.ReportMetric(testing.AllocsPerRun(100, with)-testing.AllocsPerRun(100, without), "plugin-allocs/op")
		})
	}
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// benchCreate returns a function that creates rows with GORM.
func benchCreate(b *testing.B, rows int, options ...gorm.Option) func() {
	b.Helper()
	r := must.Get(rule.Parse("bench", []byte(benchRule)))(b)
	connector := must.Get(driver.NewConnector(idleServer{rows: int64(rows)}, r, driver.Config{Server: "mysql"}))(b)
	dialector := mysql.New(mysql.Config{Conn: sql.OpenDB(connector), SkipInitializeWithVersion: true})
	config := &gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: true}
	db := must.Get(gorm.Open(dialector, append([]gorm.Option{config}, options...)...))(b)
	b.Cleanup(func() { _ = connector.Close() })
	created := make([]Tag, rows)
	return func() {
		for i := range created {
			created[i].ID = 0
		}
		if err := db.Create(&created).Error; err != nil || created[rows-1].ID == 0 {
			b.Fatal(err, created[rows-1].ID)
		}
	}
}

// idleServer inserts rows by each statement without doing anything.
type idleServer struct{ rows int64 }

func (s idleServer) Connect(context.Context) (sqldriver.Conn, error) { return s, nil }
func (s idleServer) Driver() sqldriver.Driver                        { return nil }
func (s idleServer) Prepare(string) (sqldriver.Stmt, error)          { return nil, sqldriver.ErrSkip }
func (s idleServer) Begin() (sqldriver.Tx, error)                    { return nil, sqldriver.ErrSkip }
func (s idleServer) Close() error                                    { return nil }
func (s idleServer) LastInsertId() (int64, error)                    { return 1, nil }
func (s idleServer) RowsAffected() (int64, error)                    { return s.rows, nil }
func (s idleServer) ExecContext(context.Context, string, []sqldriver.NamedValue) (sqldriver.Result, error) {
	return s, nil
}

func (s idleServer) QueryContext(context.Context, string, []sqldriver.NamedValue) (sqldriver.Rows, error) {
	return nil, sqldriver.ErrSkip
}

func (s idleServer) PrepareContext(context.Context, string) (sqldriver.Stmt, error) {
	return nil, sqldriver.ErrSkip
}

func (s idleServer) BeginTx(context.Context, sqldriver.TxOptions) (sqldriver.Tx, error) {
	return nil, sqldriver.ErrSkip
}
