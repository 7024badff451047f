package snowflake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

func TestLease_beginsAtTheFirstKey(t *testing.T) {
	g, clock, store := leased(t, config{})
	if h := g.Health(); store.acquired != 0 || h.WorkerID != nil || len(h.Warnings) != 0 {
		t.Errorf("\nhave: %d acquired, %+v\nwant: nothing yet", store.acquired, h)
	}
	mustKeys(t, g, 5)
	want := clock.Now().Add(store.interval)
	if h := g.Health(); store.acquired != 1 || *h.WorkerID != 0 || !h.Lease.Limit.Equal(want) || h.Lease.Length != store.interval {
		t.Errorf("\nhave: %+v\nwant: worker 0, limit %v, length %v", h, want, store.interval)
	}
}

// A crashed holder has reserved an interval ahead of the clock. Its successor begins after it
// immediately, at the clock's rate.
func TestLease_floor(t *testing.T) {
	for _, ring := range []int{1, 200} {
		for _, policy := range policies {
			g, clock, store := leased(t, config{ClockBack: policy, RingSize: ring})
			start := clock.Now()
			floor := start.Add(10 * time.Second)
			store.reserved[0] = floor.UnixMilli()
			for i, key := range mustKeys(t, g, 3*4096) {
				if at := partsOf(t, g, key).Time; at.Before(floor) {
					t.Fatalf("key %d\nhave: a key of %v\nwant: none below the floor", i, at)
				}
			}
			must.Equal(t, clock.Now().Sub(start), 2*ms, "waited for three ticks")
			clock.step(20 * time.Second)
			if at := partsOf(t, g, mustKeys(t, g, 1)[0]).Time; !at.Equal(clock.Now()) {
				t.Errorf("ring %d\nhave: a key of %v\nwant: one of %v", ring, at, clock.Now())
			}
		}
	}
}

func TestLease_limit(t *testing.T) {
	for _, cfg := range []config{{}, {RingSize: 200}, {Layout: js53}, {Layout: Layout{TimeBits: 35, WorkerBits: 8, SequenceBits: 10, Tick: 700 * ms}}} {
		g, clock, store := leased(t, cfg)
		mustKeys(t, g, 1)
		lease := store.owner[0]

		store.fail(errAway)
		clock.now = time.UnixMilli(lease.Limit()).Add(-2 * g.cfg.Layout.Tick)
		key := mustKeys(t, g, 1)[0] // the lease is still valid
		clock.now = time.UnixMilli(lease.Limit())
		_, err := g.Next(t.Context())
		end := "ended at " + stamp(DefaultEpoch.Add(clock.now.Sub(DefaultEpoch).Truncate(g.cfg.Layout.Tick)))
		if h := g.Health(); !errors.Is(err, spi.ErrLeaseLimit) || !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), end) || h.Err == nil || h.Errors["lease-limit"] != 1 {
			t.Fatalf("%v\nhave: %v, %+v\nwant: ErrLeaseLimit with the store's error, in health too", cfg.Layout, err, h)
		}

		lease.limit.Add(2 * g.cfg.Layout.Tick.Milliseconds()) // renewed in the background
		mustKeys(t, g, 1)
		clock.now = time.UnixMilli(lease.Limit())
		store.fail(nil)
		next := mustKeys(t, g, 1)[0]
		if h := g.Health(); next <= key || *h.WorkerID != 0 || h.Lease.Renewals != 1 || h.Err != nil {
			t.Errorf("\nhave: %d, %+v\nwant: a later key of the same worker, renewed", next, h)
		}
		if end := partsOf(t, g, next).Time.Add(g.cfg.Layout.Tick); end.UnixMilli() > lease.Limit() {
			t.Errorf("\nhave: a tick until %v\nwant: until the limit %v", end, time.UnixMilli(lease.Limit()))
		}
	}
}

