package snowflake

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// vectors are results of ShardingSphere.
type vectors struct {
	TenKeys   []int64 `json:"ten_keys_clock_fixed_1"`
	Overflow  []int64 `json:"sequence_overflow_clock_fixed_2_last_at_epoch_sequence_4095"`
	SameMilli []int64 `json:"same_millisecond_max_vibration_3"`
	NewMilli  []int64 `json:"one_key_each_new_millisecond_max_vibration_3_low_bits"`
	EpochUTC  int64   `json:"epoch_ms_utc"`
}

func TestGenerator_vectors(t *testing.T) {
	v := must.ReadJSON[vectors](t, "testdata/snowflake.json")
	must.Equal(t, DefaultEpoch.UnixMilli(), v.EpochUTC, "epoch")
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
				must.EqualSlices(t, have, tt.want)
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
		g, clock := fixed(t, config{WorkerID: 1, MaxVibrationOffset: 63, RingSize: ring})
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
		for _, l := range []Layout{Classic, js53, {TimeBits: 63}, {TimeBits: 53, SequenceBits: 10, Tick: time.Microsecond},
			{TimeBits: 49, SequenceBits: 14, Tick: time.Microsecond}} {
			g, clock := fixed(t, config{Layout: l, RingSize: ring, ClockBack: clockBackBorrow})
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
	must.Do(t, g.GenerateInt64Keys(t.Context(), spi.Column{}, nil), "no keys")
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
		must.Equal(t, have, 0, cfg, "allocations")
	}
	// A whole tick's keys are a reservation like any other.
	g := mustNew(t, config{Clock: &fixedClock{now: DefaultEpoch}, WorkerIDSet: true, MaxVibrationOffset: -1})
	keys := make([]int64, 4096)
	must.Equal(t, testing.AllocsPerRun(10, func() { _ = g.GenerateInt64Keys(context.Background(), spi.Column{}, keys) }), 0, "allocations for 4096 keys")
}

// Keys lag behind the system's clock by 40 ms at most, and a ring's within the ring.
func TestGenerator_catchUp(t *testing.T) {
	for _, tt := range []struct {
		cfg  config
		want int64
	}{
		{config{}, 40},
		{config{Layout: Layout{TimeBits: 41, Tick: 10 * ms}}, 4},
		{config{Layout: js53}, 0},
		{config{RingSize: 200}, 40},
		{config{RingSize: 41}, 40},
		{config{RingSize: 40}, 39},
		{config{RingSize: 2}, 1},
		{config{Clock: newHandClock()}, 0},
	} {
		tt.cfg.WorkerIDSet = true
		must.Equal(t, mustNew(t, tt.cfg).catchUp, tt.want, fmt.Sprintf("%+v", tt.cfg))
	}
}

// wide has more sequence numbers than any machine uses, so that no caller waits for the next
// millisecond.
var wide = Layout{TimeBits: 41, SequenceBits: 22}

// bubbleEpoch is before the time at which bubbles of synctest begin. Each bubble has another
// epoch, because state is shared by epoch.
var (
	bubbleEpoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	bubbles     atomic.Int64
)

// inBubble runs f with a generator on the bubble's clock.
func inBubble(t *testing.T, cfg config, f func(t *testing.T, g *generator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.Epoch, cfg.WorkerIDSet = bubbleEpoch.Add(-time.Duration(bubbles.Add(1))*time.Second), true
		f(t, mustNew(t, cfg))
	})
}

func TestQueue_waitsForTheNextTick(t *testing.T) {
	inBubble(t, config{}, func(t *testing.T, g *generator) {
		start := time.Now()
		mustKeys(t, g, 4096)
		must.Equal(t, time.Since(start), 0, "waited for the first tick")
		for tick := range int64(3) {
			mustKeys(t, g, 4096)
			waited := time.Duration(tick+1) * ms
			must.Equal(t, time.Since(start), waited, "waited for the following ticks")
			if h := g.Health(); *h.Waits != tick+1 || h.Waited != waited || h.Issued != 4096*(tick+2) {
				t.Errorf("\nhave: %+v\nwant: %d waits, %v in total", h, tick+1, waited)
			}
		}
	})
}

func TestQueue_largeBatchComesInBlocks(t *testing.T) {
	for _, ring := range []int{1, 200} {
		inBubble(t, config{RingSize: ring}, func(t *testing.T, g *generator) {
			mustKeys(t, g, 10)
			start := time.Now()
			keys := mustKeys(t, g, 10_000)
			must.Equal(t, time.Since(start), 3*time.Millisecond, "waited, as the tick was in use")
			for i := 1; i < len(keys); i++ {
				if i%4096 != 0 && keys[i] != keys[i-1]+1 || keys[i] <= keys[i-1] {
					t.Fatalf("key %d\nhave: %d after %d\nwant: contiguous blocks that ascend", i, keys[i], keys[i-1])
				}
			}
		})
	}
}

func TestQueue_canceledWaitersLeave(t *testing.T) {
	inBubble(t, config{Layout: Layout{TimeBits: 41, SequenceBits: 0, Tick: 10 * time.Second}}, func(t *testing.T, g *generator) {
		mustKeys(t, g, 2) // the second waits for a tick to begin, so the next one is 10 s away
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i+1)*time.Second/2)
				defer cancel()
				_, err := g.Next(ctx)
				if have := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || have != time.Duration(i+1)*time.Second/2 {
					t.Errorf("waiter %d\nhave: %v after %v\nwant: deadline exceeded at its time", i, err, have)
				}
			})
		}
		wg.Wait()
		if have := g.waiting.Load(); have != 0 || g.queue.Len() > 0 {
			t.Errorf("\nhave: %d in the queue\nwant: none", have)
		}
		mustKeys(t, g, 1)
		must.Equal(t, g.Health().Errors["deadline"], 10, "deadlines")
	})
}

