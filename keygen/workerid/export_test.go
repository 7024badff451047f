package workerid

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	_ "github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/spi"
)

// These types are for the tests in package workerid_test, which import workeridtest. That package
// imports this one.
type (
	Assigner   = assigner
	Config     = config
	TableError = tableError
)

var (
	NewFileStore = newFileStore
	NewSQLStore  = newSQLStore
	TableDDL     = tableDDL
	ErrClock     = errClock
)

// Assign returns an assigner for a store, and closes it at the end of the test.
func Assign(t testing.TB, store Store, c Config) *Assigner {
	a := assign(store, c)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// Hooked is a store whose methods first call Before, and return its error.
type Hooked struct {
	Store
	Before func(ctx context.Context) error
}

func (s *Hooked) List(ctx context.Context) ([]Entry, error) {
	if err := s.Before(ctx); err != nil {
		return nil, err
	}
	return s.Store.List(ctx)
}

func (s *Hooked) Get(ctx context.Context, id int64) (Record, error) {
	if err := s.Before(ctx); err != nil {
		return Record{}, err
	}
	return s.Store.Get(ctx, id)
}

func (s *Hooked) CompareAndSet(ctx context.Context, id int64, prev, next Record) (bool, error) {
	if err := s.Before(ctx); err != nil {
		return false, err
	}
	return s.Store.CompareAndSet(ctx, id, prev, next)
}

func (s *Hooked) Close() error { return errors.Join(s.Before(context.Background()), s.Store.Close()) }

// assign returns an assigner for a store, with the optional methods that the store implements.
// Zero fields of the configuration have their default. With a fixedClock, leases aren't renewed in
// the background.
func assign(store Store, c config) *assigner {
	c.Namespace = cmp.Or(c.Namespace, defaultNamespace)
	c.Lease = cmp.Or(c.Lease, defaultLease)
	c.Renew = cmp.Or(c.Renew, renewFor(c.Lease))
	c.MaxClockAhead = cmp.Or(c.MaxClockAhead, defaultClockAhead)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Clock == nil {
		c.Clock = spi.SystemClock
	}
	a := newAssigner(store, infoOf(store), c)
	if _, fixed := c.Clock.(*fixedClock); fixed {
		a.renew = nil
	}
	return a
}

// Store returns the store of leases.
func (a *assigner) Store() Store { return a.store }

// Open returns a store in the form of NewAssigner's function.
func Open(store Store) (Store, Info) { return store, infoOf(store) }

func infoOf(store Store) Info {
	if s, ok := store.(interface{ info() Info }); ok {
		return s.info()
	}
	info := Info{Name: "TEST"}
	if s, ok := store.(interface {
		Now(ctx context.Context) (time.Time, error)
	}); ok {
		info.Now = s.Now
	}
	return info
}

// byHand returns a lease of worker ID 0 that isn't renewed in the background.
func byHand(t *testing.T, store Store, c config) (*assigner, *lease) {
	t.Helper()
	a := assign(store, c)
	a.renew = nil
	l := must.Get(a.acquire(t.Context(), 0))(t)
	return a, l
}

// Snowflake is a generator of type SNOWFLAKE or SNOWFLAKE_RING with leased worker IDs.
type Snowflake struct{ snowflakeGenerator }

type snowflakeGenerator interface {
	spi.Int64KeyGenerator
	spi.HealthReporter
	spi.ReadyReporter
	io.Closer
}

// NewSnowflake returns a generator whose ring has that many ticks.
func NewSnowflake(a spi.WorkerIDAssigner, host spi.Host, ring int, props map[string]any) (Snowflake, error) {
	typ, props := "SNOWFLAKE", maps.Clone(props)
	props["worker-id-assigner"] = "leases"
	if ring > 1 {
		typ, props["ring-size"] = "SNOWFLAKE_RING", strconv.Itoa(ring)
	}
	host.WorkerIDAssigner = func(string) (spi.WorkerIDAssigner, error) { return a, nil }
	p, err := spi.NewProps(props, host)
	if err != nil {
		return Snowflake{}, err
	}
	g, err := spi.NewKeyGenerator(typ, p)
	if err != nil {
		return Snowflake{}, err
	}
	return Snowflake{g.(snowflakeGenerator)}, nil
}

// Next returns a new key.
func (s Snowflake) Next(ctx context.Context) (int64, error) {
	var keys [1]int64
	err := s.GenerateInt64Keys(ctx, spi.Column{}, keys[:])
	return keys[0], err
}
