package bench

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Batch is a benchmark of our keys in batches of n; its time is that of a
// batch.
func Batch(n int) func(*testing.B) {
	return func(b *testing.B) {
		g, err := newGenerator("SNOWFLAKE", props{"layout": wide, "worker-id-assigner": "leases"})
		if err != nil {
			b.Fatal(err)
		}
		defer g.(io.Closer).Close()
		ints := g.(spi.Int64KeyGenerator)
		keys := make([]int64, n)
		b.ReportAllocs()
		for b.Loop() {
			if err := ints.GenerateInt64Keys(context.Background(), spi.Column{}, keys); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
	}
}

// Ceiling is how many keys a second 41-10-12 has.
const Ceiling = 4096 * 1000

// Load is what a saturated subject did.
type Load struct {
	Share float64       // of the ceiling
	Cores float64       // processor time a second
	Stall time.Duration // the longest call of all; 0 when calls were not timed
}

// Saturate lets goroutines take keys of s for d. Timing each call costs more
// than a key does, so that cores and stalls are measured in different runs.
func Saturate(s Subject, goroutines int, d time.Duration, timed bool) (Load, error) {
	next, done, err := s.Open()
	if err != nil {
		return Load{}, err
	}
	defer done()
	// Ticks that the run before left unused must not count here.
	time.Sleep(100 * time.Millisecond)
	var keys, stall atomic.Int64
	var failure atomic.Pointer[error]
	var wg sync.WaitGroup
	cpu, start := ProcessorTime(), time.Now()
	for range goroutines {
		wg.Go(func() {
			run := untimed
			if timed {
				run = everyCall
			}
			n, longest, err := run(next, start.Add(d))
			if err != nil {
				failure.Store(&err)
			}
			keys.Add(n)
			for old := stall.Load(); int64(longest) > old && !stall.CompareAndSwap(old, int64(longest)); old = stall.Load() {
			}
		})
	}
	wg.Wait()
	took := time.Since(start).Seconds()
	if err := failure.Load(); err != nil {
		return Load{}, *err
	}
	return Load{
		Share: float64(keys.Load()) / took / Ceiling,
		Cores: (ProcessorTime() - cpu).Seconds() / took,
		Stall: time.Duration(stall.Load()),
	}, nil
}

func untimed(next func() error, until time.Time) (n int64, _ time.Duration, err error) {
	for {
		for range 256 {
			if err := next(); err != nil {
				return n, 0, err
			}
			n++
		}
		if !time.Now().Before(until) {
			return n, 0, nil
		}
	}
}

func everyCall(next func() error, until time.Time) (n int64, longest time.Duration, err error) {
	for last := time.Now(); last.Before(until); n++ {
		if err := next(); err != nil {
			return n, longest, err
		}
		now := time.Now()
		longest, last = max(longest, now.Sub(last)), now
	}
	return n, longest, nil
}
