package snowflake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

func TestHealth(t *testing.T) {
	clock := newHandClock()
	// The statistics of leases exist only for a leased worker ID.
	for want, cfg := range map[string]config{
		`{"issued":1,"waits":0,"workerId":5,"clockSteps":0,"borrowedSeconds":0}`: {WorkerID: 5},
		`{"issued":1,"waits":1,"workerId":6,"clockSteps":0,"borrowedSeconds":0}`: {Assigner: givenID(6)},
		`{"issued":1,"waits":1,"workerId":0,"clockSteps":0,` +
			`"leaseLimit":"2026-11-01T00:00:10Z","leaseRenewals":0,"leasesLost":0,"borrowedSeconds":0,"leaseSeconds":10}`: {Assigner: newFakeStore(clock)},
	} {
		cfg.Clock = clock
		g := mustNew(t, cfg)
		mustKeys(t, g, 1)
		if have, err := json.Marshal(g.Health()); err != nil || string(have) != want {
			t.Errorf("\nhave: %s, %v\nwant: %s", have, err, want)
		}
	}
	t.Run("why there is no worker ID", func(t *testing.T) {
		store := newFakeStore(clock)
		store.fail(errAway)
		g := mustNew(t, config{Clock: clock, Assigner: store})
		if _, err := g.Next(t.Context()); err == nil {
			t.Fatal("a key without a worker ID")
		}
		if h := g.Health(); !errors.Is(h.Err, errAway) || h.WorkerID != nil {
			t.Errorf("\nhave: %+v\nwant: %v", h, errAway)
		}
		store.fail(nil)
		mustKeys(t, g, 1)
		if h := g.Health(); h.Err != nil {
			t.Errorf("\nhave: %v\nwant: no error, as there is a worker ID", h.Err)
		}
	})
}

// A clock that was half a minute ahead doesn't cost a leased worker ID, and a configured one
// can't be replaced. Both cases are reported.
func TestHealth_clockThatWasAhead(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   func(clock spi.Clock) config
		ahead time.Duration
	}{
		"leased": {func(clock spi.Clock) config { return config{Assigner: newFakeStore(clock)} }, 30 * time.Second},
		"fixed":  {func(spi.Clock) config { return config{WorkerID: 5} }, time.Hour},
		"STATIC": {func(spi.Clock) config { return config{Assigner: givenID(5)} }, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newHandClock()
			cfg := c.cfg(clock)
			cfg.Clock = clock
			g := mustNew(t, cfg)
			mustKeys(t, g, 1)
			worker := *g.Health().WorkerID
			clock.step(c.ahead)
			mustKeys(t, g, 1)
			clock.step(-c.ahead)
			_, err := g.Next(t.Context())
			h := g.Health()
			if !errors.Is(err, spi.ErrClockBack) || !errors.Is(h.Err, spi.ErrClockBack) || !errors.Is(g.Ready(t.Context()), spi.ErrClockBack) || *h.WorkerID != worker {
				t.Errorf("have: %v, %+v\nwant: spi.ErrClockBack, the same worker ID", err, h)
			}
			clock.step(c.ahead)
			mustKeys(t, g, 1)
			wantErr(t, "the time has passed", g.Health().Err, nil)
		})
	}
}

// Two generators have the same history. Ready is called on one of them before each key. It must
// predict the result, and both must generate the same keys.
func TestReady_agreesWithTheNextKey(t *testing.T) {
	for seed := range uint64(80) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		cfg := config{ClockBack: policies[rnd.IntN(3)], MaxVibrationOffset: rnd.Int64N(3) * 2}
		if rnd.IntN(3) == 0 {
			cfg.RingSize = 4
		}
		leased := rnd.IntN(2) == 0
		cfg.WorkerIDSet = !leased
		var clocks [2]*handClock
		var stores [2]*fakeStore
		var gens [2]*generator
		for i := range gens {
			clocks[i] = newHandClock()
			stores[i] = newFakeStore(clocks[i])
			own := cfg
			own.Clock = clocks[i]
			if leased {
				own.Assigner = stores[i]
			}
			gens[i] = mustNew(t, own)
		}
		var history []string
		for range 150 {
			var step time.Duration
			switch n := rnd.IntN(12); {
			case n < 6:
				step = time.Duration(rnd.IntN(3)) * ms
			case n < 8:
				step = time.Duration(rnd.IntN(20)) * -ms
			case n == 8:
				step = 15 * time.Second
			case n == 9 && leased:
				var err error
				if rnd.IntN(2) == 0 {
					err = spi.ErrStore
				}
				stores[0].fail(err)
				stores[1].fail(err)
				history = append(history, fmt.Sprint("store ", err))
			}
			clocks[0].step(step)
			clocks[1].step(step)
			many := 1
			if cfg.RingSize == 0 && !leased && rnd.IntN(10) == 0 {
				many = 4096
			}
			ready := gens[1].Ready(t.Context())
			var keys [2][]int64
			var errs [2]error
			for i := range gens {
				keys[i] = make([]int64, many)
				errs[i] = gens[i].GenerateInt64Keys(t.Context(), spi.Column{}, keys[i])
			}
			history = append(history, fmt.Sprintf("%v, %d keys, %v", step, many, errs[1]))
			if (ready == nil) != (errs[1] == nil) || fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) || errs[0] == nil && !slices.Equal(keys[0], keys[1]) {
				t.Fatalf("seed %d, clock-back %v, ring %d, leased %v\nready: %v\nkeys: %d, %v\nwithout Ready: %d, %v\n%q", seed, cfg.ClockBack, cfg.RingSize, leased, ready, keys[1][0], errs[1], keys[0][0], errs[0], history)
			}
		}
		for i := range stores {
			stores[i].fail(nil)
		}
		if have, want := gens[1].Health().Issued, gens[0].Health().Issued; have != want {
			t.Fatalf("seed %d: keys issued\nhave: %d\nwant: %d", seed, have, want)
		}
	}
}