func TestLease_lost(t *testing.T) {
	g, clock, store := leased(t, config{})
	before := mustKeys(t, g, 1)[0]
	store.steal()
	store.first = 7
	mustKeys(t, g, 1) // it may still use its own interval
	clock.step(store.interval)
	after := mustKeys(t, g, 1)[0]
	if h := g.Health(); *h.WorkerID != 7 || h.Lease.Lost != 1 || after <= before || h.Issued != 3 {
		t.Errorf("\nhave: %+v\nwant: worker 7, one lease lost, 3 issued", h)
	}

	store.steal()
	store.first = 2000 // no worker ID is free
	clock.step(store.interval)
	_, err := g.Next(context.Background())
	for _, want := range []error{spi.ErrLeaseLimit, spi.ErrLeaseLost, spi.ErrNoWorkerID} {
		must.Is(t, err, want)
	}
}

func TestLease_isReleasedWithTheLastTime(t *testing.T) {
	for _, tt := range []struct {
		layout Layout
		keys   int
		want   time.Duration // after the beginning of the clock's second
	}{
		{Classic, 1, 0},
		{Classic, 4096, 0},
		{Classic, 4097, 1 * ms},
		{js53, 1, 999 * ms},
		{Layout{TimeBits: 44, SequenceBits: 8, WorkerBits: 2, Tick: 100 * time.Microsecond}, 257, 0},
	} {
		g, clock, store := leased(t, config{Layout: tt.layout, MaxVibrationOffset: -1})
		start := clock.Now()
		for range tt.keys {
			mustKeys(t, g, 1)
		}
		lease := store.owner[0]
		must.Do(t, g.Close(), "close")
		if want := start.Add(tt.want).UnixMilli(); lease.lastUsed != want || store.owner[0] != nil {
			t.Errorf("%v\nhave: released with %d\nwant: %d", tt.layout, lease.lastUsed, want)
		}
	}
}

// A caller in the middle of a reservation gets nothing if the lease is released: the next holder
// begins directly after the last time used.
func TestLease_releaseEndsTheState(t *testing.T) {
	for _, ring := range []int{1, 200} {
		g, clock, _ := leased(t, config{RingSize: ring, Layout: Layout{TimeBits: 44}})
		mustKeys(t, g, 1)
		late := g.slot.Load()
		must.Do(t, g.Close(), "close")
		clock.step(ms)
		if start, _, v := g.take(late, request{now: g.clock.Now(), n: 1, column: g.columns.find(spi.Column{}, g.period)}); v != ended {
			t.Errorf("ring %d\nhave: position %d, verdict %d\nwant: ended", ring, start, v)
		}
	}
}

func TestLease_acquireFails(t *testing.T) {
	g, clock, store := leased(t, config{})
	store.fail(errAway)
	for range 2 {
		if _, err := g.Next(context.Background()); !errors.Is(err, spi.ErrStore) || !strings.HasPrefix(err.Error(), "shardkey: SNOWFLAKE") {
			t.Errorf("\nhave: %v\nwant: the store's error", err)
		}
	}
	store.fail(nil)
	mustKeys(t, g, 1)

	store.first = 1000
	small := mustNew(t, config{Layout: js53, Clock: clock, Assigner: store})
	must.Is(t, must.Err(small.Next(context.Background())), spi.ErrNoWorkerID)
	for _, id := range []givenID{-1, math.MinInt64, 1024} {
		g := mustNew(t, config{Clock: clock, Assigner: id})
		must.FailWith(t, must.Err(g.Next(context.Background())), fmt.Sprintf("in 0..1023 from the assigner, found %d", id))
	}
}

// slowStore answers after a second, unless its caller gives up first.
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

// One caller queries the store for all callers, and all get a key, or its error.
func TestLease_oneCallerAcquiresForAll(t *testing.T) {
	for _, storeErr := range []error{nil, errAway} {
		synctest.Test(t, func(t *testing.T) {
			store := &slowStore{fakeStore: newFakeStore(spi.SystemClock)}
			store.fail(storeErr)
			g := mustNew(t, config{Assigner: store, Epoch: bubbleEpoch})
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					must.Is(t, must.Err(g.Next(t.Context())), storeErr, "key")
				})
			}
			wg.Wait()
			must.Equal(t, store.calls.Load(), 1, "calls of the store")
			store.fail(nil)
		})
	}
}

