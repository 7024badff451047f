// Package tick converts the time of a clock to ticks since an epoch. It needs one reading of the
// monotonic clock for that.
package tick

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Clock counts the ticks of a clock since an epoch. Call Init once before use. Afterwards its
// methods may be called by multiple goroutines at once.
//
// Reading the wall clock also reads the monotonic clock, which costs two calls. Clock therefore
// reads the system's wall clock once per tick. Within a tick, it only reads the monotonic clock, to
// see whether the tick has ended. It notices a step of the wall clock at most one tick late. The
// readings of two goroutines may be out of order, so the uniqueness of keys must not depend on
// their order.
type Clock struct {
	system bool         // whether clock is the system's clock
	tick   int64        // in nanoseconds
	last   atomic.Int64 // tick of the newest reading of the wall clock
	offset atomic.Int64 // wall clock since the epoch minus monotonic clock since base, in ns
	base   time.Time    // origin of the monotonic readings

	clock spi.Clock
	epoch time.Time
	most  int64 // later ticks are reported as this one
}

// Init sets the clock, the time of tick 0, the length of a tick, and the last tick. Later times are
// reported as the last tick. The epoch must not have a monotonic clock reading.
func (t *Clock) Init(clock spi.Clock, epoch time.Time, tick time.Duration, most int64) {
	t.clock, t.system = clock, clock == spi.SystemClock
	t.epoch, t.tick, t.most = epoch, int64(tick), most
	if t.system {
		t.base = time.Now()
	}
	t.last.Store(-1)
}

// Now returns the current tick. It is negative before the epoch.
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

// Nanos returns the current time in nanoseconds since the epoch. It may be negative.
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

// Length returns the length of a tick in nanoseconds.
func (t *Clock) Length() int64 { return t.tick }

// System reports whether the clock is the system's clock.
func (t *Clock) System() bool { return t.system }

// Read reads the clock and returns the tick and the time in nanoseconds since the epoch, at most 292
// years. It doesn't use a cached reading.
func (t *Clock) Read() (tick, ns int64) {
	if t.system {
		ns = t.anchor()
	} else {
		ns = int64(t.clock.Now().Sub(t.epoch))
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

// anchor reads the wall clock and sets offset. If a goroutine is descheduled between the two
// readings in time.Now, the offset is too low. So if the clock seems to have stepped back, anchor
// reads it again: after a real step, the second reading is the same.
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
	ns = int64(now.Sub(t.epoch))
	return ns, ns - int64(now.Sub(t.base))
}

// At returns the beginning of a tick, at most 292 years after the epoch.
func (t *Clock) At(tick int64) time.Time {
	return t.epoch.Add(time.Duration(min(tick, math.MaxInt64/t.tick) * t.tick)).UTC()
}
