package fill

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// A search without a match doubles its keys up to a batch of 1,024, and ends after 4,096 keys and
// eight for each target. With more than 256 keys it has the lock.
func TestSearch_ends(t *testing.T) {
	for targets, want := range map[int]int{0: 4096, 1: 5120, 200: 5704, 2000: 20480} {
		s := search[int64]{name: "t"}
		s.begin(func(int64) bool { return false }, targets)
		s.add(0)
		made, of := 0, NewLock()
		err := s.run(t.Context(), of, make([]int64, 1), func(_ context.Context, n int) ([]int64, error) {
			if made += n; len(of) > 0 != (made > maxFree) {
				t.Errorf("one of %d, %d keys\nhave: %d locks", targets, made, len(of))
			}
			return make([]int64, n), nil
		})
		must.Equal(t, fmt.Sprint(err), fmt.Sprintf("none of the last %d keys belongs in t", want), "one of", targets)
		must.Equal(t, len(of), 0, "locks at the end")
	}
	var none search[int64]
	must.Do(t, none.run(t.Context(), nil, nil, func(context.Context, int) ([]int64, error) { return nil, errors.New("called") }))
}

// Rows with the same shard bits form a group, unless a single row was expected.
func TestBitsSearch_groups(t *testing.T) {
	for n, want := range map[int]int{1: 5, 2: 3} {
		b := (&Table{shardBits: &rule.ShardBits{Bits: 4}}).newBitsSearch("t", n)
		for _, bits := range []int64{0, 5, 0, 15, 5} {
			b.add(bits)
		}
		must.Equal(t, len(b.groups), want, "groups, expecting rows:", n)
		must.Equal(t, b.targets, 16, "targets")
		must.Equal(t, b.groups[0].belongs(0) && !b.groups[0].belongs(-16), true, "keys from 0 on belong")
	}
}

// The guard knows the stored value of a float if the server writes it without a fraction or an
// exponent.
func TestStored_floats(t *testing.T) {
	for _, tt := range []struct {
		value float64
		want  any
	}{
		{0, int64(0)}, {math.Copysign(0, -1), nil}, {5, int64(5)}, {-5, int64(-5)}, {0.5, nil}, {math.NaN(), nil},
		{1e15 - 1, int64(1e15 - 1)}, {1e15, nil}, {1 - 1e15, int64(1 - 1e15)}, {-1e15, nil}, {1e18, nil}, {-1e18, nil},
	} {
		if have, ok := stored(tt.value); ok != (tt.want != nil) || ok && have != tt.want {
			t.Errorf("%v\nhave: %v, %v\nwant: %v", tt.value, have, ok, tt.want)
		}
	}
}

// Each key goes to the first row that it fits and that has none, and no further keys are made.
func TestSearch_keeps(t *testing.T) {
	s := search[int64]{name: "t"}
	s.begin(func(key int64) bool { return key%2 == 0 }, 2)
	s.add(0)
	s.add(2)
	s.begin(func(key int64) bool { return key%2 != 0 }, 2)
	s.add(1)
	keys, calls := make([]int64, 3), 0
	must.Do(t, s.run(t.Context(), NewLock(), keys, func(_ context.Context, n int) ([]int64, error) {
		calls++
		return []int64{1, 2, 3, 4, 5}[:n], nil
	}))
	must.Equal(t, fmt.Sprint(keys, calls), "[2 1 4] 1")
}

// ascending are keys from 1.
type ascending int64

func (a *ascending) GenerateInt64Keys(_ context.Context, _ spi.Column, keys []int64) error {
	for i := range keys {
		*a++
		keys[i] = int64(*a)
	}
	return nil
}

func (a *ascending) GenerateKeys(ctx context.Context, c spi.Column, n int) ([]any, error) {
	return nil, errors.New("no text")
}

func TestBitsSearch_makes(t *testing.T) {
	table := &Table{Rule: &rule.Table{}, Counts: &Counts{}, ints: new(ascending), lock: NewLock(), shardBits: &rule.ShardBits{Bits: 4}}
	for _, want := range [][]int64{{3}, {3, 3, 5}} {
		b := table.newBitsSearch("t", len(want))
		for _, bits := range want {
			b.add(bits)
		}
		keys := must.Get(b.make(t.Context(), new([1]int64)))(t)
		must.Equal(t, keys.Len(), len(want))
		for i, bits := range want {
			must.Equal(t, keys.Ints[i]&15, bits, "the shard bits of row", i)
		}
	}
}
