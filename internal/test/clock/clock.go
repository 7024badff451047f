// Package testclock has a clock that is read like the machine's. A reading has a wall part, which a
// test can set as an operator or NTP does, and a monotonic part, which nothing sets. [time.Time.Sub]
// and the comparisons of two readings use the monotonic parts, so they don't show that a clock was
// set. Clocks that a test makes by adding to time.Now can't show code that forgets this.
package testclock

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/shardkey/shardkey/spi"
)

// Clock is the system's clock, or the clock of a synctest bubble, with a wall part that can be set.
// The zero Clock is right. Its methods may be called by multiple goroutines at once.
type Clock struct{ off atomic.Int64 }

// New returns a clock that is off by a duration.
func New(off time.Duration) *Clock {
	c := new(Clock)
	c.Set(off)
	return c
}

// Set sets the clock to a distance from the right time.
func (c *Clock) Set(off time.Duration) { c.off.Store(int64(off)) }

// Off returns the clock's distance from the right time.
func (c *Clock) Off() time.Duration { return time.Duration(c.off.Load()) }

// Now returns a reading with both parts.
func (c *Clock) Now() time.Time {
	now := time.Now()
	return reading(now.Add(c.Off()), monotonic(now))
}

// Sleep waits for d.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	return spi.SystemClock.Sleep(ctx, d)
}

// origin is a reading outside of any bubble.
var origin = time.Now()

// monotonic returns a reading whose monotonic part is right. Readings in a bubble have none:
// https://pkg.go.dev/testing/synctest#hdr-Time
func monotonic(now time.Time) time.Time {
	if now != now.Round(0) {
		return now
	}
	return origin.Add(now.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))
}

// parts is the layout of [time.Time]. The test of this package fails if it changes.
type parts struct {
	wall uint64
	ext  int64
	loc  *time.Location
}

// reading returns the wall part of one time with the monotonic part of another.
func reading(wall, monotonic time.Time) time.Time {
	const hasMonotonic, nanoBits = 1 << 63, 30
	first := time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	p := (*parts)(unsafe.Pointer(&monotonic))
	p.wall = hasMonotonic | uint64(wall.Unix()-first)<<nanoBits | uint64(wall.Nanosecond())
	return monotonic
}
