package leaf

import (
	"errors"
	"sync"
	"testing"

	"github.com/shardkey/shardkey/internal/shardingtest"
	"github.com/shardkey/shardkey/spi"
)

// Keys that fit are those of their table, come once, and cost as many fetches as
// other keys.
func TestFittingKeys_fitAndComeOnce(t *testing.T) {
	for _, m := range []int64{2, 3, 16, 1024} {
		g, s := newFake(t, 5000, config{})
		var keys ledger
		var wg sync.WaitGroup
		for r := range int64(8) {
			wg.Go(func() {
				fit := shardingtest.Mod(m, r%m)
				for i := range 50 {
					own := make([]int64, 1+i%4)
					var err error
					if i%5 == 4 {
						err = g.GenerateInt64Keys(t.Context(), column, own)
					} else {
						err = g.GenerateFittingKeys(t.Context(), column, own, fit)
					}
					if err != nil {
						t.Error(err)
						return
					}
					for j, k := range own {
						if i%5 != 4 && k%m != r%m || j > 0 && k <= own[j-1] {
							t.Errorf("mod %d, want %d ascending\nhave: %v", m, r%m, own)
						}
					}
					keys.add(t, "a caller", own...)
				}
			})
		}
		wg.Wait()
		if n, most := len(s.sizes()), int(1000*m/5000)*2+20; n > most {
			t.Errorf("mod %d\nhave: %d fetches\nwant: at most %d", m, n, most)
		}
	}
}

func TestFittingKeys_oneReservation(t *testing.T) {
	g, s := newFake(t, 100, config{})
	keys := make([]int64, 500)
	if err := g.GenerateFittingKeys(t.Context(), column, keys, shardingtest.Mod(16, 5)); err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		if k%16 != 5 || i > 0 && k != keys[i-1]+16 {
			t.Fatalf("have: %d after %d\nwant: every 16th", k, keys[max(i, 1)-1])
		}
	}
	if n := len(s.sizes()); n > 2 {
		t.Errorf("have: %v claimed\nwant: one segment, and one ahead", s.sizes())
	}
}

func TestFittingKeys_none(t *testing.T) {
	g, _ := newFake(t, 1000, config{})
	err := g.GenerateFittingKeys(t.Context(), column, make([]int64, 1), shardingtest.Func(func(int64) bool { return false }))
	if !errors.Is(err, spi.ErrNoFittingKey) {
		t.Errorf("have: %v\nwant: ErrNoFittingKey", err)
	}
}
