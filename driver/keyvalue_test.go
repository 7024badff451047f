package driver

import "testing"

// TestBoxedKeys reads the keys of several INSERTs in any order, with a buffer that is used again.
func TestBoxedKeys(t *testing.T) {
	lists := [][]int64{make([]int64, 1), make([]int64, 2), make([]int64, 64), make([]int64, 200)}
	next := int64(1)
	for _, keys := range lists {
		for i := range keys {
			keys[i], next = next, next+1
		}
	}
	var boxed boxedKeys
	for i := range 200 {
		for _, keys := range lists {
			for _, at := range []int{i % len(keys), len(keys) - 1 - i%len(keys)} {
				equal(t, boxed.at(keys, at), any(keys[at]))
			}
		}
	}
}

// TestBoxedKeys_allocations: the keys of a batch need few allocations.
func TestBoxedKeys_allocations(t *testing.T) {
	keys := make([]int64, 640)
	for i := range keys {
		keys[i] = 1000 + int64(i)
	}
	var last any
	equal(t, testing.AllocsPerRun(10, func() {
		var boxed boxedKeys
		for i := range keys {
			last = boxed.at(keys, i)
		}
	}), 10)
	equal(t, last, any(keys[639]))
}
