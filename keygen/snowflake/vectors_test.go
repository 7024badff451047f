package snowflake

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// fixedClock is ShardingSphere's: it begins at a time, returns the same
// millisecond n times, then the next call returns the following one and the
// count starts anew.
type fixedClock struct {
	now      time.Time
	n, calls int
}

func (c *fixedClock) Now() time.Time {
	if c.calls < c.n {
		c.calls++
		return c.now
	}
	c.calls = 0
	c.now = c.now.Add(time.Millisecond)
	return c.now
}

func (*fixedClock) Sleep(context.Context, time.Duration) error { return nil }

func vectors(t *testing.T) (v struct {
	TenKeys   []int64 `json:"ten_keys_clock_fixed_1"`
	Overflow  []int64 `json:"sequence_overflow_clock_fixed_2_last_at_epoch_sequence_4095"`
	SameMilli []int64 `json:"same_millisecond_max_vibration_3"`
	NewMilli  []int64 `json:"one_key_each_new_millisecond_max_vibration_3_low_bits"`
	EpochUTC  int64   `json:"epoch_ms_utc"`
}) {
	t.Helper()
	data, err := os.ReadFile("testdata/snowflake.json")
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestGenerator_vectors(t *testing.T) {
	v := vectors(t)
	if have := DefaultEpoch.UnixMilli(); have != v.EpochUTC {
		t.Fatalf("\nhave: epoch %d\nwant: epoch %d", have, v.EpochUTC)
	}
	const still = 1 << 30
	for _, tt := range []struct {
		name      string
		want      []int64
		calls     int
		vibration int
		full      bool // the epoch's millisecond is used up
		mask      int64
		step      time.Duration
	}{
		{name: "ten keys", want: v.TenKeys, calls: 1, vibration: 1, mask: -1},
		{name: "sequence overflow", want: v.Overflow, calls: 2, vibration: 1, full: true, mask: -1},
		{name: "same millisecond", want: v.SameMilli, calls: still, vibration: 3, mask: -1},
		{name: "each new millisecond", want: v.NewMilli, calls: still, vibration: 3, mask: 3, step: time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock := &fixedClock{now: DefaultEpoch, n: tt.calls}
			for _, how := range []string{"Next", "GenerateInt64Keys", "GenerateKeys"} {
				clock := &fixedClock{now: DefaultEpoch, n: tt.calls}
				g := mustNew(t, config{Clock: clock, WorkerIDSet: true, MaxVibrationOffset: tt.vibration})
				if tt.full {
					s, err := g.takeSlot(0)
					if err != nil {
						t.Fatal(err)
					}
					s.state.word.Store(4096)
				}
				var have []int64
				for range tt.want {
					have = append(have, oneKey(t, g, how)&tt.mask)
					clock.now = clock.now.Add(tt.step)
				}
				if !slices.Equal(have, tt.want) {
					t.Errorf("%s\nhave: %v\nwant: %v", how, have, tt.want)
				}
			}
			_ = clock
		})
	}
}

func mustNew(t testing.TB, cfg config) *generator {
	t.Helper()
	g, err := newGenerator(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return g
}

func oneKey(t testing.TB, g *generator, how string) int64 {
	t.Helper()
	ctx := context.Background()
	var key int64
	var err error
	switch how {
	case "Next":
		key, err = g.Next(ctx)
	case "GenerateInt64Keys":
		var keys [1]int64
		err = g.GenerateInt64Keys(ctx, spi.Column{}, keys[:])
		key = keys[0]
	default:
		var keys []any
		if keys, err = g.GenerateKeys(ctx, spi.Column{}, 1); err == nil {
			key = keys[0].(int64)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}
