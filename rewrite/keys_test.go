package rewrite

import (
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// TestBoxedKeys reads the keys of INSERTs in any order.
func TestBoxedKeys(t *testing.T) {
	for _, n := range []int{1, 2, 64, 200} {
		keys := Keys{Ints: make([]int64, n)}
		for i := range keys.Ints {
			keys.Ints[i] = int64(i) + 1000
		}
		var boxed boxedKeys
		for i := range 200 {
			for _, at := range []int{i % n, n - 1 - i%n} {
				must.Equal(t, boxed.at(&keys, at), any(keys.Ints[at]))
			}
		}
	}
}

// TestBoxedKeys_allocations: the keys of a batch need few allocations.
func TestBoxedKeys_allocations(t *testing.T) {
	keys := Keys{Ints: make([]int64, 640)}
	for i := range keys.Ints {
		keys.Ints[i] = 1000 + int64(i)
	}
	var last any
	must.Equal(t, testing.AllocsPerRun(10, func() {
		var boxed boxedKeys
		for i := range keys.Ints {
			last = boxed.at(&keys, i)
		}
	}), 10)
	must.Equal(t, last, any(keys.Ints[639]))
}
