package rewrite

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// next evaluates the expression in a state: it returns the row's key and the next state. ok is false if the
// expression causes an error.
func (c *counter) next(state uint64) (key, to uint64, ok bool) {
	switch state {
	case c.first.from:
		return c.first.key, c.first.to, true
	case c.stop:
		return 0, 1, false
	}
	for _, m := range c.moves {
		if m.from == state {
			return m.key, m.to, true
		}
	}
	return state, state + c.step, c.low <= state && state <= c.high
}

// TestCounter_handsOut: each row gets its key, LAST_INSERT_ID() is the first key after the rows that were
// counted, further rows get the additional keys but the last, and the next one fails.
func TestCounter_handsOut(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	places := 0
	for range 20_000 {
		keys := make([]int64, 1+r.IntN(12))
		key, step := 100+int64(r.IntN(5)), 1+int64(r.IntN(3))
		for i := range keys {
			keys[i] = key
			if key += step; r.IntN(8) == 0 {
				key += int64(r.IntN(4))
			}
		}
		n := 1 + r.IntN(len(keys))
		last := uint64(r.IntN(2)) * 5000
		c := must.Get(newCounter(keys, n, last))(t)
		if _, ok := c.values(); ok {
			places++
		}
		state, ok, have := last, true, []uint64(nil)
		for row := 0; ok; row++ {
			var got uint64
			if got, state, ok = c.next(state); ok {
				have = append(have, got)
			}
			if row == n-1 && state != uint64(keys[0]) {
				t.Fatalf("keys %v for %d rows\nhave: LAST_INSERT_ID() %d\nwant: the first key", keys, n, state)
			}
		}
		want := keys[:n]
		if len(keys) > n+1 {
			want = keys[:len(keys)-1]
		}
		if fmt.Sprint(have) != fmt.Sprint(want) {
			t.Fatalf("keys %v for %d rows, LAST_INSERT_ID() %d\nhave: %v\nwant: %v", keys, n, last, have, want)
		}
	}
	must.Equal(t, places > 15_000, true, "statements with placeholders:", places)
}

// TestCounter_placeholders: keys that are equally far from each other need one move, for the last row.
func TestCounter_placeholders(t *testing.T) {
	for _, step := range []int64{1, 2, 5} {
		for _, odd := range []int{-1, 1, 4, 8} {
			var keys []int64
			for i := range 12 {
				keys = append(keys, 100+int64(i)*step)
				if i == odd {
					keys[i]--
				}
			}
			c := must.Get(newCounter(keys, len(keys), 0))(t)
			must.Equal(t, c.step, uint64(step), "the step, with another key at", odd)
			if odd < 0 {
				must.Equal(t, len(c.moves), 1)
			}
		}
	}
}

func TestCounter_refuses(t *testing.T) {
	for _, tt := range []struct {
		keys []int64
		last uint64
		ok   bool
	}{
		{[]int64{5, 6, 7}, 0, true}, {[]int64{5, 6, 7}, 4, true}, {[]int64{5, 6, 7}, 8, true},
		{[]int64{5, 6, 7}, 5, false}, {[]int64{5, 6, 7}, 6, false}, {[]int64{5, 6, 7}, 7, false},
		{[]int64{0, 1}, 9, false}, {[]int64{-1, 1}, 9, false}, {[]int64{1}, 9, true},
	} {
		_, err := newCounter(tt.keys, len(tt.keys), tt.last)
		must.Equal(t, err == nil, tt.ok, tt.keys, tt.last)
	}
}

// TestCounter_limits: a statement has places for 5 moves, and lists at most 10,000.
func TestCounter_limits(t *testing.T) {
	table := func(string, string) *Table { return &Table{Key: "id"} }
	p := mustParse(t, "INSERT INTO t (a) SELECT a FROM u WHERE b = ?", Options{Server: serverMariaDB, ReportKeys: true, Table: table})
	for moves, want := range map[int]string{5: "bound", 6: "listed", 10_000: "listed", 10_001: "refused"} {
		var keys []any
		for key := int64(100); len(keys) < 2*moves+4; key++ {
			if keys = append(keys, key); len(keys) > moves+4 {
				key++ // another move
			}
		}
		c := must.Get(newCounter(ints(keys), len(keys), 0))(t)
		must.Equal(t, len(c.moves), moves)
		have := "bound"
		switch query, args, err := p.RewriteSelect([]any{1}, keys, 0); {
		case err != nil:
			have = "refused"
		case len(args) == 1 && !strings.Contains(strings.ReplaceAll(query, "b = ?", ""), "?"):
			have = "listed"
		}
		must.Equal(t, have, want, moves, "moves")
	}
}

func ints(keys []any) (all []int64) {
	for _, key := range keys {
		all = append(all, key.(int64))
	}
	return all
}

// TestCounter_types: MySQL gives a placeholder an unsigned type where its value is compared with
// LAST_INSERT_ID() or added to it, and otherwise a signed one.
func TestCounter_types(t *testing.T) {
	parts := strings.Split(boundCounter, "?")
	for i, before := range parts[:boundCount] {
		want := strings.HasSuffix(before, "WHEN ") || strings.HasSuffix(before, "BETWEEN ") || strings.HasSuffix(before, " AND ") ||
			strings.HasSuffix(before, "+ ") || strings.HasSuffix(before, "- ")
		must.Equal(t, isUnsigned(i), want, "place", i, "behind", before)
	}
	table := func(string, string) *Table { return &Table{Key: "id"} }
	p := mustParse(t, "INSERT INTO t (a) SELECT LAST_INSERT_ID() FROM u WHERE b = ?", Options{Server: serverMariaDB, ReportKeys: true, Table: table})
	for last, want := range map[uint64]any{7: int64(7), math.MaxInt64: int64(math.MaxInt64), 1 << 63: uint64(1 << 63)} {
		_, args, err := p.RewriteSelect([]any{"b"}, []any{int64(100), int64(101)}, last)
		must.Do(t, err)
		must.Equal(t, args[0], want)
		for i, arg := range args[1 : 1+boundCount] {
			_, have := arg.(uint64)
			must.Equal(t, have, isUnsigned(i) || last > math.MaxInt64 && arg == any(last), "place", i, arg)
		}
	}
}
