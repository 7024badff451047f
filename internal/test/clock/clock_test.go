package testclock

import (
	"testing"
	"testing/synctest"
	"time"
)

// A step moves the wall part of a reading, not its monotonic part, in a bubble and outside.
func TestClock_stepMovesTheWallPartAlone(t *testing.T) {
	try := func(t *testing.T) {
		c := new(Clock)
		for _, off := range []time.Duration{-365 * 24 * time.Hour, -time.Second, 0, time.Hour + time.Nanosecond} {
			right := time.Now()
			before := c.Now()
			from := c.Off()
			c.Set(off)
			after := c.Now()
			passed := time.Since(right) + time.Millisecond
			if have := after.Sub(before); have < 0 || have > passed {
				t.Errorf("%v: monotonic\nhave: %v\nwant: 0 to %v", off, have, passed)
			}
			have := after.Round(0).Sub(before.Round(0)) - (off - from)
			if have < -time.Second/10 || have > passed+time.Second/10 {
				t.Errorf("%v: wall\nhave: %v apart from the step\nwant: 0 to %v", off, have, passed)
			}
			if have := after.UnixNano() - right.UnixNano() - int64(off); have < -1e8 || have > int64(passed)+1e8 {
				t.Errorf("%v: off by %v", off, time.Duration(have))
			}
		}
	}
	t.Run("outside", try)
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, try) })
}
