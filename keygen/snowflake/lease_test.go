package snowflake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// fakeStore grants worker ids with intervals, as the real stores do: what is
// reserved only rises.
type fakeStore struct {
	clock    spi.Clock
	interval time.Duration

	mu       sync.Mutex
	reserved map[int64]int64      // worker id → first ms that nobody has
	owner    map[int64]*fakeLease // nil when free
	err      error                // what the store answers
	acquired int
	first    int64 // worker ids begin here
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
	return nil, fmt.Errorf("all %d worker ids are taken: %w", most+1, spi.ErrNoWorkerID)
}

func (s *fakeStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Health says what the store answers.
func (s *fakeStore) Health() spi.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return spi.Health{Err: s.err}
}

// steal gives the worker ids to nobody, as if their owners had been given up.
func (s *fakeStore) steal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.owner)
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
		l.store.reserved[l.id] = max(l.floor, lastUsed+1) // what was not used is free
	}
	return l.store.err
}

func (l *fakeLease) Health() spi.Health {
	return spi.Health{LeaseRenewals: new(int64(l.renewals)), LeaseLength: l.store.interval}
}

var errAway = fmt.Errorf("connection refused: %w", spi.ErrStore)

func TestHealth_saysWhyThereIsNoWorkerID(t *testing.T) {
	clock := newHandClock()
	store := newFakeStore(clock)
	store.fail(errAway)
	g := mustNew(t, config{Clock: clock, Assigner: store})
	if _, err := g.Next(t.Context()); err == nil {
		t.Fatal("a key without a worker id")
	}
	if h := g.Health(); !errors.Is(h.Err, errAway) || h.WorkerID != nil {
		t.Errorf("\nhave: %+v\nwant: %v", h, errAway)
	}
	store.fail(nil)
	mustKeys(t, g, 1)
	if h := g.Health(); h.Err != nil {
		t.Errorf("\nhave: %v\nwant: no error, as there is a worker id", h.Err)
	}
}

// The figures of leases are those of a leased worker id.
func TestHealth_hasTheFiguresThatApply(t *testing.T) {
	clock := newHandClock()
	for want, cfg := range map[string]config{
		`{"issued":1,"waits":0,"borrowedSeconds":0,"clockSteps":0,"workerId":5}`: {WorkerID: 5},
		`{"issued":1,"waits":1,"borrowedSeconds":0,"clockSteps":0,"workerId":6}`: {Assigner: givenID(6)},
		`{"issued":1,"waits":1,"borrowedSeconds":0,"clockSteps":0,"workerId":0,` +
			`"leaseLimit":"2026-11-01T00:00:10Z","leaseSeconds":10,"leaseRenewals":0,"leasesLost":0}`: {Assigner: newFakeStore(clock)},
	} {
		cfg.Clock = clock
		g := mustNew(t, cfg)
		mustKeys(t, g, 1)
		if have, err := json.Marshal(g.Health()); err != nil || string(have) != want {
			t.Errorf("\nhave: %s, %v\nwant: %s", have, err, want)
		}
	}
}

func TestLease_beginsAtTheFirstKey(t *testing.T) {
	clock := newHandClock()
	store := newFakeStore(clock)
	g := mustNew(t, config{Clock: clock, Assigner: store})
	if h := g.Health(); store.acquired != 0 || h.WorkerID != nil || len(h.Warnings) != 0 {
		t.Errorf("\nhave: %d acquired, %+v\nwant: nothing yet", store.acquired, h)
	}
	mustKeys(t, g, 5)
	want := clock.Now().Add(store.interval)
	if h := g.Health(); store.acquired != 1 || *h.WorkerID != 0 || !h.LeaseLimit.Equal(want) || h.LeaseLength != store.interval {
		t.Errorf("\nhave: %+v\nwant: worker 0, limit %v, length %v", h, want, store.interval)
	}
}

