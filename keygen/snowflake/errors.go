package snowflake

import (
	"errors"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// clockBackError says that the clock is behind the keys that were made, by
// more than the generator waits for. [spi.ErrClockBack] is in its chain.
type clockBackError struct {
	// Last is the time that the clock must reach before another key is made, and Now what
	// the clock says.
	Last, Now time.Time
	// Tolerance is how far behind the generator would have waited.
	Tolerance time.Duration
}

func (e *clockBackError) Error() string {
	return fmt.Sprintf("shardkey: clock moved backwards by %v: no key is made before %s, the clock says %s, tolerated are %v; "+
		"set the clock right, raise max-tolerate-time-difference-milliseconds, or use clock-back: borrow",
		e.Last.Sub(e.Now), stamp(e.Last), stamp(e.Now), e.Tolerance)
}

func (e *clockBackError) Unwrap() error { return spi.ErrClockBack }

// startError says that the only worker id to be had is one whose keys must begin
// well ahead of this machine's clock, because it was used with a clock that was
// ahead. It is given back, and another one looked for with the next key.
// [spi.ErrNoWorkerID] is in its chain.
type startError struct {
	WorkerID   int64
	Start, Now time.Time // where its keys begin, and what the clock says
}

func (e *startError) Error() string {
	return fmt.Sprintf("%v: worker id %d is free, but its keys begin at %s, %v ahead of this machine's clock (%s): it was used with a clock that was ahead; "+
		"set this clock right if it is wrong, wait, stop a holder of another worker id, or use a layout with more of them",
		spi.ErrNoWorkerID, e.WorkerID, stamp(e.Start), e.Start.Sub(e.Now), stamp(e.Now))
}

func (e *startError) Unwrap() error { return spi.ErrNoWorkerID }

// timeError says that a time does not fit the layout's time field.
// [spi.ErrTimeOverflow] is in its chain.
type timeError struct {
	Time        time.Time
	Layout      Layout
	Epoch, Last time.Time // what the field can hold
}

func (e *timeError) Error() string {
	return fmt.Sprintf("shardkey: time %s does not fit layout %s, which holds %s to %s; "+
		"check the clock and the epoch, or use more bits of time",
		stamp(e.Time), e.Layout, stamp(e.Epoch), stamp(e.Last))
}

func (e *timeError) Unwrap() error { return spi.ErrTimeOverflow }

// leaseError says that the reserved interval of the worker id is used up and
// could not be extended, or that the lease was lost ([spi.ErrLeaseLost] is then in
// its chain) and no other was to be had. [spi.ErrLeaseLimit] and the store's error are in its
// chain.
type leaseError struct {
	WorkerID int64
	Limit    time.Time // the end of the interval that was reserved
	Err      error     // why it was not extended
}

func (e *leaseError) Error() string {
	if errors.Is(e.Err, spi.ErrLeaseLost) {
		return fmt.Sprintf("shardkey: worker id %d is this generator's no longer, and it got no other: %v", e.WorkerID, e.Err)
	}
	return fmt.Sprintf("shardkey: worker id %d is reserved until %s only, and that could not be extended: %v",
		e.WorkerID, stamp(e.Limit), e.Err)
}

func (e *leaseError) Unwrap() []error { return []error{spi.ErrLeaseLimit, e.Err} }

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z") }
