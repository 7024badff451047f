package rule

import (
	"fmt"
	"strings"
	"testing"
)

// Rules that write their tables one by one, as generated ones do.
func BenchmarkParse(b *testing.B) {
	for _, tables := range []int{1, 1000, 100_000} {
		var text strings.Builder
		text.WriteString("rules:\n- !SHARDING\n  tables:\n")
		for i := range tables {
			fmt.Fprintf(&text, "    t_order_%06d:\n      actualDataNodes: ds_0.t_order_%06d\n      keyGenerateStrategy:\n        column: order_id\n        keyGeneratorName: snowflake\n", i, i)
		}
		text.WriteString("  keyGenerators:\n    snowflake: {type: UUID}\n")
		b.Run(fmt.Sprint(tables), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				if _, err := Parse("rule.yaml", []byte(text.String())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