// A crashed holder's interval reaches ahead of the clock: its successor begins
// after it immediately, at the clock's rate.
func TestLease_floor(t *testing.T) {
	for _, ring := range []int{1, 200} {
		for _, policy := range []clockBack{clockBackWait, clockBackBorrow, clockBackFail} {
			clock := newHandClock()
			store := newFakeStore(clock)
			store.reserved[0] = clock.Now().Add(10 * time.Second).UnixMilli()
			g := mustNew(t, config{Clock: clock, Assigner: store, ClockBack: policy, RingSize: ring})
			start := clock.Now()
			for i, key := range mustKeys(t, g, 3*4096) {
				if parts, err := g.DecodeKey(key); err != nil || parts.Time.UnixMilli() < start.Add(10*time.Second).UnixMilli() {
					t.Fatalf("key %d\nhave: a key of %v (%v)\nwant: none below the floor", i, parts.Time, err)
				}
			}
			if have := clock.Now().Sub(start); have != 2*ms {
				t.Errorf("ring %d\nhave: waited %v for three ticks\nwant: 2ms", ring, have)
			}
			clock.step(20 * time.Second)
			if parts, _ := g.DecodeKey(mustKeys(t, g, 1)[0]); !parts.Time.Equal(clock.Now()) {
				t.Errorf("ring %d\nhave: a key of %v\nwant: one of %v", ring, parts.Time, clock.Now())
			}
		}
	}
}

// A floor far ahead is not a crash but a wrong clock: such a worker id is kept only
// where keys may be of any time.
func TestLease_floorFarAhead(t *testing.T) {
	for _, policy := range []clockBack{clockBackWait, clockBackBorrow, clockBackFail} {
		clock := newHandClock()
		store := newFakeStore(clock)
		floor := clock.Now().Add(time.Hour)
		store.reserved[0] = floor.UnixMilli()
		g := mustNew(t, config{Clock: clock, Assigner: store, ClockBack: policy})
		key, err := g.Next(context.Background())
		if policy != clockBackBorrow {
			var start *startError
			if !errors.As(err, &start) || !errors.Is(err, spi.ErrNoWorkerID) || errors.Is(err, spi.ErrClockBack) ||
				!start.Start.Equal(floor) || !start.Now.Equal(clock.Now()) || start.WorkerID != 0 {
				t.Errorf("%v\nhave: %v\nwant: a startError", policy, err)
			}
			if store.owner[0] != nil || store.reserved[0] != floor.UnixMilli() {
				t.Errorf("%v\nhave: worker id 0 is kept\nwant: it is given back as it was", policy)
			}
			store.first = 1
			if key := mustKeys(t, g, 1)[0]; key>>12&1023 != 1 {
				t.Errorf("%v: worker of the next key\nhave: %d\nwant: 1", policy, key>>12&1023)
			}
			continue
		}
		if parts, _ := g.DecodeKey(key); err != nil || parts.Time.Before(floor) {
			t.Errorf("%v\nhave: a key of %v (%v)\nwant: one at the floor", policy, parts.Time, err)
		}
	}
}

