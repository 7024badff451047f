package snowflake

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// ticker turns a clock's time into ticks since the epoch.
//
// Reading the wall clock costs two calls into the kernel's page (wall and
// monotonic), reading the monotonic clock one. So the system's wall clock is
// read once a tick, and within that tick the monotonic clock says whether it
// is still the same one. A step of the wall clock is seen one tick later at
// most. The readings need not be exact or ordered for keys to be unique: they
// only choose where a key goes, the state's word decides that it is new.
type ticker struct {
	clock  spi.Clock
	system bool // clock is the system's
	epoch  int64
	tick   int64 // nanoseconds
	most   int64 // readings beyond this tick are this tick

	base   time.Time    // where the monotonic clock is counted from
	offset atomic.Int64 // wall clock since the epoch minus monotonic since base, in ns
	last   atomic.Int64 // tick of the newest reading of the wall clock
}

func (t *ticker) init(clock spi.Clock, epoch time.Time, tick time.Duration, most int64) {
	t.clock, t.system = clock, clock == spi.SystemClock
	t.epoch, t.tick, t.most = epoch.UnixNano(), int64(tick), most
	if t.system {
		t.base = time.Now()
	}
	t.last.Store(-1)
}

// now is the tick of the clock's time, negative before the epoch.
func (t *ticker) now() int64 {
	if t.system {
		last := t.last.Load()
		in := int64(time.Since(t.base)) + t.offset.Load() - last*t.tick
		if last >= 0 && uint64(in) < uint64(t.tick) {
			return last
		}
	}
	tick, _ := t.read()
	return tick
}

// read reads the clock itself; ns is the time since the epoch.
func (t *ticker) read() (tick, ns int64) {
	now := t.clock.Now()
	ns = satSub(unixNano(now), t.epoch)
	if ns < 0 {
		return -1, ns
	}
	tick = min(ns/t.tick, t.most)
	if t.system {
		t.offset.Store(ns - int64(now.Sub(t.base)))
		t.last.Store(tick)
	}
	return tick, ns
}

// at is the beginning of a tick.
func (t *ticker) at(tick int64) time.Time {
	if tick > (math.MaxInt64-max(t.epoch, 0))/t.tick {
		return time.Unix(0, math.MaxInt64).UTC()
	}
	return time.Unix(0, t.epoch+tick*t.tick).UTC()
}

// unixNano is t.UnixNano, which stays at its ends for times beyond them.
func unixNano(t time.Time) int64 {
	switch sec := t.Unix(); {
	case sec >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	case sec <= math.MinInt64/int64(time.Second):
		return math.MinInt64
	}
	return t.UnixNano()
}

func satSub(a, b int64) int64 {
	d := a - b
	switch {
	case b > 0 && d > a:
		return math.MinInt64
	case b < 0 && d < a:
		return math.MaxInt64
	}
	return d
}

// ceilDiv and floorDiv divide by a positive b and round up and down.
func ceilDiv(a, b int64) int64 { return -floorDiv(-a, b) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
