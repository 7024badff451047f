package snowflake

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// TestSoak_uniqueKeys lets 64 goroutines on 16 processors take keys by all doors,
// alone and in batches, of two generators that share a worker id.
// SHARDKEY_SOAK=1m makes it last that long in all.
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

// soak is how long a part of a test goes on repeating itself: not at all, or a
// sixth of the time that SHARDKEY_SOAK gives.
func soak(t testing.TB) time.Duration {
	text := os.Getenv("SHARDKEY_SOAK")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("SHARDKEY_SOAK: %v", err)
	}
	return d / 6
}

func uniqueRound(t *testing.T, layout Layout, ring int) {
	const goroutines = 64
	perGoroutine := min(3000, 100*int(layout.MaxSequence()+1))
	if layout == wide {
		perGoroutine = 30_000 // nobody waits, so that the word is contended all the time
	}
	cfg := config{Layout: layout, RingSize: ring, WorkerIDSet: true}
	generators := []*generator{mustNew(t, cfg), mustNew(t, cfg)}
	mustKeys(t, generators[0], 1) // takes the worker id, whose figures outlive a round
	issued := generators[0].Health().Issued
	made := make([][]int64, goroutines)
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() { made[i] = takeKeys(t, generators[i%2], perGoroutine) })
	}
	wg.Wait()
	all := slices.Concat(made...)
	slices.Sort(all)
	if n := len(all) - len(slices.Compact(all)); n != 0 {
		t.Errorf("\nhave: %d keys twice among %d\nwant: none", n, len(all))
	}
	if have := generators[0].Health().Issued - issued; have != int64(len(all)) {
		t.Errorf("\nhave: %d issued\nwant: %d", have, len(all))
	}
}

// takeKeys takes n keys, some alone and some in batches, and checks that they
// ascend and that batches are contiguous.
func takeKeys(t *testing.T, g *generator, n int) []int64 {
	keys := make([]int64, 0, n+64)
	for len(keys) < n {
		size := 1
		if len(keys)%3 == 0 {
			size = int(min(g.seqMask+1, uint64(1+len(keys)%64)))
		}
		batch := make([]int64, size)
		var err error
		if size == 1 {
			batch[0], err = g.Next(context.Background())
		} else {
			err = g.GenerateInt64Keys(context.Background(), spi.Column{}, batch)
		}
		if err != nil {
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
