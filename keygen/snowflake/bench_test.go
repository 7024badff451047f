package snowflake

import (
	"context"
	"fmt"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

// wide has a sequence that no machine fills, so that benchmarks measure the
// code and not the wait for the next millisecond.
var wide = Layout{TimeBits: 41, SequenceBits: 22}

func BenchmarkNext(b *testing.B) {
	for _, ring := range []int{1, 200} {
		b.Run(fmt.Sprintf("ring=%d", ring), func(b *testing.B) {
			g := mustNew(b, config{Layout: wide, WorkerIDSet: true, RingSize: ring})
			b.ReportAllocs()
			key := make([]int64, 1)
			for b.Loop() {
				if err := g.GenerateInt64Keys(context.Background(), spi.Column{}, key); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNextParallel(b *testing.B) {
	g := mustNew(b, config{Layout: wide, WorkerIDSet: true})
	b.SetParallelism(8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		key := make([]int64, 1)
		for pb.Next() {
			if err := g.GenerateInt64Keys(context.Background(), spi.Column{}, key); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkBatch(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := mustNew(b, config{Layout: wide, WorkerIDSet: true})
			keys := make([]int64, n)
			b.ReportAllocs()
			for b.Loop() {
				if err := g.GenerateInt64Keys(context.Background(), spi.Column{}, keys); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
		})
	}
}
