package debug_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"

	shardkey "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/rule"
)

// base is a server that takes everything.
type base struct{}

func (base) Connect(context.Context) (driver.Conn, error) { return conn{}, nil }
func (base) Driver() driver.Driver                        { return nil }

type conn struct{}

func (conn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not prepared") }
func (conn) Close() error                        { return nil }
func (conn) Begin() (driver.Tx, error)           { return nil, errors.New("no transaction") }

// fake is a generator whose health is what a test says.
type fake struct {
	health atomic.Pointer[spi.Health]
	issued atomic.Int64
}

func (f *fake) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	return spi.BoxedKeys(ctx, f, column, n)
}

func (f *fake) GenerateInt64Keys(_ context.Context, _ spi.Column, keys []int64) error {
	h := f.health.Load()
	if h != nil && h.Err != nil && h.LeaseLimit.Before(time.Now()) && (h.SegmentLeft == nil || *h.SegmentLeft == 0) {
		return h.Err
	}
	for i := range keys {
		keys[i] = f.issued.Add(1)
	}
	return nil
}

func (f *fake) Health() spi.Health {
	var h spi.Health
	if set := f.health.Load(); set != nil {
		h = *set
	}
	h.Issued = f.issued.Load()
	return h
}

// set changes the health.
func (f *fake) set(h spi.Health) { f.health.Store(&h) }

type described struct {
	*fake
	text string
}

func (d described) Describe() string { return d.text }

// world is a connector whose generators are as a test says: leased and segment are
// fakes, snowflake is a real one of worker id 6.
type world struct {
	connector       *shardkey.Connector
	leased, segment *fake
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOf(t, "t_order", "leased")
}

// newWorldOf names a table and a generator.
func newWorldOf(t testing.TB, table, generator string) *world {
	t.Helper()
	w := &world{leased: new(fake), segment: new(fake)}
	key := func(column, generator string) rule.KeyConfig {
		return rule.KeyConfig{Column: column, Generator: generator}
	}
	r, err := rule.New(rule.Config{
		Tables: []rule.TableConfig{
			{Name: table, ActualDataNodes: "ds_${0..1}.t_order_${0..7}", KeyConfig: key("order_id", generator)},
			{Name: "t_user", ActualDataNodes: "ds.t_user_${0..3}", KeyConfig: key("user_id", "snowflake"),
				TableStrategy: rule.StrategyConfig{Columns: []string{"user_id"}, Type: "MOD", Props: rule.Props{"sharding-count": 4}}},
			{Name: "t_invoice", KeyConfig: key("id", "segment")},
			{Name: "t_token", KeyConfig: key("id", "uuid")},
		},
		Generators: map[string]rule.GeneratorConfig{
			generator:   {Generator: described{w.leased, "SNOWFLAKE 41-10-12 (time-worker-sequence bits), worker 17 of SQL shardkey_worker at db1:3306, lease 10s"}},
			"segment":   {Generator: described{w.segment, `LEAF_SEGMENT "invoice", leaf_alloc at db1:3306, step 2000 in 1000..100000`}},
			"snowflake": {Type: "SNOWFLAKE", Props: rule.Props{"worker-id": 6}},
			"uuid":      {Type: "UUID", Props: rule.Props{"version": 7}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.connector, err = shardkey.NewConnector(base{}, r, shardkey.Config{Server: "other"},
		shardkey.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.connector.Close() })
	w.well(time.Now())
	return w
}

// well makes everything as it should be.
func (w *world) well(now time.Time) {
	w.leased.set(spi.Health{WorkerID: new(int64(17)), LeaseLimit: now.Add(8200 * time.Millisecond), LeaseLength: 10 * time.Second, LeaseRenewals: new(int64(4711)), Waits: new(int64(3)), Waited: 2 * time.Millisecond})
	w.segment.set(spi.Health{SegmentLeft: new(int64(1240)), SegmentSize: 2000, Fetches: new(int64(312)), FetchTime: 1800 * time.Microsecond})
}

var errAway = fmt.Errorf("%w: SQL at db1:3306: connection refused", spi.ErrStore)

// storeAway makes the store of leases not answer, with so much of the lease left.
func (w *world) storeAway(now time.Time, left time.Duration) {
	w.leased.set(spi.Health{Err: errAway, WorkerID: new(int64(17)), LeaseLimit: now.Add(left), LeaseLength: 10 * time.Second, LeaseRenewals: new(int64(4711)),
		Errors: map[string]int64{"store": 3}, LastError: errAway, LastErrorTime: now.Add(-time.Second)})
}

// work makes some keys of each table.
func (w *world) work(t testing.TB, random *rand.Rand) {
	t.Helper()
	for _, table := range []string{"t_order_3", "t_user", "t_invoice", "t_token"} {
		_, _ = w.connector.NextKeys(t.Context(), table, 1+random.IntN(400))
	}
}
