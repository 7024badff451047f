package rewrite

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestDecimal_numbers(t *testing.T) {
	var d decimal
	check := func(n int64) {
		t.Helper()
		if have, want := string(d.text(n)), strconv.FormatInt(n, 10); have != want {
			t.Fatalf("have: %s\nwant: %s", have, want)
		}
	}
	for _, from := range []int64{math.MinInt64, -100_005, -11, 0, 5, 95, 999_990, 1_000_000_000_000_000_000 - 5, math.MaxInt64 - 12} {
		for i := range int64(12) {
			check(from + i)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 0))
	for range 10_000 {
		n := rnd.Int64() >> rnd.IntN(63)
		check(n)
		check(n + 1) // wraps at the largest
		check(n + 1)
	}
}
