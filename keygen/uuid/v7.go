package uuid

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/shardkey/shardkey/spi"
)

const maxMillis = 1<<48 - 1

// reserve takes n times, in 1/4096 ms since 1970, that are above all taken
// before: the clock's, or the ones behind the last when the clock is not
// above it. It returns the first.
func (g *Generator) reserve(n uint64) (uint64, error) {
	now, err := fraction(g.cfg.Clock.Now())
	if err != nil {
		return 0, err
	}
	for {
		last := g.last.Load()
		first := max(now, last+1)
		if first+n > maxMillis<<12 {
			return 0, fmt.Errorf("shardkey: UUID version 7 has no time left: %w", spi.ErrTimeOverflow)
		}
		if g.last.CompareAndSwap(last, first+n-1) {
			return first, nil
		}
	}
}

// fraction is t in 1/4096 ms since 1970.
func fraction(t time.Time) (uint64, error) {
	ms := t.UnixMilli()
	if ms < 0 || ms >= maxMillis {
		return 0, fmt.Errorf("shardkey: UUID version 7 does not hold the year %d: %w", t.Year(), spi.ErrTimeOverflow)
	}
	part := uint64(t.Nanosecond()%int(time.Millisecond)) << 12 / uint64(time.Millisecond)
	return uint64(ms)<<12 | part, nil
}

// putTime writes 48 bits of milliseconds and 12 bits below them.
func putTime(u *uuid.UUID, at uint64) {
	ms := at >> 12
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6] = byte(at >> 8 & 0x0f)
	u[7] = byte(at)
}
