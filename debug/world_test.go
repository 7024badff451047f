package debug_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	shardkey "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// base is an underlying driver that the tests never call.
type base struct{}

func (base) Connect(context.Context) (driver.Conn, error) { return nil, errors.New("no server") }
func (base) Driver() driver.Driver                        { return nil }

// fake is a generator whose health and worker IDs the test sets.
type fake struct {
	health    atomic.Pointer[spi.Health]
	workerIDs func(context.Context) (spi.WorkerIDs, error)
}

func (f *fake) GenerateKeys(context.Context, spi.Column, int) ([]any, error) {
	return nil, errors.New("a fake")
}
func (f *fake) Health() spi.Health { return *f.health.Load() }
func (f *fake) ListWorkerIDs(ctx context.Context) (spi.WorkerIDs, error) {
	if f.workerIDs == nil {
		return spi.WorkerIDs{}, errors.ErrUnsupported
	}
	return f.workerIDs(ctx)
}
func (f *fake) Describe() string      { return "SNOWFLAKE 41-10-12, lease 10s" }
func (f *fake) set(health spi.Health) { f.health.Store(&health) }

// world is a connector with four generators: leased and segment are fakes, snowflake and uuid are
// real.
type world struct {
	connector       *shardkey.Connector
	leased, segment *fake
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOf(t, "t_order", "leased")
}

// newWorldOf returns a world with these names for a table and a generator.
func newWorldOf(t testing.TB, table, generator string) *world {
	t.Helper()
	w := &world{leased: new(fake), segment: new(fake)}
	key := func(column, generator string) rule.KeyConfig {
		return rule.KeyConfig{Column: column, Generator: generator}
	}
	byUser := rule.StrategyConfig{Columns: []string{"user_id"}, Type: "MOD", Props: rule.Props{"sharding-count": 4}}
	w.connector = connect(t, rule.Config{
		Tables: []rule.TableConfig{
			{Name: table, ActualDataNodes: "ds_${0..1}.t_order_${0..7}", KeyConfig: key("order_id", generator)},
			{Name: "t_user", ActualDataNodes: "ds.t_user_${0..3}", KeyConfig: key("user_id", "snowflake"),
				TableStrategy: byUser},
			{Name: "t_invoice", KeyConfig: key("id", "segment")},
			{Name: "t_token", KeyConfig: key("id", "uuid")},
		},
		Generators: map[string]rule.GeneratorConfig{
			generator: {Generator: w.leased}, "segment": {Generator: w.segment},
			"snowflake": {Type: "SNOWFLAKE", Props: rule.Props{"worker-id-assigner": "file"}}, "uuid": {Type: "UUID"},
		},
		WorkerIDAssigners: map[string]rule.WorkerIDAssignerConfig{"file": {Type: "FILE", Props: rule.Props{"path": t.TempDir()}}},
	})
	now := time.Now()
	w.leased.set(spi.Health{WorkerID: new(int64(17)), Lease: &spi.LeaseHealth{Limit: now.Add(time.Hour), Length: 2 * time.Hour}})
	w.segment.set(spi.Health{Segment: &spi.SegmentHealth{Left: new(int64(1240)), Size: 2000}})
	return w
}

// connect returns a connector for a rule.
func connect(t testing.TB, config rule.Config) *shardkey.Connector {
	t.Helper()
	r := must.Get(rule.New(config))(t)
	c := must.Get(shardkey.NewConnector(base{}, r, shardkey.Config{Server: "other"},
		shardkey.WithLogger(slog.New(slog.DiscardHandler))))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

var errAway = fmt.Errorf("%w: SQL at db1:3306: connection refused", spi.ErrStore)

// storeAway makes the store of leases unavailable, with the duration left until the lease ends.
func (w *world) storeAway(left time.Duration) {
	w.leased.set(spi.Health{Err: errAway, WorkerID: new(int64(17)),
		Lease:  &spi.LeaseHealth{Limit: time.Now().Add(left), Length: 10 * time.Second},
		Errors: map[string]int64{"store": 3}, LastError: errAway})
}
