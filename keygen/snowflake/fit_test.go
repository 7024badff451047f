package snowflake

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/shardingtest"
	"github.com/shardkey/shardkey/spi"
)

func fittingKeys(t testing.TB, g *Generator, n int, fit spi.KeyFit) []int64 {
	t.Helper()
	keys := make([]int64, n)
	if err := g.GenerateFittingKeys(t.Context(), spi.Column{}, keys, fit); err != nil {
		t.Fatal(err)
	}
	return keys
}

// Keys of random statements into random tables fit, ascend, and come once, whatever
// the clock and the other keys.
func TestFittingKeys_random(t *testing.T) {
	for _, ring := range []int{1, 200} {
		for _, m := range []int64{1, 2, 3, 7, 16, 100, 1024, 4096} {
			for _, hash := range []bool{false, true} {
				t.Run(fmt.Sprintf("ring %d mod %d hash %v", ring, m, hash), func(t *testing.T) {
					rnd := rand.New(rand.NewPCG(uint64(m), uint64(ring)))
					clock := newHandClock()
					g := mustNew(t, Config{Clock: clock, WorkerID: 21, RingSize: ring, ClockBack: ClockBackBorrow})
					seen := map[int64]bool{}
					made := int64(0)
					for range 300 {
						var fit spi.KeyFit = shardingtest.Mod(m, rnd.Int64N(m))
						if hash {
							fit = shardingtest.Hash(m, rnd.Int64N(m))
						}
						keys := []int64(nil)
						if rnd.IntN(4) == 0 {
							fit = shardingtest.Mod(1, 0)
							keys = mustKeys(t, g, 1+rnd.IntN(9))
						} else {
							keys = fittingKeys(t, g, 1+rnd.IntN(9), fit)
						}
						made += int64(len(keys))
						for i, key := range keys {
							if seen[key] || !fit.Has(key) || i > 0 && key <= keys[i-1] {
								t.Fatalf("have: %v, key %d seen %v, fits %v\nwant: new keys that fit", keys, key, seen[key], fit.Has(key))
							}
							seen[key] = true
						}
						switch rnd.IntN(8) {
						case 0:
							clock.step(time.Duration(rnd.IntN(5)) * ms)
						case 1:
							clock.step(-time.Duration(rnd.IntN(5)) * ms)
						}
					}
					if have := g.Health().Issued; have != made {
						t.Errorf("have: %d keys issued in the health\nwant: %d", have, made)
					}
				})
			}
		}
	}
}

// A fixed table gets its part of each tick's sequence, and no more time passes.
func TestFittingKeys_share(t *testing.T) {
	for _, m := range []int64{2, 16, 1024} {
		clock := newHandClock()
		g := mustNew(t, Config{Clock: clock, WorkerID: 1})
		mustKeys(t, g, 1)
		clock.step(ms)
		start := clock.Now()
		fit := shardingtest.Mod(m, m-1)
		for range 20 * 4096 / m {
			fittingKeys(t, g, 1, fit)
		}
		if have := clock.Now().Sub(start); have != 19*ms {
			t.Errorf("mod %d\nhave: %v for the keys of 20 ticks\nwant: 19ms of waiting", m, have)
		}
	}
}

// As many keys as a tick has for certain are of one tick.
func TestFittingKeys_oneReservation(t *testing.T) {
	clock := newHandClock()
	g := mustNew(t, Config{Clock: clock, WorkerID: 1})
	for range 3 {
		keys := fittingKeys(t, g, 256, shardingtest.Mod(16, 3))
		if keys[255]-keys[0] != 255*16 {
			t.Errorf("have: %d to %d\nwant: every 16th number of one tick", keys[0], keys[255])
		}
	}
	keys := fittingKeys(t, g, 1000, shardingtest.Mod(16, 3)) // of several ticks
	for i, key := range keys {
		if key%16 != 3 || i > 0 && key <= keys[i-1] {
			t.Fatalf("have: %d after %d", key, keys[max(1, i)-1])
		}
	}
}

// Where a tick may have no key that fits, the next one that has is waited for.
func TestFittingKeys_fewTicks(t *testing.T) {
	for _, ring := range []int{1, 200} {
		clock := newHandClock()
		g := mustNew(t, Config{Clock: clock, WorkerID: 1, RingSize: ring, ClockBack: ClockBackBorrow})
		last := int64(0)
		for i := range 40 {
			key := fittingKeys(t, g, 1, shardingtest.Mod(10007, 5))[0]
			if key%10007 != 5 || ring == 1 && key <= last {
				t.Fatalf("have: %d after %d", key, last)
			}
			if last = key; i%2 == 1 {
				clock.step(-300 * ms) // ticks ahead of the clock may be used
			}
		}
	}
}

func TestFittingKeys_none(t *testing.T) {
	for _, ring := range []int{1, 200} {
		clock := newHandClock()
		g := mustNew(t, Config{Clock: clock, WorkerID: 1, RingSize: ring})
		// The lowest bit of the worker decides.
		err := g.GenerateFittingKeys(t.Context(), spi.Column{}, make([]int64, 1), shardingtest.Mod(8192, 0))
		if !errors.Is(err, spi.ErrNoFittingKey) {
			t.Errorf("ring %d\nhave: %v\nwant: ErrNoFittingKey", ring, err)
		}
		mustKeys(t, g, 1) // others are served
	}
}

// Many goroutines, with keys that fit and any.
func TestFittingKeys_concurrent(t *testing.T) {
	g := mustNew(t, Config{WorkerID: 9})
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for r := range int64(8) {
		wg.Go(func() {
			fit := shardingtest.Mod(16, r)
			for i := range 2000 {
				keys := make([]int64, 1+i%3)
				var err error
				if i%4 == 3 {
					err = g.GenerateInt64Keys(t.Context(), spi.Column{}, keys)
				} else {
					err = g.GenerateFittingKeys(t.Context(), spi.Column{}, keys, fit)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, key := range keys {
					if seen[key] || i%4 != 3 && key%16 != r {
						t.Errorf("have: %d for %d, seen: %v", key, r, seen[key])
					}
					seen[key] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
