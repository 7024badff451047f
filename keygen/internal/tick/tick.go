// Package tick turns a clock's time into ticks since an epoch, at the price of
// one reading of the monotonic clock.
package tick

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Clock counts the ticks of a clock since an epoch. Its zero value is of no
// use: Init it. Init once, and then it is used by any number of goroutines.
//
// Reading the wall clock costs two calls into the kernel's page (wall and
// monotonic), reading the monotonic clock one. So the system's wall clock is
// read once a tick, and within that tick the monotonic clock says whether it
// is still the same one. A step of the wall clock is seen one tick later at
// most. So the readings of two goroutines need not be in order; a generator
// must not need that for its keys to be unique.
type Clock struct {
	clock  spi.Clock
	system bool // clock is the system's
	epoch  int64
	tick   int64 // nanoseconds
	most   int64 // readings beyond this tick are this tick

	base   time.Time    // where the monotonic clock is counted from
	offset atomic.Int64 // wall clock since the epoch minus monotonic since base, in ns
	last   atomic.Int64 // tick of the newest reading of the wall clock
}

// Init sets the clock, the time of tick 0, the length of a tick, and the tick
// that stands for all later ones. The epoch must be within 1970 and 2262.
func (t *Clock) Init(clock spi.Clock, epoch time.Time, tick time.Duration, most int64) {
	t.clock, t.system = clock, clock == spi.SystemClock
	t.epoch, t.tick, t.most = epoch.UnixNano(), int64(tick), most
	if t.system {
		t.base = time.Now()
	}
	t.last.Store(-1)
}

// Now is the tick of the clock's time, negative before the epoch.
func (t *Clock) Now() int64 {
	if t.system {
		last := t.last.Load()
		in := int64(time.Since(t.base)) + t.offset.Load() - last*t.tick
		if last >= 0 && uint64(in) < uint64(t.tick) {
			return last
		}
	}
	tick, _ := t.Read()
	return tick
}

// Nanos is the clock's time in nanoseconds since the epoch. It may be negative.
func (t *Clock) Nanos() int64 {
	if t.system {
		last, since := t.last.Load(), int64(time.Since(t.base))+t.offset.Load()
		if last >= 0 && uint64(since-last*t.tick) < uint64(t.tick) {
			return since
		}
	}
	_, ns := t.Read()
	return ns
}

// Epoch is the time of tick 0 in nanoseconds since 1970.
func (t *Clock) Epoch() int64 { return t.epoch }

// Length is a tick's in nanoseconds.
func (t *Clock) Length() int64 { return t.tick }

// System reports whether the clock is the system's.
func (t *Clock) System() bool { return t.system }

// Read reads the clock itself; ns is the time since the epoch.
func (t *Clock) Read() (tick, ns int64) {
	if t.system {
		ns = t.anchor()
	} else {
		ns = SatSub(UnixNano(t.clock.Now()), t.epoch)
	}
	if ns < 0 {
		return -1, ns
	}
	tick = min(ns/t.tick, t.most)
	if t.system {
		t.last.Store(tick)
	}
	return tick, ns
}

// anchor reads the wall clock and sets offset by it. A goroutine that loses its
// processor between the two readings that time.Now consists of gets an offset
// that is too low, so that a clock which seems to have stepped back is read
// again: one that really did says the same again.
func (t *Clock) anchor() int64 {
	ns, offset := t.both()
	if offset+int64(50*time.Microsecond) < t.offset.Load() && t.last.Load() >= 0 {
		if again, higher := t.both(); higher > offset {
			ns, offset = again, higher
		}
	}
	t.offset.Store(offset)
	return ns
}

func (t *Clock) both() (ns, offset int64) {
	now := t.clock.Now()
	ns = SatSub(UnixNano(now), t.epoch)
	return ns, ns - int64(now.Sub(t.base))
}

// At is the beginning of a tick.
func (t *Clock) At(tick int64) time.Time {
	if tick > (math.MaxInt64-max(t.epoch, 0))/t.tick {
		return time.Unix(0, math.MaxInt64).UTC()
	}
	return time.Unix(0, t.epoch+tick*t.tick).UTC()
}

// UnixNano is t.UnixNano, but stays at its ends for times beyond them.
func UnixNano(t time.Time) int64 {
	switch sec := t.Unix(); {
	case sec >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	case sec <= math.MinInt64/int64(time.Second):
		return math.MinInt64
	}
	return t.UnixNano()
}

// SatSub is a−b, at the ends of int64 where that does not fit.
func SatSub(a, b int64) int64 {
	d := a - b
	switch {
	case b > 0 && d > a:
		return math.MinInt64
	case b < 0 && d < a:
		return math.MaxInt64
	}
	return d
}

// CeilDiv divides by a positive b and rounds up.
func CeilDiv(a, b int64) int64 { return -FloorDiv(-a, b) }

// FloorDiv divides by a positive b and rounds down.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
