package tick

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"

	"github.com/shardkey/shardkey/spi"
)

var epoch = time.Date(2016, time.November, 1, 0, 0, 0, 0, time.UTC)

type handClock struct{ now time.Time }

func (c *handClock) Now() time.Time                           { return c.now }
func (*handClock) Sleep(context.Context, time.Duration) error { return nil }

func TestClock_followsTheSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epoch := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
		var tick Clock
		tick.Init(spi.SystemClock, epoch, time.Millisecond, math.MaxInt64)
		for range 1000 {
			if have, want := tick.Now(), time.Since(epoch).Milliseconds(); have != want {
				t.Fatalf("\nhave: tick %d\nwant: tick %d", have, want)
			}
			if have, want := tick.Nanos(), time.Since(epoch).Nanoseconds(); have != want {
				t.Fatalf("\nhave: %d ns\nwant: %d ns", have, want)
			}
			time.Sleep(317 * time.Microsecond)
		}
	})
}

func TestClock_endsOfTime(t *testing.T) {
	clock := &handClock{}
	var tick Clock
	tick.Init(clock, epoch, time.Millisecond, 1000)
	for _, tt := range []struct {
		now  time.Time
		want int64
	}{
		{epoch, 0},
		{epoch.Add(999 * time.Microsecond), 0},
		{epoch.Add(1000 * time.Millisecond), 1000},
		{epoch.Add(1001 * time.Millisecond), 1000},
		{time.Unix(1<<40, 0), 1000},
		{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), 1000},
		{epoch.Add(-1), -1},
		{time.Unix(-1<<40, 0), -1},
		{time.Time{}, -1},
	} {
		clock.now = tt.now
		must.Equal(t, tick.Now(), tt.want, tt.now, "tick")
	}
}

// If the wall clock was set after it was read, the next tick shows it.
func TestClock_isReadAgainEachTick(t *testing.T) {
	for _, set := range []time.Duration{time.Hour, -time.Hour} {
		var tick Clock
		tick.Init(spi.SystemClock, epoch, time.Millisecond, math.MaxInt64)
		tick.Read()
		tick.offset.Add(int64(-set)) // the effect of a clock that is set forward
		now := time.Since(epoch)
		if have := tick.Now(); have < now.Milliseconds() || have > now.Milliseconds()+time.Minute.Milliseconds() {
			t.Errorf("set by %v\nhave: tick %d\nwant: tick %d", set, have, now.Milliseconds())
		}
		tick.offset.Add(int64(-set))
		if have := tick.Nanos(); have < now.Nanoseconds() || have > now.Nanoseconds()+time.Minute.Nanoseconds() {
			t.Errorf("set by %v\nhave: %d ns\nwant: %d ns", set, have, now.Nanoseconds())
		}
	}
}