// The ring's slot for the clock's tick is full, and the next tick's slot contains a later tick.
func TestReady_ringUsedUp(t *testing.T) {
	clock := newHandClock()
	g := mustNew(t, config{Clock: clock, WorkerIDSet: true, ClockBack: clockBackFail, RingSize: 4})
	mustKeys(t, g, 4096)
	clock.step(5 * ms) // to another slot than the next tick's
	mustKeys(t, g, 1)
	clock.step(-5 * ms)
	wantErr(t, "used up", g.Ready(t.Context()), spi.ErrClockBack)
	clock.step(5 * ms)
	wantErr(t, "ready", g.Ready(t.Context()), nil)
}

func TestReady_leases(t *testing.T) {
	g, clock, store := leased(t, config{})
	for _, step := range []struct {
		what string
		do   func()
		want []error
	}{
		{"no worker ID yet, store away", func() { store.fail(spi.ErrStore) }, []error{spi.ErrStore}},
		{"the first worker ID", func() { store.fail(nil) }, nil},
		{"store away, within the lease", func() { store.fail(spi.ErrStore) }, nil},
		{"store away, beyond the lease", func() { clock.step(time.Hour) }, []error{spi.ErrLeaseLimit, spi.ErrStore}},
		{"the store is back", func() { store.fail(nil) }, nil},
		{"lost, and none free", func() { store.lose(0); store.first = 5000 }, []error{spi.ErrNoWorkerID}},
		{"closed", func() { _ = g.Close() }, []error{spi.ErrClosed}},
	} {
		step.do()
		err := g.Ready(t.Context())
		if step.want == nil && err != nil {
			t.Errorf("%s\nhave: %v\nwant: ready", step.what, err)
		}
		for _, want := range step.want {
			if !errors.Is(err, want) {
				t.Errorf("%s\nhave: %v\nwant: %v", step.what, err, want)
			}
		}
	}
	if n := *g.Health().Waits; n != 0 || store.acquired != 1 {
		t.Errorf("have: %d waits, %d worker IDs\nwant: 0, as none asked for a key, and 1", n, store.acquired)
	}
}

// The clock is behind by less than the tolerance, and the next key is after the lease.
func TestReady_waitsForALimit(t *testing.T) {
	g, clock, store := leased(t, config{MaxVibrationOffset: -1})
	mustKeys(t, g, 1)
	clock.now = time.UnixMilli(store.owner[0].Limit()).Add(-ms)
	mustKeys(t, g, 4096)
	clock.step(-5 * ms)
	store.fail(spi.ErrStore)
	wantErr(t, "store away", g.Ready(t.Context()), spi.ErrLeaseLimit)
	store.fail(nil)
}

// silentStore answers only when its caller gives up, and reports that in its health.
type silentStore struct{ *fakeStore }

func (s silentStore) AcquireWorkerID(ctx context.Context, _ int64) (spi.WorkerIDLease, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silentStore) Health() spi.Health { return spi.Health{Err: spi.ErrStore} }

func TestReady_endsWithItsContext(t *testing.T) {
	clock := newHandClock()
	g := mustNew(t, config{Clock: clock, Assigner: silentStore{newFakeStore(clock)}})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(ms, cancel)
	if err := g.Ready(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, spi.ErrStore) {
		t.Errorf("have: %v\nwant: the context's error, and the assigner's", err)
	}
}
