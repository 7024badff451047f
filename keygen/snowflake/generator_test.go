package snowflake

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Keys that are made one every 3 ms are spread over the shards of key mod n.
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

// The time field is never wrapped round: its end is an error, and so is a time
// before the epoch.
func TestGenerator_timeOverflow(t *testing.T) {
	for _, ring := range []int{1, 200} {
		for _, l := range []Layout{Classic, JS53, {TimeBits: 63}, {TimeBits: 53, SequenceBits: 10, Tick: time.Microsecond}} {
			clock := newHandClock()
			g := mustNew(t, config{Layout: l, Clock: clock, WorkerIDSet: true, RingSize: ring, ClockBack: clockBackBorrow})
			last := lastTime(l.orDefault(), DefaultEpoch)
			clock.now = last
			before := mustKeys(t, g, 1)[0]
			for _, now := range []time.Time{
				last.Add(l.orDefault().Tick), last.AddDate(100, 0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
				DefaultEpoch.Add(-1), {}, time.Unix(-1<<50, 0),
			} {
				clock.now = now
				key, err := g.Next(context.Background())
				var overflow *timeError
				if !errors.As(err, &overflow) || !errors.Is(err, spi.ErrTimeOverflow) {
					t.Errorf("%v at %v\nhave: %d, %v\nwant: a timeError", l, now, key, err)
				}
			}
			if l.SequenceBits > 0 {
				clock.now = last
				if after := mustKeys(t, g, 1)[0]; after <= before {
					t.Errorf("\nhave: %d\nwant: above %d", after, before)
				}
			}
		}
	}
}

func TestGenerator_noKeys(t *testing.T) {
	g := mustNew(t, config{Clock: newHandClock(), WorkerID: 1})
	if err := g.GenerateInt64Keys(context.Background(), spi.Column{}, nil); err != nil {
		t.Errorf("\nhave: %v\nwant: nil", err)
	}
	if keys, err := g.GenerateKeys(context.Background(), spi.Column{}, -1); err != nil || len(keys) != 0 {
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
}

func TestErrors_nameTheWayOut(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&clockBackError{Last: at.Add(time.Second), Now: at, Tolerance: 10 * ms},
			"shardkey: clock moved backwards by 1s: no key is made before 2026-01-02T03:04:06Z, the clock says 2026-01-02T03:04:05Z, tolerated are 10ms; " +
				"set the clock right, raise max-tolerate-time-difference-milliseconds, or use clock-back: borrow"},
		{&leaseError{WorkerID: 3, Limit: at, Err: errAway},
			"shardkey: worker id 3 is reserved until 2026-01-02T03:04:05Z only, and that could not be extended: connection refused: shardkey: key store"},
		{&timeError{Time: at, Layout: Classic, Epoch: DefaultEpoch, Last: at},
			"shardkey: time 2026-01-02T03:04:05Z does not fit layout 41-10-12, which holds 2016-11-01T00:00:00Z to 2026-01-02T03:04:05Z; " +
				"check the clock and the epoch, or use more bits of time"},
	} {
		if have := fmt.Sprint(tt.err); have != tt.want {
			t.Errorf("\nhave: %s\nwant: %s", have, tt.want)
		}
	}
}
