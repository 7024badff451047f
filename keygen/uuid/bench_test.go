package uuid

import (
	"context"
	"fmt"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

func BenchmarkUUID(b *testing.B) {
	for _, version := range []int{4, 7} {
		b.Run(fmt.Sprintf("v%d", version), func(b *testing.B) {
			g := mustNew(b, config{version: version})
			b.SetParallelism(8)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := g.uuid(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func BenchmarkGenerateKeys(b *testing.B) {
	for _, format := range []string{hexFormat, canonicalFormat, binaryFormat} {
		for _, n := range []int{1, 100} {
			b.Run(fmt.Sprintf("%s/%d", format, n), func(b *testing.B) {
				g := mustNew(b, config{format: format})
				b.ReportAllocs()
				for b.Loop() {
					if _, err := g.GenerateKeys(context.Background(), spi.Column{}, n); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