func TestQueue_isServedInOrder(t *testing.T) {
	inBubble(t, config{Layout: Layout{TimeBits: 41, SequenceBits: 1}}, func(t *testing.T, g *generator) {
		mustKeys(t, g, 2)
		keys := make([]atomic.Int64, 8)
		for i := range keys {
			go func() {
				key, err := g.Next(context.Background())
				if err != nil {
					t.Error(err)
				}
				keys[i].Store(key)
			}()
			synctest.Wait()
		}
		time.Sleep(3 * time.Millisecond)
		synctest.Wait()
		order := loadAll(keys)
		if order[5] == 0 || order[6] != 0 {
			t.Errorf("\nhave: %v\nwant: six callers served in three milliseconds", order)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		order = loadAll(keys)
		if !slices.IsSorted(order) || order[7] == 0 {
			t.Errorf("\nhave: %v\nwant: keys in the order of the callers", order)
		}
	})
}

func loadAll(values []atomic.Int64) []int64 {
	loaded := make([]int64, len(values))
	for i := range values {
		loaded[i] = values[i].Load()
	}
	return loaded
}

func TestQueue_closeEndsWaits(t *testing.T) {
	inBubble(t, config{Layout: Layout{TimeBits: 41, Tick: time.Hour, WorkerBits: 1}}, func(t *testing.T, g *generator) {
		mustKeys(t, g, 1)
		errs := make(chan error, 5)
		for range cap(errs) {
			go func() {
				_, err := g.Next(context.Background())
				errs <- err
			}()
		}
		synctest.Wait()
		start := time.Now()
		for range 2 {
			must.Do(t, g.Close(), "close")
		}
		for range cap(errs) {
			must.Is(t, <-errs, spi.ErrClosed, "a caller that waits")
		}
		must.Equal(t, time.Since(start), 0, "closed after")
		must.Is(t, must.Err(g.Next(context.Background())), spi.ErrClosed)
	})
}

// A goroutine that sleeps too long loses no ticks while the layout is saturated. Afterwards, keys
// return to the clock's time.
func TestQueue_saturatedKeysCatchUp(t *testing.T) {
	for _, ring := range []int{1, 200} {
		inBubble(t, config{RingSize: ring}, func(t *testing.T, g *generator) {
			mustKeys(t, g, 4096)
			mustKeys(t, g, 4096)
			time.Sleep(10 * time.Millisecond)
			start := time.Now()
			mustKeys(t, g, 10*4096)
			must.Equal(t, time.Since(start), 0, "waited for ticks that have passed")
			mustKeys(t, g, 1)
			must.Equal(t, time.Since(start), time.Millisecond, "waited for the next tick")
			time.Sleep(catchUpTime + 2*time.Millisecond)
			parts, err := g.DecodeKey(mustKeys(t, g, 1)[0])
			if have := time.Since(parts.Time); err != nil || have != 0 {
				t.Errorf("ring %d\nhave: a key of %v ago (%v)\nwant: one of now", ring, have, err)
			}
		})
	}
}

// If the demand fills each tick's sequence but uses fewer ticks than pass, keys don't fall
// further and further behind the clock.
func TestQueue_lagIsBounded(t *testing.T) {
	for _, ring := range []int{1, 200} {
		inBubble(t, config{RingSize: ring}, func(t *testing.T, g *generator) {
			mustKeys(t, g, 3*4096) // saturated
			for range 200 {
				parts, err := g.DecodeKey(mustKeys(t, g, 3000)[0])
				if lag := time.Since(parts.Time); err != nil || lag > catchUpTime+time.Millisecond {
					t.Fatalf("ring %d\nhave: a key of %v ago (%v)\nwant: of %v at most", ring, lag, err, catchUpTime)
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
}

// While many callers wait, the first of them sleeps slightly longer than to the next tick. A new
// caller finds free keys, but is served after the waiting ones.
func TestQueue_newcomersComeLast(t *testing.T) {
	for _, batch := range []int{1, 2} {
		inBubble(t, config{Layout: Layout{TimeBits: 41, SequenceBits: 1}}, func(t *testing.T, g *generator) {
			mustKeys(t, g, 2)
			keys := make([]int64, 640)
			var wg sync.WaitGroup
			for i := range keys {
				wg.Go(func() { keys[i] = mustKeys(t, g, 1)[0] })
			}
			synctest.Wait()
			time.Sleep(3 * time.Millisecond)
			newest := mustKeys(t, g, batch)
			wg.Wait()
			if last := slices.Max(keys); newest[0] < last {
				t.Errorf("%d keys\nhave: %d\nwant: above %d, the last of those that waited", batch, newest[0], last)
			}
		})
	}
}

// Callers don't wait for all keys of a call that needs many ticks.
func TestQueue_smallCallsPassALargeOne(t *testing.T) {
	inBubble(t, config{}, func(t *testing.T, g *generator) {
		mustKeys(t, g, 4096)
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			keys := mustKeys(t, g, 100*4096)
			if have := time.Since(start); have < 100*time.Millisecond || have > 110*time.Millisecond || !slices.IsSorted(keys) {
				t.Errorf("\nhave: %v for a hundred ticks\nwant: little more than 100ms, ascending", have)
			}
		})
		synctest.Wait()
		for range 5 {
			before := time.Now()
			mustKeys(t, g, 1)
			if have := time.Since(before); have > 3*time.Millisecond {
				t.Errorf("\nhave: a small call waited %v\nwant: a tick or two", have)
			}
		}
		wg.Wait()
	})
}
