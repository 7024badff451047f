package snowflake

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// bubbleEpoch is before the time at which bubbles of synctest begin. Each bubble has another
// epoch, because state is shared by epoch.
var (
	bubbleEpoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	bubbles     atomic.Int64
)

// inBubble runs f with a generator on the bubble's clock.
func inBubble(t *testing.T, cfg config, f func(t *testing.T, g *generator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.Epoch, cfg.WorkerIDSet = bubbleEpoch.Add(-time.Duration(bubbles.Add(1))*time.Second), true
		f(t, mustNew(t, cfg))
	})
}

func TestQueue_waitsForTheNextTick(t *testing.T) {
	inBubble(t, config{}, func(t *testing.T, g *generator) {
		start := time.Now()
		mustKeys(t, g, 4096)
		equal(t, "waited for the first tick", time.Since(start), 0)
		mustKeys(t, g, 1)
		equal(t, "waited for the second", time.Since(start), time.Millisecond)
		if h := g.Health(); *h.Waits != 1 || h.Waited != time.Millisecond || h.Issued != 4097 {
			t.Errorf("\nhave: %+v\nwant: one wait of 1ms, 4097 issued", h)
		}
	})
}

func TestQueue_largeBatchComesInBlocks(t *testing.T) {
	for _, ring := range []int{1, 200} {
		inBubble(t, config{RingSize: ring}, func(t *testing.T, g *generator) {
			mustKeys(t, g, 10)
			start := time.Now()
			keys := mustKeys(t, g, 10_000)
			equal(t, "waited, as the tick was in use", time.Since(start), 3*time.Millisecond)
			for i := 1; i < len(keys); i++ {
				if i%4096 != 0 && keys[i] != keys[i-1]+1 || keys[i] <= keys[i-1] {
					t.Fatalf("key %d\nhave: %d after %d\nwant: contiguous blocks that ascend", i, keys[i], keys[i-1])
				}
			}
		})
	}
}

func TestQueue_canceledWaitersLeave(t *testing.T) {
	inBubble(t, config{Layout: Layout{TimeBits: 41, SequenceBits: 0, Tick: 10 * time.Second}}, func(t *testing.T, g *generator) {
		mustKeys(t, g, 2) // the second waits for a tick to begin, so the next one is 10 s away
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i+1)*time.Second/2)
				defer cancel()
				_, err := g.Next(ctx)
				if have := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || have != time.Duration(i+1)*time.Second/2 {
					t.Errorf("waiter %d\nhave: %v after %v\nwant: deadline exceeded at its time", i, err, have)
				}
			})
		}
		wg.Wait()
		if have := g.waiting.Load(); have != 0 || g.queue.Len() > 0 {
			t.Errorf("\nhave: %d in the queue\nwant: none", have)
		}
		mustKeys(t, g, 1)
		equal(t, "deadlines", g.Health().Errors["deadline"], 10)
	})
}

func TestQueue_isServedInOrder(t *testing.T) {
	inBubble(t, config{Layout: Layout{TimeBits: 41, SequenceBits: 1}}, func(t *testing.T, g *generator) {
		mustKeys(t, g, 2)
		keys := make([]atomic.Int64, 8)
		for i := range keys {
			go func() {
				key, err := g.Next(context.Background())
				if err != nil {
					t.Error(err)
				}
				keys[i].Store(key)
			}()
			synctest.Wait()
		}
		time.Sleep(3 * time.Millisecond)
		synctest.Wait()
		order := loadAll(keys)
		if order[5] == 0 || order[6] != 0 {
			t.Errorf("\nhave: %v\nwant: six callers served in three milliseconds", order)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		order = loadAll(keys)
		if !slices.IsSorted(order) || order[7] == 0 {
			t.Errorf("\nhave: %v\nwant: keys in the order of the callers", order)
		}
	})
}

func loadAll(values []atomic.Int64) []int64 {
	loaded := make([]int64, len(values))
	for i := range values {
		loaded[i] = values[i].Load()
	}
	return loaded
}

func TestQueue_closeEndsWaits(t *testing.T) {
	inBubble(t, config{Layout: Layout{TimeBits: 41, Tick: time.Hour, WorkerBits: 1}}, func(t *testing.T, g *generator) {
		mustKeys(t, g, 1)
		errs := make(chan error, 5)
		for range cap(errs) {
			go func() {
				_, err := g.Next(context.Background())
				errs <- err
			}()
		}
		synctest.Wait()
		start := time.Now()
		for range 2 {
			wantErr(t, "close", g.Close(), nil)
		}
		for range cap(errs) {
			wantErr(t, "a caller that waits", <-errs, spi.ErrClosed)
		}
		equal(t, "closed after", time.Since(start), 0)
		if _, err := g.Next(context.Background()); !errors.Is(err, spi.ErrClosed) {
			t.Errorf("\nhave: %v\nwant: %v", err, spi.ErrClosed)
		}
	})
}

// A goroutine that sleeps too long loses no ticks while the layout is saturated. Afterwards, keys
// return to the clock's time.
func TestQueue_saturatedKeysCatchUp(t *testing.T) {
	for _, ring := range []int{1, 200} {
		inBubble(t, config{RingSize: ring}, func(t *testing.T, g *generator) {
			mustKeys(t, g, 4096)
			mustKeys(t, g, 4096)
			time.Sleep(10 * time.Millisecond)
			start := time.Now()
			mustKeys(t, g, 10*4096)
			equal(t, "waited for ticks that have passed", time.Since(start), 0)
			mustKeys(t, g, 1)
			equal(t, "waited for the next tick", time.Since(start), time.Millisecond)
			time.Sleep(catchUpTime + 2*time.Millisecond)
			parts, err := g.DecodeKey(mustKeys(t, g, 1)[0])
			if have := time.Since(parts.Time); err != nil || have != 0 {
				t.Errorf("ring %d\nhave: a key of %v ago (%v)\nwant: one of now", ring, have, err)
			}
		})
	}
}

// If the demand fills each tick's sequence but uses fewer ticks than pass, keys don't fall
// further and further behind the clock.
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

// While many callers wait, the first of them sleeps slightly longer than to the next tick. A new
// caller finds free keys, but is served after the waiting ones.
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
			newest := mustKeys(t, g, batch)
			wg.Wait()
			if last := slices.Max(keys); newest[0] < last {
				t.Errorf("%d keys\nhave: %d\nwant: above %d, the last of those that waited", batch, newest[0], last)
			}
		})
	}
}

// Callers don't wait for all keys of a call that needs many ticks.
func TestQueue_smallCallsPassALargeOne(t *testing.T) {
	inBubble(t, config{}, func(t *testing.T, g *generator) {
		mustKeys(t, g, 4096)
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			keys := mustKeys(t, g, 100*4096)
			if have := time.Since(start); have < 100*time.Millisecond || have > 110*time.Millisecond || !slices.IsSorted(keys) {
				t.Errorf("\nhave: %v for a hundred ticks\nwant: little more than 100ms, ascending", have)
			}
		})
		synctest.Wait()
		for range 5 {
			before := time.Now()
			mustKeys(t, g, 1)
			if have := time.Since(before); have > 3*time.Millisecond {
				t.Errorf("\nhave: a small call waited %v\nwant: a tick or two", have)
			}
		}
		wg.Wait()
	})
}
