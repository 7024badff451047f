package snowflake

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

// Callers in a tight loop, some with an old reading of the clock, take positions. Their number
// must equal the number of issued positions. A duplicate would increase it.
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
					if _, _, v := g.take(s, request{now: now, n: n, column: g.columns.find(spi.Column{}, g.period)}); v == taken {
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

// TestSoak_uniqueKeys takes keys with 64 goroutines on 16 processors, singly and in batches, from
// two generators that share a worker ID. SHARDKEY_SOAK=1m sets the total duration.
func TestSoak_uniqueKeys(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	for _, ring := range []int{1, 200} {
		for _, layout := range []Layout{Classic, wide, {TimeBits: 50, WorkerBits: 5, SequenceBits: 0, Tick: 50 * time.Microsecond}} {
			t.Run(fmt.Sprintf("%s ring %d", layout, ring), func(t *testing.T) {
				rounds := 1
				for until := time.Now().Add(soak(t)); ; rounds++ {
					uniqueRound(t, layout, ring)
					if t.Failed() || !time.Now().Before(until) {
						break
					}
				}
				t.Log("rounds:", rounds)
			})
		}
	}
}

func uniqueRound(t *testing.T, layout Layout, ring int) {
	const goroutines = 64
	perGoroutine := min(3000, 100*int(layout.maxSequence()+1))
	if layout == wide {
		perGoroutine = 30_000 // no caller waits, so that the word is always contended
	}
	cfg := config{Layout: layout, RingSize: ring, WorkerIDSet: true}
	generators := []*generator{mustNew(t, cfg), mustNew(t, cfg)}
	mustKeys(t, generators[0], 1) // leases the worker ID, whose statistics survive a round
	issued := generators[0].Health().Issued
	made := make([][]int64, goroutines)
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() { made[i] = takeKeys(t, generators[i%2], perGoroutine) })
	}
	wg.Wait()
	all := slices.Concat(made...)
	slices.Sort(all)
	must.Equal(t, len(all)-len(slices.Compact(all)), 0, "keys twice among", len(all))
	must.Equal(t, generators[0].Health().Issued-issued, int64(len(all)), "issued")
}

// takeKeys takes n keys, some singly and some in batches. It checks that they ascend and that
// batches are contiguous.
func takeKeys(t *testing.T, g *generator, n int) []int64 {
	keys := make([]int64, 0, n+64)
	for len(keys) < n {
		size := 1
		if len(keys)%3 == 0 {
			size = int(min(g.seqMask+1, uint64(1+len(keys)%64)))
		}
		batch := make([]int64, size)
		if err := g.GenerateInt64Keys(context.Background(), spi.Column{}, batch); err != nil {
			t.Error(err)
			break
		}
		if batch[size-1] != batch[0]+int64(size-1) {
			t.Errorf("\nhave: %v\nwant: contiguous keys", batch)
			break
		}
		keys = append(keys, batch...)
	}
	if !slices.IsSorted(keys) {
		t.Error("keys of one goroutine do not ascend")
	}
	return keys
}

// TestSoak_model steps the clock randomly, forward and back, and takes keys from generators that
// share a worker ID or are opened again. All keys must be unique, and every error must be a
// documented one.
func TestSoak_model(t *testing.T) {
	layouts := []Layout{Classic, js53, {TimeBits: 45, WorkerBits: 3, SequenceBits: 2}, {TimeBits: 46, SequenceBits: 0}, {TimeBits: 44, SequenceBits: 4}}
	rounds, until := uint64(400), time.Now().Add(soak(t))
	for seed := uint64(0); seed < rounds || time.Now().Before(until); seed++ {
		rnd := rand.New(rand.NewPCG(seed, 2))
		cfg := config{
			Layout:             layouts[rnd.IntN(len(layouts))].orDefault(),
			ClockBack:          policies[rnd.IntN(3)],
			RingSize:           []int{1, 1, 5, 200}[rnd.IntN(4)],
			MaxVibrationOffset: rnd.Int64N(3) - 1,
			WorkerIDSet:        true,
		}
		cfg.MaxVibrationOffset = min(cfg.MaxVibrationOffset, cfg.Layout.maxSequence())
		if err := runModel(t, rnd, cfg); err != nil {
			t.Fatalf("seed %d, %+v\nhave: %v\nwant: every key once", seed, cfg, err)
		}
	}
}

