//go:build !race

package rewrite

import (
	"runtime"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// TestMemory_planAndFill checks that planning a long statement and writing its keys allocates at
// most twice the statement's length, including the result.
// With -race, the compiler allocates what slices.Grow appends, so the test is left out.
func TestMemory_planAndFill(t *testing.T) {
	absent := rowsText(4 << 20)
	given := strings.Replace(strings.ReplaceAll(absent, "), (", "), (NULL, "), "(a, s) VALUES (", "(id, a, s) VALUES (NULL, ", 1)
	for name, text := range map[string]string{"key absent": absent, "key given": given} {
		t.Run(name, func(t *testing.T) {
			plan, err := Parse(text, benchmarkOptions())
			must.Do(t, err)
			keys := benchmarkKeys(plan)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if plan, err = Parse(text, benchmarkOptions()); err == nil {
				plan.literal(&keys)
			}
			runtime.ReadMemStats(&after)
			if have, want := after.TotalAlloc-before.TotalAlloc, 2*uint64(len(text)); have > want {
				t.Errorf("bytes allocated for %d rows, %d bytes of text\nhave: %d\nwant: at most %d", len(plan.Insert.Rows), len(text), have, want)
			}
		})
	}
}
