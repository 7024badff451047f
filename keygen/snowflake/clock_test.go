package snowflake

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// handClock is a clock that a test sets. A sleep moves it forward.
type handClock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
}

func newHandClock() *handClock {
	return &handClock{now: DefaultEpoch.AddDate(10, 0, 0)}
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.slept = append(c.slept, d)
	return nil
}

func (c *handClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestTickerFollowsTheSystemClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epoch := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
		var tick ticker
		tick.init(spi.SystemClock, epoch, time.Millisecond, math.MaxInt64)
		for range 1000 {
			if have, want := tick.now(), time.Since(epoch).Milliseconds(); have != want {
				t.Fatalf("\nhave: tick %d\nwant: tick %d", have, want)
			}
			time.Sleep(317 * time.Microsecond)
		}
	})
}

func TestTickerAtTheEndsOfTime(t *testing.T) {
	clock := &handClock{}
	var tick ticker
	tick.init(clock, DefaultEpoch, time.Millisecond, 1000)
	for _, tt := range []struct {
		now  time.Time
		want int64
	}{
		{DefaultEpoch, 0},
		{DefaultEpoch.Add(999 * time.Microsecond), 0},
		{DefaultEpoch.Add(1000 * time.Millisecond), 1000},
		{DefaultEpoch.Add(1001 * time.Millisecond), 1000},
		{time.Unix(1<<40, 0), 1000},
		{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), 1000},
		{DefaultEpoch.Add(-1), -1},
		{time.Unix(-1<<40, 0), -1},
		{time.Time{}, -1},
	} {
		clock.now = tt.now
		if have := tick.now(); have != tt.want {
			t.Errorf("%v\nhave: tick %d\nwant: tick %d", tt.now, have, tt.want)
		}
	}
}