// If the caller that queries the store gives up, another caller queries it.
func TestLease_acquireOutlivesTheFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{fakeStore: newFakeStore(spi.SystemClock)}
		g := mustNew(t, config{Assigner: store, Epoch: bubbleEpoch})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second/2)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { must.Is(t, must.Err(g.Next(ctx)), context.DeadlineExceeded) })
		synctest.Wait()
		for range 10 {
			wg.Go(func() { mustKeys(t, g, 1) })
		}
		wg.Wait()
		must.Equal(t, store.calls.Load(), 2, "calls of the store")
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
		must.Do(t, g.Close(), "close")
		must.Is(t, <-done, spi.ErrClosed)
		synctest.Wait()
		must.Equal(t, len(store.owner), 0, "leases left over")
	})
}

// A worker ID without a limit, such as STATIC's, shares the state of the process.
func TestLease_unlimitedWorkerIDSharesState(t *testing.T) {
	clock := newHandClock()
	given := mustNew(t, config{Clock: clock, Assigner: givenID(3), RingSize: 20})
	static := mustNew(t, config{Clock: clock, WorkerID: 3, RingSize: 20})
	seen := map[int64]bool{}
	for range 100 {
		for _, g := range []*generator{given, static} {
			must.Do(t, takeModel(g, 3, seen))
		}
	}
	if h := given.Health(); *h.WorkerID != 3 || h.Lease != nil {
		t.Errorf("\nhave: %+v\nwant: worker 3 without a lease", h)
	}
}

// The keys of the current tick may be used up. Those of the next tick have another worker ID,
// long before the old limit.
func TestLease_lostEndsWithTheTick(t *testing.T) {
	for name, cfg := range map[string]config{
		"word":      {},
		"ring":      {RingSize: 200},
		"js53":      {Layout: js53},
		"js53 ring": {Layout: js53, RingSize: 200},
	} {
		t.Run(name, func(t *testing.T) {
			g, clock, store := leased(t, cfg)
			mustKeys(t, g, 1)
			store.lose(0)
			clock.step(time.Millisecond) // a tick of one layout, a small part of a js53 tick
			mustKeys(t, g, 1)
			if h := g.Health(); *h.WorkerID != 1 || h.Lease.Lost != 1 {
				t.Fatalf("have: worker %d, %d leases lost\nwant: worker 1, one lost", *h.WorkerID, h.Lease.Lost)
			}
			store.lose(1)
			store.first = 5000 // no worker ID is free
			clock.step(time.Millisecond)
			_, err := g.Next(t.Context())
			if !errors.Is(err, spi.ErrLeaseLimit) || !errors.Is(err, spi.ErrNoWorkerID) || strings.Contains(err.Error(), "reserved until") {
				t.Errorf("have: %v\nwant: ErrLeaseLimit, ErrNoWorkerID, and no word of the limit", err)
			}
		})
	}
	t.Run("saturated", func(t *testing.T) {
		g, _, store := leased(t, config{MaxVibrationOffset: -1})
		mustKeys(t, g, 4096)
		store.lose(0)
		must.Equal(t, partsOf(t, g, mustKeys(t, g, 1)[0]).WorkerID, 1, "worker of the next tick")
	})
}

// The clock steps back by up to a minute in all. Keys continue in the lease's interval with the same
// worker ID, and ascend. The log has each step.
func TestLease_clockStepsBack(t *testing.T) {
	for _, policy := range policies {
		for _, ring := range []int{1, 4} {
			for _, layout := range []Layout{Classic, js53} {
				name := fmt.Sprintf("%s, ring %d, %v", policy, ring, layout)
				var log strings.Builder
				g, clock, store := leased(t, config{
					ClockBack: policy, RingSize: ring, Layout: layout, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				})
				last := mustKeys(t, g, 1)[0]
				for _, step := range []time.Duration{3 * time.Second, 20 * time.Second, 30 * time.Second} {
					for range 5 { // used up by a ring
						clock.step(layout.Tick)
						last = mustKeys(t, g, 1)[0]
					}
					store.fail(errAway) // which doesn't matter yet
					clock.step(-step - 5*layout.Tick)
					g.figures.stepLogged = time.Time{}
					must.Do(t, g.Health().Err, name, step, "health")
					must.Do(t, g.Ready(t.Context()), name, step, "ready")
					for range 3 {
						key := mustKeys(t, g, 1)[0]
						if key <= last {
							t.Errorf("%s, %v\nhave: %d after %d", name, step, key, last)
						}
						last = key
					}
					store.fail(nil)
				}
				must.Equal(t, *g.Health().WorkerID, 0, name)
				must.Equal(t, strings.Count(log.String(), "clock stepped back"), 3, name, &log)
				clock.step(-20 * time.Second)
				mustKeys(t, g, 1)
				another := *g.Health().WorkerID == 1
				must.Equal(t, another, policy != clockBackBorrow, name, "another worker ID after more than a minute")
			}
		}
	}
}

