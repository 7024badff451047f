package snowflake

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// shardingSphere is ShardingSphere's algorithm, for a clock that does not step
// back: what our keys are compared with.
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

// countedClock gives the same readings, each a random step on, to whoever
// has the same seed.
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
		vibration := []int{1, 3, 63, 4095}[seed%4]
		ref := newShardingSphere(clock(), 7, int64(vibration))
		g := mustNew(t, config{Clock: clock(), WorkerID: 7, MaxVibrationOffset: vibration})
		for i := range 6000 {
			if have, want := oneKey(t, g, "Next"), ref.key(); have != want {
				t.Fatalf("seed %d, key %d\nhave: %d\nwant: %d", seed, i, have, want)
			}
		}
	}
}

// TestSoak_model lets the clock step at random, forth and back, and takes keys of
// generators that share a worker id or open again. Whatever happens, no key
// comes twice, and every error is one of the documented ones.
func TestSoak_model(t *testing.T) {
	layouts := []Layout{Classic, JS53, {TimeBits: 45, WorkerBits: 3, SequenceBits: 2}, {TimeBits: 46, SequenceBits: 0}, {TimeBits: 44, SequenceBits: 4}}
	rounds, until := uint64(400), time.Now().Add(soak(t))
	for seed := uint64(0); seed < rounds || time.Now().Before(until); seed++ {
		rnd := rand.New(rand.NewPCG(seed, 2))
		cfg := config{
			Layout:             layouts[rnd.IntN(len(layouts))],
			ClockBack:          clockBack(rnd.IntN(3)),
			RingSize:           []int{1, 1, 5, 200}[rnd.IntN(4)],
			MaxVibrationOffset: rnd.IntN(3) - 1,
			WorkerIDSet:        true,
		}
		cfg.MaxVibrationOffset = min(cfg.MaxVibrationOffset, int(cfg.Layout.MaxSequence()))
		if err := runModel(t, rnd, cfg); err != nil {
			t.Fatalf("seed %d, %+v\nhave: %v\nwant: every key once", seed, cfg, err)
		}
	}
}

func runModel(t *testing.T, rnd *rand.Rand, cfg config) error {
	clock := newHandClock()
	cfg.Clock = clock
	seen := map[int64]bool{}
	open := []*generator{mustNew(t, cfg), mustNew(t, cfg)}
	for range 300 {
		i := rnd.IntN(len(open))
		switch rnd.IntN(12) {
		case 0:
			clock.step(time.Duration(rnd.IntN(400)-200) * time.Millisecond)
		case 1:
			clock.step(time.Duration(rnd.IntN(2000)-1000) * cfg.Layout.orDefault().Tick)
		case 2, 3, 4:
			clock.step(time.Duration(rnd.IntN(int(2 * cfg.Layout.orDefault().Tick))))
		case 5:
			if err := open[i].Close(); err != nil {
				return err
			}
			open[i] = mustNew(t, cfg)
		default:
			if err := takeModel(open[i], 1+rnd.IntN(9)*rnd.IntN(2), seen); err != nil {
				return err
			}
		}
	}
	return nil
}

func takeModel(g *generator, n int, seen map[int64]bool) error {
	keys := make([]int64, n)
	err := g.GenerateInt64Keys(context.Background(), spi.Column{}, keys)
	if errors.Is(err, spi.ErrClockBack) && g.cfg.ClockBack != clockBackBorrow {
		return nil
	}
	if err != nil {
		return err
	}
	for i, key := range keys {
		if seen[key] || key < 0 || i > 0 && key <= keys[i-1] {
			return fmt.Errorf("%d twice or not ascending: %v", key, keys)
		}
		seen[key] = true
	}
	return nil
}
