package uuid

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/shardkey/shardkey/spi"
)

// end is the time that Go's nanoseconds end with, in 1/4096 ms: in April 2262.
const end = math.MaxInt64 / int64(time.Millisecond) << 12

// reserve takes n times, in 1/4096 ms since 1970, that are above all taken
// before: the clock's, or the ones behind the last when the clock is not
// above it. It returns the first.
func (g *Generator) reserve(n uint64) (uint64, error) {
	now, err := g.now()
	if err != nil {
		return 0, err
	}
	for {
		last := g.last.Load()
		first := max(now, last+1)
		if first+n > uint64(end) {
			return 0, fmt.Errorf("shardkey: UUID version 7 has no time left after the year 2262: %w", spi.ErrTimeOverflow)
		}
		if g.last.CompareAndSwap(last, first+n-1) {
			return first, nil
		}
	}
}

// now is the clock's time in 1/4096 ms since 1970.
func (g *Generator) now() (uint64, error) {
	ns := g.clock.Nanos()
	if ns < 0 {
		return 0, fmt.Errorf("shardkey: UUID version 7 has no time before 1970, and the clock says so: %w", spi.ErrTimeOverflow)
	}
	ms, rest := uint64(ns)/uint64(time.Millisecond), uint64(ns)%uint64(time.Millisecond)
	return ms<<12 | rest<<12/uint64(time.Millisecond), nil
}

// putTime writes 48 bits of milliseconds, the version and 12 bits below them.
func putTime(u *uuid.UUID, at uint64) {
	binary.BigEndian.PutUint64(u[:8], at>>12<<16|7<<12|at&0xfff)
}