// The log has no steps within the tolerance, and at most one step in a second.
func TestClockBack_log(t *testing.T) {
	var log strings.Builder
	g, clock := fixed(t, config{ClockBack: clockBackBorrow, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for i, step := range []time.Duration{10 * ms, 11 * ms, time.Second} {
		mustKeys(t, g, 1)
		clock.step(-step)
		mustKeys(t, g, 1)
		must.Equal(t, strings.Count(log.String(), "clock stepped back"), min(i, 1), step, &log)
	}
}

// The clock was far ahead for one key and is right again. Health reports this until the next key,
// which has another worker ID and the clock's time. The previous worker ID is released.
func TestLease_clockThatWasFarAheadTakesAnotherWorkerID(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   config
		ahead time.Duration
	}{
		"wait":            {config{}, time.Hour},
		"wait, a year":    {config{}, 365 * 24 * time.Hour},
		"error":           {config{ClockBack: clockBackFail}, time.Hour},
		"ring":            {config{RingSize: 200}, time.Hour},
		"js53":            {config{Layout: js53}, time.Hour},
		"borrow":          {config{ClockBack: clockBackBorrow}, 48 * time.Hour},
		"borrow, a ring":  {config{ClockBack: clockBackBorrow, RingSize: 200}, 48 * time.Hour},
		"wait, long tick": {config{Layout: Layout{TimeBits: 30, WorkerBits: 3, SequenceBits: 30, Tick: time.Minute}}, time.Hour},
	} {
		for _, asked := range []string{"Next", "Ready"} {
			t.Run(name+" "+asked, func(t *testing.T) {
				g, clock, store := leased(t, c.cfg)
				mustKeys(t, g, 3)
				right := clock.Now()
				clock.step(c.ahead)
				mustKeys(t, g, 3)
				for range c.cfg.RingSize { // a ring continues at once in ticks that it hasn't used
					clock.step(ms)
					mustKeys(t, g, 1)
				}
				clock.now = right.Add(ms)
				must.Is(t, g.Health().Err, spi.ErrClockBack, "health")
				if asked == "Ready" {
					must.Do(t, g.Ready(t.Context()), "ready")
				}
				parts := partsOf(t, g, mustKeys(t, g, 1)[0])
				h := g.Health()
				if parts.WorkerID != 1 || parts.Time.Sub(right) > 2*time.Minute {
					t.Errorf("the next key\nhave: %+v\nwant: one of worker ID 1 and of about %v", parts, right)
				}
				if h.Err != nil || *h.Clock.Steps != 1 && asked == "Next" || h.Issued != 7+int64(c.cfg.RingSize) || h.Lease.Lost != 0 {
					t.Errorf("health afterwards\nhave: %+v\nwant: no error", h)
				}
				if store.owner[0] != nil || store.reserved[0] < right.Add(c.ahead).UnixMilli() {
					t.Errorf("worker ID 0\nhave: owner %v, free from %v\nwant: released, free after its last key", store.owner[0], time.UnixMilli(store.reserved[0]))
				}
			})
		}
	}
}

// While no other worker ID is free, Next, Ready and Health report the cause and the end of the
// wait. Keys continue with the first worker ID that becomes free.
func TestLease_clockThatWasFarAheadWithoutAnotherWorkerID(t *testing.T) {
	g, clock, store := leased(t, config{})
	mustKeys(t, g, 1)
	clock.step(time.Hour)
	mustKeys(t, g, 1)
	until := clock.Now()
	clock.step(-time.Hour)
	store.first = 5000
	for range 2 {
		_, err := g.Next(t.Context())
		for what, err := range map[string]error{"next": err, "ready": g.Ready(t.Context()), "health": g.Health().Err} {
			if !errors.Is(err, spi.ErrClockBack) || !strings.Contains(err.Error(), "expected "+stamp(until)+" or later") ||
				what != "health" && !errors.Is(err, spi.ErrNoWorkerID) {
				t.Errorf("%s\nhave: %v\nwant: ErrClockBack until %v", what, err, until)
			}
		}
	}
	store.first = 7
	mustKeys(t, g, 1)
	if h := g.Health(); *h.WorkerID != 7 || h.Err != nil {
		t.Errorf("have: %+v\nwant: worker ID 7", h)
	}
}

// After the clock was far ahead, a lost lease is followed by a lease at the clock's time.
func TestLease_lostAfterTheClockWasFarAhead(t *testing.T) {
	g, clock, store := leased(t, config{ClockBack: clockBackFail})
	mustKeys(t, g, 1)
	clock.step(time.Hour)
	mustKeys(t, g, 1)
	clock.step(-time.Hour)
	store.lose(0)
	if parts := partsOf(t, g, mustKeys(t, g, 1)[0]); !parts.Time.Equal(clock.Now()) || parts.WorkerID != 1 {
		t.Errorf("have: %+v\nwant: a key of %v", parts, clock.Now())
	}
}

// A lease may end after the layout's time field, but keys may not.
func TestLease_endsWithTheTimeField(t *testing.T) {
	g, clock, store := leased(t, config{MaxVibrationOffset: -1})
	store.interval = 100 * 365 * 24 * time.Hour
	mustKeys(t, g, 1)
	clock.now = g.clock.At(g.lastTick)
	last := mustKeys(t, g, 4096)[4095]
	must.Is(t, must.Err(g.Next(t.Context())), spi.ErrTimeOverflow, "after the last key", last)
}

// A renewal that succeeds without effect ends the lease.
func TestLease_renewalThatFallsShort(t *testing.T) {
	for _, ring := range []int{1, 200} {
		g, clock, store := leased(t, config{RingSize: ring})
		store.lazy = true
		mustKeys(t, g, 1)
		clock.step(store.interval)
		must.Is(t, must.Err(g.Next(t.Context())), spi.ErrLeaseLimit, "ring", ring)
	}
}

// A floor within a tick counts as the tick's end, so that no key has a time below it.
func TestLease_floorWithinATick(t *testing.T) {
	for _, layout := range []Layout{js53, {TimeBits: 35, WorkerBits: 8, SequenceBits: 10, Tick: 700 * ms}} {
		for _, within := range []time.Duration{1 * ms, 350 * ms, 699 * ms} {
			g, clock, store := leased(t, config{Layout: layout})
			floor := clock.Now().Truncate(layout.Tick).Add(layout.Tick + within)
			store.reserved[0] = floor.UnixMilli()
			at := partsOf(t, g, mustKeys(t, g, 1)[0]).Time
			if at.Before(floor) || at.Sub(floor) >= layout.Tick {
				t.Errorf("%v, %v after the tick began\nhave: a key of %v\nwant: one of the tick that begins after %v", layout, within, at, floor)
			}
		}
	}
}

// A worker ID that arrives after its generator has closed, or has another one, is released.
func TestLease_tooLateIsReleased(t *testing.T) {
	for _, closed := range []bool{false, true} {
		g, _, store := leased(t, config{})
		first := must.Get(g.leasedSlot(t.Context(), 0))(t)
		late := must.Get(g.leasedSlot(t.Context(), 0))(t)
		if err := g.change(nil, first); err != nil || g.slot.Load() != first {
			t.Fatalf("the first slot is not used: %v", err)
		}
		if closed {
			must.Do(t, g.Close(), "close")
		}
		err := g.change(nil, late)
		if closed != errors.Is(err, spi.ErrClosed) || !closed && err != nil {
			t.Errorf("closed: %v\nhave: %v", closed, err)
		}
		if slot := g.slot.Load(); closed && slot != nil || !closed && slot != first {
			t.Errorf("closed: %v\nhave: the late slot in use\nwant: what was there", closed)
		}
		must.Equal(t, store.owner[late.id], nil, "closed", closed, "the late worker ID is released")
	}
}
