package bench

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Batch returns a benchmark that generates shardkey's keys in batches of n. It measures the time
// of a batch.
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

// Ceiling is the largest number of keys per second with layout 41-10-12.
const Ceiling = 4096 * 1000

// Load is the result of a saturated subject.
type Load struct {
	Share float64       // of Ceiling
	Cores float64       // processor time per second
	Stall time.Duration // the longest call, or 0 if calls aren't timed
}

// Saturate generates keys of s for d in goroutines. Timing each call costs more than generating a
// key, so measure cores and stalls in different runs.
func Saturate(s Subject, goroutines int, d time.Duration, timed bool) (Load, error) {
	next, done, err := s.Open()
	if err != nil {
		return Load{}, err
	}
	defer done()
	// Wait until unused ticks of the previous run are over. They would count here.
	time.Sleep(100 * time.Millisecond)
	batch := 256
	if timed {
		batch = 1
	}
	var mu sync.Mutex
	var keys int
	var stall time.Duration
	cpu, start := ProcessorTime(), time.Now()
	err = AtOnce(goroutines, func(int) error {
		n, longest, err := take(next, batch, start.Add(d))
		mu.Lock()
		defer mu.Unlock()
		keys, stall = keys+n, max(stall, longest)
		return err
	})
	took := time.Since(start).Seconds()
	return Load{
		Share: float64(keys) / took / Ceiling,
		Cores: (ProcessorTime() - cpu).Seconds() / took,
		Stall: stall,
	}, err
}

// take generates keys until a time, at least one batch. It returns the number of keys and the
// longest time of a batch.
func take(next func() error, batch int, until time.Time) (n int, longest time.Duration, err error) {
	for last := time.Now(); n == 0 || last.Before(until); n += batch {
		for range batch {
			if err := next(); err != nil {
				return n, longest, err
			}
		}
		now := time.Now()
		longest, last = max(longest, now.Sub(last)), now
	}
	return n, longest, nil
}
