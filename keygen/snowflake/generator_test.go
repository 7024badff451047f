package snowflake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

// fixedClock is the clock of ShardingSphere's tests. It returns the same millisecond n times,
// then the next one n times, and so on.
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
	equal(t, "epoch", DefaultEpoch.UnixMilli(), v.EpochUTC)
	const still = 1 << 30
	for _, tt := range []struct {
		name      string
		want      []int64
		calls     int
		vibration int64
		full      bool // the epoch's millisecond is used up
		mask      int64
		step      time.Duration
	}{
		{name: "ten keys", want: v.TenKeys, calls: 1, vibration: 1, mask: -1},
		{name: "sequence overflow", want: v.Overflow, calls: 2, vibration: 1, full: true, mask: -1},
		{name: "same millisecond", want: v.SameMilli, calls: still, vibration: 3, mask: -1},
		{name: "each new millisecond", want: v.NewMilli, calls: still, vibration: 3, mask: 3, step: time.Millisecond},
	} {
		for i := range 4 {
			boxed, ring := i%2 == 1, 1+i/2*199
			t.Run(fmt.Sprintf("%s boxed %v ring %d", tt.name, boxed, ring), func(t *testing.T) {
				clock := &fixedClock{now: DefaultEpoch, n: tt.calls}
				g := mustNew(t, config{Clock: clock, WorkerIDSet: true, MaxVibrationOffset: tt.vibration, RingSize: ring})
				if tt.full {
					s := must.Get(g.takeSlot(0))(t)
					s.state.word.Store(4096)
					if ring > 1 {
						s.state.ring[0].Store(4096)
					}
				}
				var have []int64
				for range tt.want {
					key := int64(0)
					if boxed {
						keys := must.Get(g.GenerateKeys(t.Context(), spi.Column{}, 1))(t)
						key = keys[0].(int64)
					} else {
						key = mustKeys(t, g, 1)[0]
					}
					have = append(have, key&tt.mask)
					clock.now = clock.now.Add(tt.step)
				}
				if !slices.Equal(have, tt.want) {
					t.Errorf("\nhave: %v\nwant: %v", have, tt.want)
				}
			})
		}
	}
}

// shardingSphere is ShardingSphere's algorithm for a clock that doesn't step back. The test
// compares its keys with shardkey's.
type shardingSphere struct {
	clock                  spi.Clock
	worker, last, sequence int64
	offset, maxVibration   int64
}

func newShardingSphere(clock spi.Clock, worker, maxVibration int64) *shardingSphere {
	return &shardingSphere{clock: clock, worker: worker, offset: -1, maxVibration: maxVibration, last: -1}
}

func (s *shardingSphere) millis() int64 { return s.clock.Now().Sub(DefaultEpoch).Milliseconds() }

func (s *shardingSphere) key() int64 {
	now := s.millis()
	if now == s.last {
		if s.sequence = (s.sequence + 1) & 4095; s.sequence == 0 {
			for now <= s.last {
				now = s.millis()
			}
		}
	} else {
		if s.offset++; s.offset > s.maxVibration {
			s.offset = 0
		}
		s.sequence = s.offset
	}
	s.last = now
	return now<<22 | s.worker<<12 | s.sequence
}

// countedClock advances by a random step at each reading. Clocks with the same seed return the
// same readings.
type countedClock struct {
	now  time.Time
	rand *rand.Rand
	odds int
}

func (c *countedClock) Now() time.Time {
	if c.rand.IntN(c.odds) == 0 {
		c.now = c.now.Add(time.Duration(1+c.rand.IntN(4)*c.rand.IntN(2)) * time.Millisecond)
	}
	return c.now
}

func (*countedClock) Sleep(context.Context, time.Duration) error { return nil }

func TestGenerator_equalToShardingSphere(t *testing.T) {
	for seed := range uint64(30) {
		odds := []int{1, 3, 100, 4000, 10000}[seed%5]
		clock := func() spi.Clock {
			return &countedClock{now: DefaultEpoch.Add(time.Hour), rand: rand.New(rand.NewPCG(seed, 1)), odds: odds}
		}
		vibration := []int64{1, 3, 63, 4095}[seed%4]
		ref := newShardingSphere(clock(), 7, vibration)
		g := mustNew(t, config{Clock: clock(), WorkerID: 7, MaxVibrationOffset: vibration})
		for i := range 6000 {
			if have, want := mustKeys(t, g, 1)[0], ref.key(); have != want {
				t.Fatalf("seed %d, key %d\nhave: %d\nwant: %d", seed, i, have, want)
			}
		}
	}
}

// With one key every 3 ms, keys spread over the shards of key mod n.
func TestGenerator_vibrationSpreadsShards(t *testing.T) {
	const draws = 64 * 200
	for _, ring := range []int{1, 200} {
		clock := newHandClock()
		g := mustNew(t, config{Clock: clock, WorkerID: 1, MaxVibrationOffset: 63, RingSize: ring})
		keys := make([]int64, draws)
		for i := range keys {
			keys[i] = mustKeys(t, g, 1)[0]
			clock.step(3 * ms)
		}
		for n := int64(2); n <= 64; n++ {
			count := make([]int, n)
			for _, key := range keys {
				count[key%n]++
			}
			for residue, have := range count {
				if share := draws / int(n); have < share/2 || have > share*2 {
					t.Fatalf("ring %d, %d mod %d\nhave: %d\nwant: %d to %d", ring, residue, n, have, share/2, share*2)
				}
			}
		}
	}
}

