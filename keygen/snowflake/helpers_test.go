package snowflake

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

const ms = time.Millisecond

var policies = []string{clockBackWait, clockBackBorrow, clockBackFail}

// handClock is a clock that a test sets. A sleep advances it. It fails a test that reads it
// endlessly.
type handClock struct {
	mu    sync.Mutex
	now   time.Time
	asked int
}

// mostAsked is a limit far above the number of readings in any test.
const mostAsked = 1 << 22

// ask counts a reading. The caller holds mu.
func (c *handClock) ask() {
	if c.asked++; c.asked > mostAsked {
		panic("the clock is asked for ever")
	}
}

func newHandClock() *handClock { return &handClock{now: DefaultEpoch.AddDate(10, 0, 0)} }

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ask()
	return c.now
}

func (c *handClock) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ask()
	c.now = c.now.Add(d)
	return nil
}

func (c *handClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fakeStore leases worker IDs with intervals, like the real stores: the end of a reservation only
// increases.
type fakeStore struct {
	clock    spi.Clock
	interval time.Duration

	mu       sync.Mutex
	reserved map[int64]int64      // worker ID to the first unreserved ms
	owner    map[int64]*fakeLease // nil if the worker ID is free
	err      error                // returned by the store
	acquired int
	first    int64         // the lowest worker ID
	delay    time.Duration // how far ahead of the clock leases may begin
	lazy     bool          // renewals succeed, and do nothing
}

func newFakeStore(clock spi.Clock) *fakeStore {
	return &fakeStore{clock: clock, interval: 10 * time.Second, reserved: map[int64]int64{}, owner: map[int64]*fakeLease{}}
}

func (s *fakeStore) AcquireWorkerID(ctx context.Context, most int64) (spi.WorkerIDLease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	for id := s.first; id <= most; id++ {
		if s.owner[id] == nil {
			s.acquired++
			l := &fakeLease{store: s, id: id, floor: s.reserved[id]}
			s.owner[id] = l
			l.reserve(max(l.floor, s.clock.Now().UnixMilli()) + s.interval.Milliseconds())
			return l, nil
		}
	}
	return nil, fmt.Errorf("all %d worker IDs are taken: %w", most+1, spi.ErrNoWorkerID)
}

func (s *fakeStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Health reports err.
func (s *fakeStore) Health() spi.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return spi.Health{Err: s.err}
}

// steal ends all leases, as if other processes had taken the worker IDs.
func (s *fakeStore) steal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.owner)
}

// lose ends a lease at once, like a lease whose record has disappeared.
func (s *fakeStore) lose(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner[id].limit.Store(0)
	s.owner[id] = nil
	s.first = id + 1
}

type fakeLease struct {
	store     *fakeStore
	id, floor int64
	limit     atomic.Int64
	lastUsed  int64
	renewals  int
}

func (l *fakeLease) WorkerID() int64 { return l.id }
func (l *fakeLease) Floor() int64    { return l.floor }
func (l *fakeLease) Limit() int64    { return l.limit.Load() }

func (l *fakeLease) Delay() time.Duration { return l.store.delay }

func (l *fakeLease) reserve(until int64) {
	until = max(until, l.store.reserved[l.id])
	l.store.reserved[l.id] = until
	l.limit.Store(until)
}

func (l *fakeLease) Renew(_ context.Context, until int64) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	switch {
	case l.store.err != nil:
		return l.store.err
	case l.store.owner[l.id] != l:
		return spi.ErrLeaseLost
	case l.store.lazy:
		return nil
	}
	l.renewals++
	l.reserve(until + 1)
	return nil
}

func (l *fakeLease) Release(_ context.Context, lastUsed int64) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	l.lastUsed = lastUsed
	if l.store.owner[l.id] == l {
		delete(l.store.owner, l.id)
		l.store.reserved[l.id] = max(l.floor, lastUsed+1) // the unused part becomes free
	}
	return l.store.err
}