func TestLease_limit(t *testing.T) {
	for _, cfg := range []config{{}, {RingSize: 200}, {Layout: JS53}, {Layout: Layout{TimeBits: 35, WorkerBits: 8, SequenceBits: 10, Tick: 700 * ms}}} {
		clock := newHandClock()
		store := newFakeStore(clock)
		cfg.Clock, cfg.Assigner = clock, store
		g := mustNew(t, cfg)
		mustKeys(t, g, 1)
		lease := store.owner[0]

		store.fail(errAway)
		clock.now = time.UnixMilli(lease.Limit()).Add(-2 * cfg.Layout.orDefault().Tick)
		key := mustKeys(t, g, 1)[0] // the lease still stands
		clock.now = time.UnixMilli(lease.Limit())
		_, err := g.Next(context.Background())
		var limit *leaseError
		if !errors.As(err, &limit) || !errors.Is(err, spi.ErrLeaseLimit) || !errors.Is(err, spi.ErrStore) {
			t.Fatalf("%v\nhave: %v\nwant: a leaseError with the store's error", cfg.Layout, err)
		}
		if h := g.Health(); h.Err == nil || h.Errors["lease-limit"] != 1 {
			t.Errorf("\nhave: %+v\nwant: bad health, one lease-limit error", h)
		}

		store.fail(nil)
		next := mustKeys(t, g, 1)[0]
		if h := g.Health(); next <= key || *h.WorkerID != 0 || *h.LeaseRenewals != 1 || h.Err != nil {
			t.Errorf("\nhave: %d, %+v\nwant: a later key of the same worker, renewed", next, h)
		}
		parts, _ := g.DecodeKey(next)
		if end := parts.Time.Add(cfg.Layout.orDefault().Tick); end.UnixMilli() > lease.Limit() {
			t.Errorf("\nhave: a tick until %v\nwant: until the limit %v", end, time.UnixMilli(lease.Limit()))
		}
	}
}

func TestLease_lost(t *testing.T) {
	clock := newHandClock()
	store := newFakeStore(clock)
	g := mustNew(t, config{Clock: clock, Assigner: store})
	before := mustKeys(t, g, 1)[0]
	store.steal()
	store.first = 7
	mustKeys(t, g, 1) // its own interval is still its own
	clock.step(store.interval)
	after := mustKeys(t, g, 1)[0]
	if h := g.Health(); *h.WorkerID != 7 || *h.LeasesLost != 1 || after <= before || h.Issued != 3 {
		t.Errorf("\nhave: %+v\nwant: worker 7, one lease lost, 3 issued", h)
	}

	store.steal()
	store.first = 2000 // none free
	clock.step(store.interval)
	_, err := g.Next(context.Background())
	for _, want := range []error{spi.ErrLeaseLimit, spi.ErrLeaseLost, spi.ErrNoWorkerID} {
		if !errors.Is(err, want) {
			t.Errorf("\nhave: %v\nwant: %v in its chain", err, want)
		}
	}
}

func TestLease_isReleasedWithTheLastTime(t *testing.T) {
	for _, tt := range []struct {
		layout Layout
		keys   int
		want   time.Duration // behind the beginning of the clock's second
	}{
		{Classic, 1, 0},
		{Classic, 4097, 1 * ms},
		{Classic, 0, -1},
		{JS53, 1, 999 * ms},
		{Layout{TimeBits: 44, SequenceBits: 8, WorkerBits: 2, Tick: 100 * time.Microsecond}, 257, 0},
	} {
		clock := newHandClock()
		store := newFakeStore(clock)
		start := clock.Now()
		g := mustNew(t, config{Layout: tt.layout, Clock: clock, Assigner: store, MaxVibrationOffset: -1})
		for range tt.keys {
			mustKeys(t, g, 1)
		}
		lease := store.owner[0]
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		want := start.Add(tt.want).UnixMilli()
		if tt.keys == 0 {
			if lease != nil {
				t.Error("a lease without a key")
			}
			continue
		}
		if lease.lastUsed != want || store.owner[0] != nil {
			t.Errorf("%v\nhave: released with %d\nwant: %d", tt.layout, lease.lastUsed, want)
		}
	}
}

// A caller that is in the middle of a reservation when the lease is released
// gets nothing: the next holder begins right after the last time used.
func TestLease_releaseEndsTheState(t *testing.T) {
	for _, ring := range []int{1, 200} {
		clock := newHandClock()
		g := mustNew(t, config{Clock: clock, Assigner: newFakeStore(clock), RingSize: ring, Layout: Layout{TimeBits: 44}})
		mustKeys(t, g, 1)
		late := g.slot.Load()
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		clock.step(ms)
		if start, _, v := g.take(late, request{now: g.clock.Now(), n: 1}); v != ended {
			t.Errorf("ring %d\nhave: position %d, verdict %d\nwant: ended", ring, start, v)
		}
	}
}