// The time field never overflows. A time after its end or before the epoch is an error.
func TestGenerator_timeOverflow(t *testing.T) {
	for _, ring := range []int{1, 200} {
		for _, l := range []Layout{Classic, JS53, {TimeBits: 63}, {TimeBits: 53, SequenceBits: 10, Tick: time.Microsecond},
			{TimeBits: 49, SequenceBits: 14, Tick: time.Microsecond}} {
			clock := newHandClock()
			g := mustNew(t, config{Layout: l, Clock: clock, WorkerIDSet: true, RingSize: ring, ClockBack: clockBackBorrow})
			last := g.clock.At(g.lastTick)
			clock.now = last
			before := mustKeys(t, g, 1)[0]
			for _, now := range []time.Time{
				last.Add(g.cfg.Layout.Tick), last.AddDate(100, 0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
				DefaultEpoch.Add(-1), {}, time.Unix(-1<<50, 0),
				// 1<<64 positions of a microsecond and more must not overflow.
				last.Add((1<<50 + 5) * time.Microsecond), last.Add((1<<51 + 5) * time.Microsecond), last.Add((1<<52 + 1<<49 + 5) * time.Microsecond),
			} {
				clock.now = now
				if key, err := g.Next(t.Context()); !errors.Is(err, spi.ErrTimeOverflow) || !strings.Contains(err.Error(), stamp(last)) {
					t.Errorf("%v at %v\nhave: %d, %v\nwant: ErrTimeOverflow that shows %s", l, now, key, err, stamp(last))
				}
			}
			if clock.now = last; l.SequenceBits > 0 {
				if after := mustKeys(t, g, 1)[0]; after <= before {
					t.Errorf("\nhave: %d\nwant: above %d", after, before)
				}
			}
		}
	}
}

func TestGenerator_noKeys(t *testing.T) {
	g := mustNew(t, config{Clock: newHandClock(), WorkerID: 1})
	wantErr(t, "no keys", g.GenerateInt64Keys(t.Context(), spi.Column{}, nil), nil)
	if keys, err := g.GenerateKeys(t.Context(), spi.Column{}, -1); err != nil || len(keys) != 0 {
		t.Errorf("\nhave: %v, %v\nwant: no keys", keys, err)
	}
}

func TestGenerator_noAllocations(t *testing.T) {
	for _, cfg := range []config{{Layout: wide, WorkerIDSet: true}, {Layout: wide, Assigner: newFakeStore(spi.SystemClock)}, {Layout: wide, WorkerIDSet: true, RingSize: 200, Epoch: DefaultEpoch.Add(ms)}} {
		g := mustNew(t, cfg)
		keys := make([]int64, 100)
		have := testing.AllocsPerRun(1000, func() {
			_ = g.GenerateInt64Keys(context.Background(), spi.Column{}, keys[:1])
			_ = g.GenerateInt64Keys(context.Background(), spi.Column{}, keys)
		})
		if have != 0 {
			t.Errorf("%+v\nhave: %v allocations\nwant: 0", cfg, have)
		}
	}
	// A whole tick's keys are a reservation like any other.
	g := mustNew(t, config{Clock: &fixedClock{now: DefaultEpoch}, WorkerIDSet: true, MaxVibrationOffset: -1})
	keys := make([]int64, 4096)
	if have := testing.AllocsPerRun(10, func() { _ = g.GenerateInt64Keys(context.Background(), spi.Column{}, keys) }); have != 0 {
		t.Errorf("4096 keys\nhave: %v allocations\nwant: 0", have)
	}
}

// Keys lag behind the system's clock by 40 ms at most, and a ring's within the ring.
func TestGenerator_catchUp(t *testing.T) {
	for _, tt := range []struct {
		cfg  config
		want int64
	}{
		{config{}, 40},
		{config{Layout: Layout{TimeBits: 41, Tick: 10 * ms}}, 4},
		{config{Layout: JS53}, 0},
		{config{RingSize: 200}, 40},
		{config{RingSize: 41}, 40},
		{config{RingSize: 40}, 39},
		{config{RingSize: 2}, 1},
		{config{Clock: newHandClock()}, 0},
	} {
		tt.cfg.WorkerIDSet = true
		equal(t, fmt.Sprintf("%+v", tt.cfg), mustNew(t, tt.cfg).catchUp, tt.want)
	}
}

// wide has more sequence numbers than any machine uses, so that benchmarks don't measure the wait
// for the next millisecond.
var wide = Layout{TimeBits: 41, SequenceBits: 22}

func BenchmarkKeys(b *testing.B) {
	for _, ring := range []int{1, 200} {
		for _, n := range []int{1, 100, 1000} {
			b.Run(fmt.Sprintf("ring=%d/%d", ring, n), func(b *testing.B) {
				g := mustNew(b, config{Layout: wide, WorkerIDSet: true, RingSize: ring})
				keys := make([]int64, n)
				b.ReportAllocs()
				for b.Loop() {
					if err := g.GenerateInt64Keys(context.Background(), spi.Column{}, keys); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
			})
		}
	}
}

func BenchmarkKeys_parallel(b *testing.B) {
	g := mustNew(b, config{Layout: wide, WorkerIDSet: true})
	b.SetParallelism(8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		key := make([]int64, 1)
		for pb.Next() {
			if err := g.GenerateInt64Keys(context.Background(), spi.Column{}, key); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
