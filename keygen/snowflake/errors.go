package snowflake

import (
	"errors"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// backError returns the error for a clock at now that must reach last before the next key.
func (g *generator) backError(last, now time.Time) error {
	var tolerance time.Duration
	if g.cfg.ClockBack == clockBackWait {
		tolerance = g.cfg.Tolerance
	}
	return fmt.Errorf("%w by %v: expected %s or later, found %s, tolerance %v; "+
		"correct the clock, increase max-tolerate-time-difference-milliseconds, or use clock-back: borrow",
		spi.ErrClockBack, last.Sub(now), stamp(last), stamp(now), tolerance)
}

// startError returns the error for a worker ID whose keys must start at start, far ahead of now.
// The worker ID is released, and the next key tries to get another one.
func startError(id int64, start, now time.Time) error {
	return fmt.Errorf("%w: worker ID %d is free, but its keys begin at %s, %v ahead of this machine's clock (%s), because "+
		"it was used with a clock that was ahead; correct this clock if it is wrong, wait, stop a holder of another worker ID, or use a layout with more worker bits",
		spi.ErrNoWorkerID, id, stamp(start), start.Sub(now), stamp(now))
}

// timeError returns the error for a time that doesn't fit the layout's time field.
func (g *generator) timeError(t time.Time) error {
	return fmt.Errorf("%w: expected a time from %[3]s to %[4]s for layout %[5]s, found %[2]s; "+
		"check the clock and the epoch, or use more time bits",
		spi.ErrTimeOverflow, stamp(t), stamp(g.cfg.Epoch), stamp(g.clock.At(g.lastTick)), g.cfg.Layout)
}

// leaseError returns the error for the end of s's lease. why is the error of its renewal, or of
// leasing another worker ID after this one was lost.
func (g *generator) leaseError(s *workerSlot, why error) error {
	if errors.Is(why, spi.ErrLeaseLost) {
		return fmt.Errorf("%w: lost the lease on worker ID %d and could not get another: %w", spi.ErrLeaseLimit, s.id, why)
	}
	limit := g.clock.At(int64(s.limit.Load() >> g.seqBits))
	return fmt.Errorf("%w: the lease on worker ID %d ended at %s and could not be renewed: %w",
		spi.ErrLeaseLimit, s.id, stamp(limit), why)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z") }