func TestLease_acquireFails(t *testing.T) {
	clock := newHandClock()
	store := newFakeStore(clock)
	store.fail(errAway)
	g := mustNew(t, config{Clock: clock, Assigner: store})
	for range 2 {
		if _, err := g.Next(context.Background()); !errors.Is(err, spi.ErrStore) || !strings.HasPrefix(err.Error(), "shardkey: SNOWFLAKE") {
			t.Errorf("\nhave: %v\nwant: the store's error", err)
		}
	}
	store.fail(nil)
	mustKeys(t, g, 1)

	store.first = 1000
	small := mustNew(t, config{Layout: JS53, Clock: clock, Assigner: store})
	if _, err := small.Next(context.Background()); !errors.Is(err, spi.ErrNoWorkerID) {
		t.Errorf("\nhave: %v\nwant: %v", err, spi.ErrNoWorkerID)
	}
	foreign := mustNew(t, config{Layout: JS53, Clock: clock, Assigner: foreignID{store}})
	if _, err := foreign.Next(context.Background()); err == nil || !strings.Contains(err.Error(), "1000, which is not in 0..15") {
		t.Errorf("\nhave: %v\nwant: worker id 1000 is refused", err)
	}
}

// foreignID ignores the highest worker id that it is asked for.
type foreignID struct{ *fakeStore }

func (f foreignID) AcquireWorkerID(ctx context.Context, _ int64) (spi.WorkerIDLease, error) {
	return f.fakeStore.AcquireWorkerID(ctx, 1<<20)
}

// slowStore answers after a second, as long as the caller waits for it.
type slowStore struct {
	*fakeStore
	calls atomic.Int64
}

func (s *slowStore) AcquireWorkerID(ctx context.Context, most int64) (spi.WorkerIDLease, error) {
	s.calls.Add(1)
	select {
	case <-time.After(time.Second):
		return s.fakeStore.AcquireWorkerID(ctx, most)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestLease_oneCallerAcquiresForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{fakeStore: newFakeStore(spi.SystemClock)}
		g := mustNew(t, config{Assigner: store, Epoch: bubbleEpoch})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { mustKeys(t, g, 1) })
		}
		wg.Wait()
		if have := store.calls.Load(); have != 1 {
			t.Errorf("\nhave: %d calls\nwant: 1", have)
		}
	})
}

// The caller that asks the store goes away: another one asks in its place.
func TestLease_acquireOutlivesTheFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{fakeStore: newFakeStore(spi.SystemClock)}
		g := mustNew(t, config{Assigner: store, Epoch: bubbleEpoch})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second/2)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := g.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("\nhave: %v\nwant: deadline exceeded", err)
			}
		})
		synctest.Wait()
		for range 10 {
			wg.Go(func() { mustKeys(t, g, 1) })
		}
		wg.Wait()
		if have := store.calls.Load(); have != 2 {
			t.Errorf("\nhave: %d calls\nwant: 2", have)
		}
	})
}

func TestLease_closeDuringAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{fakeStore: newFakeStore(spi.SystemClock)}
		g := mustNew(t, config{Assigner: store, Epoch: bubbleEpoch})
		done := make(chan error)
		go func() {
			_, err := g.Next(context.Background())
			done <- err
		}()
		synctest.Wait()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, spi.ErrClosed) {
			t.Errorf("\nhave: %v\nwant: %v", err, spi.ErrClosed)
		}
		synctest.Wait()
		if len(store.owner) != 0 {
			t.Error("a lease is left over")
		}
	})
}