func runModel(t *testing.T, rnd *rand.Rand, cfg config) error {
	clock := newHandClock()
	cfg.Clock = clock
	seen := map[int64]bool{}
	open := []*generator{mustNew(t, cfg), mustNew(t, cfg)}
	for range 300 {
		i := rnd.IntN(len(open))
		switch rnd.IntN(12) {
		case 0:
			clock.step(time.Duration(rnd.IntN(400)-200) * time.Millisecond)
		case 1:
			clock.step(time.Duration(rnd.IntN(2000)-1000) * cfg.Layout.orDefault().Tick)
		case 2, 3, 4:
			clock.step(time.Duration(rnd.IntN(int(2 * cfg.Layout.orDefault().Tick))))
		case 5:
			if err := open[i].Close(); err != nil {
				return err
			}
			open[i] = mustNew(t, cfg)
		default:
			if err := takeModel(open[i], 1+rnd.IntN(9)*rnd.IntN(2), seen); err != nil {
				return err
			}
		}
	}
	return nil
}

func takeModel(g *generator, n int, seen map[int64]bool) error {
	keys := make([]int64, n)
	err := g.GenerateInt64Keys(context.Background(), spi.Column{}, keys)
	if errors.Is(err, spi.ErrClockBack) && g.cfg.ClockBack != clockBackBorrow {
		return nil
	}
	if err != nil {
		return err
	}
	for i, key := range keys {
		if seen[key] || key < 0 || i > 0 && key <= keys[i-1] {
			return fmt.Errorf("%d twice or not ascending: %v", key, keys)
		}
		seen[key] = true
	}
	return nil
}

// Holders pause, crash, close and lose their leases, each with a clock that steps. All keys must
// be unique.
func TestSoak_leaseModel(t *testing.T) {
	rounds, until := uint64(300), time.Now().Add(soak(t))
	for seed := uint64(0); seed < rounds || time.Now().Before(until); seed++ {
		rnd := rand.New(rand.NewPCG(seed, 3))
		cfg := config{
			Layout:    []Layout{Classic, {TimeBits: 36, WorkerBits: 2, SequenceBits: 3, Tick: 30 * ms}}[rnd.IntN(2)],
			ClockBack: policies[rnd.IntN(3)],
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
		case 1: // a crash: it releases nothing, and another holder takes the worker ID
			store.steal()
		case 2: // by up to 200 ms, or by up to 100 s
			p.clock.step(time.Duration(rnd.IntN(400)-200) * []time.Duration{ms, ms, ms, 500 * ms}[rnd.IntN(4)])
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

// skewed is the store for a process with another clock.
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

// A generator with another ring size takes over a free worker ID, and begins after all earlier
// keys.
func TestShared_ringSizesDiffer(t *testing.T) {
	clock := newHandClock()
	plain := mustNew(t, config{Clock: clock, WorkerID: 5})
	seen := map[int64]bool{}
	must.Do(t, takeModel(plain, 3, seen))
	ring := mustNew(t, config{Clock: clock, WorkerID: 5, RingSize: 200})
	if _, err := ring.Next(context.Background()); err == nil || !strings.Contains(err.Error(), "ring sizes 1 and 200") {
		t.Fatalf("\nhave: %v\nwant: an error that names both ring sizes", err)
	}
	late := plain.slot.Load()
	must.Do(t, plain.Close(), "close")
	for range 5 {
		must.Do(t, takeModel(ring, 3, seen))
	}
	// A call that had the slot before Close gets no position of the state that was replaced.
	if start, _, v := plain.take(late, request{now: plain.clock.Now() + 1, n: 1, column: plain.columns.find(spi.Column{}, plain.period)}); v != ended {
		t.Errorf("have: position %d, verdict %d\nwant: ended", start, v)
	}
	clock.step(-1 * ms) // in the ring, but before its start
	if _, err := ring.Next(context.Background()); err != nil {
		t.Fatal(err) // after a wait
	}
}

func TestShared_identitiesDiffer(t *testing.T) {
	clock := newHandClock()
	first := mustNew(t, config{Clock: clock, WorkerID: 5})
	mustKeys(t, first, 100)
	for _, cfg := range []config{
		{Clock: clock, WorkerID: 6},
		{Clock: newHandClock(), WorkerID: 5},
		{Clock: clock, WorkerID: 5, Layout: js53},
		{Clock: clock, WorkerID: 5, Epoch: DefaultEpoch.Add(time.Hour)},
		{Clock: uncomparableClock{handClock: clock}, WorkerID: 5},
	} {
		g := mustNew(t, cfg)
		if parts, err := g.DecodeKey(mustKeys(t, g, 1)[0]); err != nil || parts.Sequence != 0 {
			t.Errorf("%+v\nhave: %+v %v\nwant: sequence 0, a state of its own", cfg, parts, err)
		}
	}
}

// uncomparableClock can't be the key of a map.
type uncomparableClock struct {
	*handClock
	_ []int
}
