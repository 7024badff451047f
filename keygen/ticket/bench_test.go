package ticket

import (
	"fmt"
	"testing"
)

// BenchmarkFetch asks one server for n numbers at a time, with nothing kept in
// memory.
func BenchmarkFetch(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dsn, _ := ticketDatabase(b)
			g := newGen(b, config{DSNs: []string{dsn}})
			keys := make([]int64, n)
			for b.Loop() {
				if err := g.GenerateInt64Keys(b.Context(), column, keys); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
		})
	}
}
