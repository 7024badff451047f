package snowflake

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Callers in a tight loop, some with an older reading of the clock, take as many
// positions as were issued: one that is given twice makes it more.
func TestState_givesEachPositionOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	const bits, ticks = 20, 8
	for _, ring := range []int{1, 200} {
		clock := newHandClock()
		g := mustNew(t, config{Clock: clock, RingSize: ring, WorkerIDSet: true,
			Layout: Layout{TimeBits: 43, SequenceBits: bits}, Epoch: clock.Now().Add(-time.Hour)})
		mustKeys(t, g, 1)
		s := g.slot.Load()
		before, from := s.state.issued(), g.clock.Now()
		var given atomic.Int64
		var wg sync.WaitGroup
		for i := range uint64(8) {
			wg.Go(func() {
				own := int64(0)
				for now, n := from+1, 1+i%3; now <= from+ticks; n = 1 + n%3 {
					if _, _, v := g.take(s, request{now: now, n: n}); v == taken {
						own += int64(n)
					} else {
						now++
					}
				}
				given.Add(own)
			})
		}
		wg.Wait()
		if have, want := given.Load(), s.state.issued()-before; have != want || have < 1<<bits {
			t.Errorf("ring %d\nhave: %d positions given\nwant: %d, as many as were issued", ring, have, want)
		}
	}
}

func TestState_newestTickOnlyRises(t *testing.T) {
	var s state
	for _, tick := range []int64{5, 3, 5, 7, 6} {
		s.raiseHigh(tick)
	}
	if have := s.high.Load(); have != 7 {
		t.Errorf("\nhave: %d\nwant: 7", have)
	}
}

