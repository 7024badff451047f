package snowflake

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Of two generators in the same history, one is asked whether it is ready before
// each key. It says what the key will say, and both make the same keys.
func TestReady_agreesWithTheNextKey(t *testing.T) {
	for seed := range uint64(80) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		cfg := config{ClockBack: []clockBack{clockBackWait, clockBackFail, clockBackBorrow}[rnd.IntN(3)], MaxVibrationOffset: rnd.IntN(3) * 2}
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
			switch n := rnd.IntN(12); {
			case n < 6:
				d := time.Duration(rnd.IntN(3)) * ms
				for i := range clocks {
					clocks[i].step(d)
				}
				history = append(history, fmt.Sprint(d))
			case n < 8:
				d := time.Duration(rnd.IntN(20)) * -ms
				for i := range clocks {
					clocks[i].step(d)
				}
				history = append(history, fmt.Sprint(d))
			case n == 8:
				for i := range clocks {
					clocks[i].step(15 * time.Second)
				}
				history = append(history, "15s")
			case n == 9 && leased:
				var err error
				if rnd.IntN(2) == 0 {
					err = spi.ErrStore
				}
				for i := range stores {
					stores[i].fail(err)
				}
				history = append(history, fmt.Sprint("store ", err))
			}
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
			history = append(history, fmt.Sprintf("%d keys, %v", many, errs[1]))
			if (ready == nil) != (errs[1] == nil) || fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) || errs[0] == nil && fmt.Sprint(keys[0]) != fmt.Sprint(keys[1]) {
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

// The ring's tick for the clock is full, and the next one's word is later's.
func TestReady_ringUsedUp(t *testing.T) {
	clock := newHandClock()
	g := mustNew(t, config{Clock: clock, WorkerIDSet: true, ClockBack: clockBackFail, RingSize: 4})
	mustKeys(t, g, 4096)
	clock.step(5 * ms) // to another word than the next tick's
	mustKeys(t, g, 1)
	clock.step(-5 * ms)
	if err := g.Ready(t.Context()); !errors.Is(err, spi.ErrClockBack) {
		t.Errorf("have: %v\nwant: spi.ErrClockBack", err)
	}
	clock.step(5 * ms)
	if err := g.Ready(t.Context()); err != nil {
		t.Errorf("have: %v\nwant: ready", err)
	}
}

func TestReady_leases(t *testing.T) {
	clock := newHandClock()
	store := newFakeStore(clock)
	g := mustNew(t, config{Clock: clock, Assigner: store})
	store.fail(spi.ErrStore)
	if err := g.Ready(t.Context()); !errors.Is(err, spi.ErrStore) {
		t.Errorf("no worker id yet, store away\nhave: %v\nwant: spi.ErrStore", err)
	}
	store.fail(nil)
	if err := g.Ready(t.Context()); err != nil || store.acquired != 1 {
		t.Errorf("have: %v, %d worker ids\nwant: one that is ready", err, store.acquired)
	}
	store.fail(spi.ErrStore)
	if err := g.Ready(t.Context()); err != nil {
		t.Errorf("store away, within the lease\nhave: %v\nwant: ready", err)
	}
	clock.step(time.Hour)
	var limit *leaseError
	if err := g.Ready(t.Context()); !errors.As(err, &limit) || !errors.Is(err, spi.ErrLeaseLimit) || !errors.Is(err, spi.ErrStore) {
		t.Errorf("store away, beyond the lease\nhave: %v\nwant: a leaseError of the store", err)
	}
	store.fail(nil)
	if err := g.Ready(t.Context()); err != nil {
		t.Errorf("the store is back\nhave: %v\nwant: ready", err)
	}
	store.lose(0)
	store.first = 5000
	if err := g.Ready(t.Context()); !errors.Is(err, spi.ErrNoWorkerID) {
		t.Errorf("lost, and none free\nhave: %v\nwant: spi.ErrNoWorkerID", err)
	}
	if n := *g.Health().Waits; n != 0 {
		t.Errorf("waits\nhave: %d\nwant: 0: none asked for a key", n)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Ready(t.Context()); !errors.Is(err, spi.ErrClosed) {
		t.Errorf("closed\nhave: %v\nwant: spi.ErrClosed", err)
	}
}

// silentStore answers when its caller gives up, and says so in its health.
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