func (l *fakeLease) Health() spi.Health {
	return spi.Health{Lease: &spi.LeaseHealth{Renewals: int64(l.renewals), Length: l.store.interval}}
}

var errAway = fmt.Errorf("connection refused: %w", spi.ErrStore)

type givenID int64

func (id givenID) AcquireWorkerID(context.Context, int64) (spi.WorkerIDLease, error) { return id, nil }
func (id givenID) WorkerID() int64                                                   { return int64(id) }
func (givenID) Floor() int64                                                         { return 0 }
func (givenID) Limit() int64                                                         { return math.MaxInt64 }
func (givenID) Renew(context.Context, int64) error                                   { return nil }
func (givenID) Release(context.Context, int64) error                                 { return nil }

// mustNew returns a generator. Zero fields of cfg have the defaults of a rule. An offset or
// tolerance of -1 means 0.
func mustNew(t testing.TB, cfg config) *generator {
	t.Helper()
	cfg.Layout = cfg.Layout.orDefault()
	if cfg.Epoch.IsZero() {
		cfg.Epoch = DefaultEpoch
	}
	if cfg.Clock == nil {
		cfg.Clock = spi.SystemClock
	}
	cfg.WorkerIDSet = cfg.WorkerIDSet || cfg.WorkerID != 0
	cfg.MaxVibrationOffset = max(0, cmp.Or(cfg.MaxVibrationOffset, min(1, cfg.Layout.maxSequence())))
	cfg.Tolerance = max(0, cmp.Or(cfg.Tolerance, defaultTolerance*ms))
	cfg.ClockBack, cfg.RingSize = cmp.Or(cfg.ClockBack, clockBackWait), cmp.Or(cfg.RingSize, 1)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	g := newGenerator(cfg)
	t.Cleanup(func() { must.Do(t, g.Close(), "Close") })
	return g
}

func mustKeys(t testing.TB, g *generator, n int) []int64 {
	t.Helper()
	keys := make([]int64, n)
	must.Do(t, g.GenerateInt64Keys(context.Background(), spi.Column{}, keys))
	return keys
}

// Next returns a new key.
func (g *generator) Next(ctx context.Context) (int64, error) {
	var keys [1]int64
	err := g.GenerateInt64Keys(ctx, spi.Column{}, keys[:])
	return keys[0], err
}

// partsOf decodes a generator's key.
func partsOf(t testing.TB, g *generator, key int64) spi.KeyParts {
	t.Helper()
	return must.Get(g.DecodeKey(key))(t)
}

// compose returns the key that [Decode] decodes to these parts.
func compose(l Layout, at time.Time, worker, sequence int64) int64 {
	l = l.orDefault()
	return int64(at.Sub(DefaultEpoch)/l.Tick)<<(l.WorkerBits+l.SequenceBits) | worker<<l.SequenceBits | sequence
}

// soak returns how long part of a test repeats: 0, or a sixth of SHARDKEY_SOAK.
func soak(t testing.TB) time.Duration {
	text := os.Getenv("SHARDKEY_SOAK")
	if text == "" {
		return 0
	}
	d := must.Get(time.ParseDuration(text))(t, "SHARDKEY_SOAK")
	return d / 6
}

// fixed returns a generator with a configured worker ID, 0 unless cfg has one.
func fixed(t testing.TB, cfg config) (*generator, *handClock) {
	t.Helper()
	clock := newHandClock()
	cfg.Clock, cfg.WorkerIDSet = clock, true
	return mustNew(t, cfg), clock
}

// leased returns a generator that leases its worker ID from a store, with the first key.
func leased(t testing.TB, cfg config) (*generator, *handClock, *fakeStore) {
	t.Helper()
	clock := newHandClock()
	store := newFakeStore(clock)
	cfg.Clock, cfg.Assigner = clock, store
	return mustNew(t, cfg), clock, store
}