// Holders that pause, crash, close and lose their lease, each with a clock of
// its own that steps: no key twice among them all.
func TestSoak_leaseModel(t *testing.T) {
	rounds, until := uint64(300), time.Now().Add(soak(t))
	for seed := uint64(0); seed < rounds || time.Now().Before(until); seed++ {
		rnd := rand.New(rand.NewPCG(seed, 3))
		cfg := config{
			Layout:    []Layout{Classic, {TimeBits: 36, WorkerBits: 2, SequenceBits: 3, Tick: 30 * ms}}[rnd.IntN(2)],
			ClockBack: clockBack(rnd.IntN(3)),
			RingSize:  []int{1, 50}[rnd.IntN(2)],
		}
		if err := runLeaseModel(t, rnd, cfg); err != nil {
			t.Fatalf("seed %d, %+v\nhave: %v\nwant: every key once", seed, cfg, err)
		}
	}
}

func runLeaseModel(t *testing.T, rnd *rand.Rand, cfg config) error {
	store := newFakeStore(newHandClock())
	store.interval = 100 * ms
	type process struct {
		g     *generator
		clock *handClock
	}
	processes := make([]process, 3)
	start := func() process {
		c := cfg
		clock := newHandClock()
		clock.step(time.Duration(rnd.IntN(2000)) * ms)
		c.Clock, c.Assigner = clock, &skewed{store, clock}
		return process{mustNew(t, c), clock}
	}
	for i := range processes {
		processes[i] = start()
	}
	seen := map[int64]bool{}
	for range 200 {
		p := &processes[rnd.IntN(len(processes))]
		switch rnd.IntN(16) {
		case 0:
			if err := p.g.Close(); err != nil && !errors.Is(err, errAway) {
				return err
			}
			*p = start()
		case 1: // a crash: nothing is released, somebody else takes the id
			store.steal()
		case 2:
			p.clock.step(time.Duration(rnd.IntN(400)-200) * ms)
		case 3:
			store.fail(errAway)
		case 4, 5:
			store.fail(nil)
		case 6, 7, 8:
			p.clock.step(time.Duration(rnd.IntN(30)) * ms)
		default:
			err := takeModel(p.g, 1+rnd.IntN(9)*rnd.IntN(2), seen)
			if err != nil && !errors.Is(err, spi.ErrClockBack) && !errors.Is(err, spi.ErrStore) && !errors.Is(err, spi.ErrNoWorkerID) {
				return err
			}
		}
	}
	store.fail(nil)
	return nil
}

// skewed is the store as a process with another clock sees it.
type skewed struct {
	*fakeStore
	clock spi.Clock
}

func (s *skewed) AcquireWorkerID(ctx context.Context, most int64) (spi.WorkerIDLease, error) {
	s.mu.Lock()
	s.fakeStore.clock = s.clock
	s.mu.Unlock()
	return s.fakeStore.AcquireWorkerID(ctx, most)
}

// A worker id without limit, as STATIC gives it, shares the process's state.
func TestLease_unlimitedWorkerIDSharesState(t *testing.T) {
	clock := newHandClock()
	given := mustNew(t, config{Clock: clock, Assigner: givenID(3), RingSize: 20})
	static := mustNew(t, config{Clock: clock, WorkerID: 3, RingSize: 20})
	seen := map[int64]bool{}
	for range 100 {
		for _, g := range []*generator{given, static} {
			if err := takeModel(g, 3, seen); err != nil {
				t.Fatal(err)
			}
		}
	}
	if h := given.Health(); *h.WorkerID != 3 || !h.LeaseLimit.IsZero() {
		t.Errorf("\nhave: %+v\nwant: worker 3 without a limit", h)
	}
}

type givenID int64

func (id givenID) AcquireWorkerID(context.Context, int64) (spi.WorkerIDLease, error) { return id, nil }
func (id givenID) WorkerID() int64                                                   { return int64(id) }
func (givenID) Floor() int64                                                         { return 0 }
func (givenID) Limit() int64                                                         { return math.MaxInt64 }
func (givenID) Renew(context.Context, int64) error                                   { return nil }
func (givenID) Release(context.Context, int64) error                                 { return nil }
