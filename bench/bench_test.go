package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// BenchmarkKey generates keys one by one, below saturation.
func BenchmarkKey(b *testing.B) {
	for _, s := range slices.Concat(snowflakes, random) {
		for _, goroutines := range []int{1, 2, 16} {
			b.Run(fmt.Sprintf("%s/%d", s.name, goroutines), func(b *testing.B) {
				next, done, err := s.open()
				if err != nil {
					b.Fatal(err)
				}
				defer done()
				b.ReportAllocs()
				b.ResetTimer()
				err = AtOnce(goroutines, func(int) error {
					for range b.N/goroutines + 1 {
						if err := next(); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkBatch generates keys of shardkey in batches.
func BenchmarkBatch(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
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
		})
	}
}

// BenchmarkSaturated generates as many keys as layout 41-10-12 permits, in 16 goroutines for a
// second. Timing each call costs more than a key, so the longest call is from another second.
func BenchmarkSaturated(b *testing.B) {
	const most = 4096 * 1000 // keys a second
	for _, s := range saturated {
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				keys, cores, _ := saturate(b, s, 16, time.Second, 256)
				_, _, stall := saturate(b, s, 16, time.Second, 1)
				b.ReportMetric(100*keys/most, "%")
				b.ReportMetric(cores, "cores")
				b.ReportMetric(float64(stall.Microseconds()), "µs-stall")
			}
		})
	}
}

// saturate generates keys for d in goroutines. It returns the keys and the processor time per
// second, and the longest time of a batch.
func saturate(t testing.TB, s subject, goroutines int, d time.Duration, batch int) (
	keys, cores float64, stall time.Duration) {
	next, done, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	time.Sleep(100 * time.Millisecond) // unused ticks of the previous run would count
	var mu sync.Mutex
	cpu, start := ProcessorTime(0), time.Now()
	err = AtOnce(goroutines, func(int) error {
		for last := time.Now(); last.Before(start.Add(d)); {
			for range batch {
				if err := next(); err != nil {
					return err
				}
			}
			now := time.Now()
			mu.Lock()
			keys, stall = keys+float64(batch), max(stall, now.Sub(last))
			mu.Unlock()
			last = now
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	took := time.Since(start).Seconds()
	return keys / took, (ProcessorTime(0) - cpu).Seconds() / took, stall
}

// Every subject generates keys, so that no benchmark measures an error.
func TestSubjects(t *testing.T) {
	for _, s := range slices.Concat(snowflakes, random, saturated) {
		if keys, _, stall := saturate(t, s, 4, 5*time.Millisecond, 1); keys <= 0 || stall <= 0 {
			t.Errorf("%s\nhave: %v keys\nwant: some", s.name, keys)
		}
	}
}