// A demand that fills each tick's sequence, but fewer ticks than pass, is not
// served further and further behind the clock.
func TestQueue_lagIsBounded(t *testing.T) {
	for _, ring := range []int{1, 200} {
		inBubble(t, config{RingSize: ring}, func(t *testing.T, g *generator) {
			mustKeys(t, g, 3*4096) // saturated
			for range 200 {
				parts, err := g.DecodeKey(mustKeys(t, g, 3000)[0])
				if lag := time.Since(parts.Time); err != nil || lag > catchUpTime+time.Millisecond {
					t.Fatalf("ring %d\nhave: a key of %v ago (%v)\nwant: of %v at most", ring, lag, err, catchUpTime)
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
}

// While many wait the first of them sleeps a little longer than for the next tick.
// A caller that comes meanwhile finds keys, and is served after them all the same.
func TestQueue_newcomersComeLast(t *testing.T) {
	for _, batch := range []int{1, 2} {
		inBubble(t, config{Layout: Layout{TimeBits: 41, SequenceBits: 1}}, func(t *testing.T, g *generator) {
			mustKeys(t, g, 2)
			keys := make([]int64, 640)
			var wg sync.WaitGroup
			for i := range keys {
				wg.Go(func() { keys[i] = mustKeys(t, g, 1)[0] })
			}
			synctest.Wait()
			time.Sleep(3 * time.Millisecond)
			newest := make([]int64, batch)
			var err error
			if batch == 1 {
				newest[0], err = g.Next(t.Context())
			} else {
				err = g.GenerateInt64Keys(t.Context(), spi.Column{}, newest)
			}
			wg.Wait()
			if last := slices.Max(keys); err != nil || newest[0] < last {
				t.Errorf("%d keys\nhave: %d (%v)\nwant: above %d, the last of those that waited", batch, newest[0], err, last)
			}
		})
	}
}

// A ring begins with the process: the ticks before it may have keys of the one
// before.
func TestRing_doesNotGoBackBeforeTheProcess(t *testing.T) {
	clock := newHandClock()
	g := mustNew(t, config{Clock: clock, RingSize: 200, WorkerIDSet: true})
	start := clock.Now()
	mustKeys(t, g, 1)
	clock.step(-5 * ms)
	parts, err := g.DecodeKey(mustKeys(t, g, 1)[0])
	if err != nil || parts.Time.Before(start) {
		t.Errorf("\nhave: a key of %v (%v)\nwant: none before %v", parts.Time, err, start)
	}
}

// A clock so far ahead that its ticks do not fit into a position wraps nothing
// around.
func TestGenerator_positionsDoNotWrap(t *testing.T) {
	for _, ring := range []int{1, 200} {
		clock := newHandClock()
		g := mustNew(t, config{Clock: clock, RingSize: ring, WorkerIDSet: true, ClockBack: clockBackBorrow,
			Layout: Layout{TimeBits: 49, SequenceBits: 14, Tick: time.Microsecond}})
		mustKeys(t, g, 1)
		for _, tick := range []int64{1<<50 + 5, 1<<51 + 5, 1<<52 + 1<<49 + 5} { // 1<<64 positions and more
			clock.now = DefaultEpoch.Add(time.Duration(tick) * time.Microsecond)
			if key, err := g.Next(t.Context()); !errors.Is(err, spi.ErrTimeOverflow) {
				t.Errorf("ring %d, tick %d\nhave: %d, %v\nwant: ErrTimeOverflow", ring, tick, key, err)
			}
		}
	}
}

func TestClose_noKeysAfterwards(t *testing.T) {
	for _, ring := range []int{1, 200} {
		clock := newHandClock()
		for name, cfg := range map[string]config{"set": {WorkerID: 9}, "leased": {Assigner: newFakeStore(clock)}} {
			cfg.Clock, cfg.RingSize = clock, ring
			g := mustNew(t, cfg)
			mustKeys(t, g, 1)
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			clock.step(ms)
			if key, err := g.Next(t.Context()); !errors.Is(err, spi.ErrClosed) {
				t.Errorf("%s worker id, ring %d\nhave: %d, %v\nwant: %v", name, ring, key, err, spi.ErrClosed)
			}
			if err := g.GenerateInt64Keys(t.Context(), spi.Column{}, make([]int64, 3)); !errors.Is(err, spi.ErrClosed) {
				t.Errorf("%s worker id, ring %d, a batch\nhave: %v\nwant: %v", name, ring, err, spi.ErrClosed)
			}
		}
	}
}

// lazyLease says that it was renewed, and was not.
type lazyLease struct{ *fakeLease }

func (lazyLease) Renew(context.Context, int64) error { return nil }

type lazyAssigner struct{ *fakeStore }

func (a lazyAssigner) AcquireWorkerID(ctx context.Context, most int64) (spi.WorkerIDLease, error) {
	l, err := a.fakeStore.AcquireWorkerID(ctx, most)
	if err != nil {
		return nil, err
	}
	return lazyLease{l.(*fakeLease)}, nil
}

func TestLease_renewalThatFallsShort(t *testing.T) {
	for _, ring := range []int{1, 200} {
		clock := newHandClock()
		store := newFakeStore(clock)
		g := mustNew(t, config{Clock: clock, Assigner: lazyAssigner{store}, RingSize: ring})
		mustKeys(t, g, 1)
		clock.step(store.interval)
		key, err := g.Next(t.Context())
		var limit *leaseError
		if !errors.As(err, &limit) {
			t.Errorf("ring %d\nhave: %d, %v\nwant: a leaseError", ring, key, err)
		}
	}
}

// A floor within a tick is that tick's end: no key's time is below it.
func TestLease_floorWithinATick(t *testing.T) {
	for _, layout := range []Layout{JS53, {TimeBits: 35, WorkerBits: 8, SequenceBits: 10, Tick: 700 * ms}} {
		for _, within := range []time.Duration{1 * ms, 350 * ms, 699 * ms} {
			clock := newHandClock()
			store := newFakeStore(clock)
			floor := clock.Now().Truncate(layout.Tick).Add(layout.Tick + within)
			store.reserved[0] = floor.UnixMilli()
			g := mustNew(t, config{Clock: clock, Assigner: store, Layout: layout})
			parts, err := g.DecodeKey(mustKeys(t, g, 1)[0])
			if err != nil || parts.Time.Before(floor) || parts.Time.Sub(floor) >= layout.Tick {
				t.Errorf("%v, %v after the tick began\nhave: a key of %v (%v)\nwant: one of the tick that begins after %v", layout, within, parts.Time, err, floor)
			}
		}
	}
}

// A worker id that was leased on behalf of a generator that has closed since, or
// that has another one by now, is given back.
func TestLease_thatComesTooLateIsGivenBack(t *testing.T) {
	for _, closed := range []bool{false, true} {
		clock := newHandClock()
		store := newFakeStore(clock)
		g := mustNew(t, config{Clock: clock, Assigner: store})
		first, err := g.leasedSlot(t.Context(), g.clock.Now(), 0)
		if err != nil {
			t.Fatal(err)
		}
		late, err := g.leasedSlot(t.Context(), g.clock.Now(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.change(nil, first); err != nil || g.slot.Load() != first {
			t.Fatalf("the first slot is not used: %v", err)
		}
		if closed {
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
		}
		err = g.change(nil, late)
		if closed != errors.Is(err, spi.ErrClosed) || !closed && err != nil {
			t.Errorf("closed: %v\nhave: %v", closed, err)
		}
		if slot := g.slot.Load(); closed && slot != nil || !closed && slot != first {
			t.Errorf("closed: %v\nhave: the late slot in use\nwant: what was there", closed)
		}
		if store.owner[late.id] != nil {
			t.Errorf("closed: %v\nhave: worker id %d still leased\nwant: given back", closed, late.id)
		}
	}
}
