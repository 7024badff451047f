package redis

import (
	"fmt"
	"testing"

	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/spi"
)

func BenchmarkKeys(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			g := open(b, testserver.Redis(b))
			keys := make([]int64, n)
			for b.Loop() {
				if err := g.GenerateInt64Keys(b.Context(), spi.Column{}, keys); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "keys/s")
		})
	}
	b.Run("goroutines=16", func(b *testing.B) {
		g := open(b, testserver.Redis(b))
		b.SetParallelism(8) // times 2 processors
		b.RunParallel(func(pb *testing.PB) {
			keys := make([]int64, 1)
			for pb.Next() {
				if err := g.GenerateInt64Keys(b.Context(), spi.Column{}, keys); err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "keys/s")
	})
}
