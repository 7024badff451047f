package workerid

import (
	"context"
	"errors"
	"time"
)

var errCopied = errors.New("this process, or its machine, was saved and started again from what was saved, " +
	"and another copy may continue with the same worker ID")

// copied returns why this process is not certain to be the only one that continues
// with the lease; nil while nothing tells.
func (l *lease) copied() error {
	now := l.assigner.identity()
	if now == l.identity || now == "" || l.identity == "" {
		return nil
	}
	return &leaseLostError{WorkerID: l.workerID, Err: errCopied}
}

// lookEvery is how often a lease looks whether its process is a copy, and stepMost
// how far the clock may be set in that time without its being taken for one
// that a snapshot had stopped.
const (
	lookEvery = 100 * time.Millisecond
	stepMost  = time.Second
)

// sleep waits for d. It returns early when the process is a copy, or the clock was
// set, as that of a machine that comes from a snapshot is: the store is then to be
// asked at once, since a record that two copies have can be renewed by one of them only.
func (l *lease) sleep(ctx context.Context, d time.Duration) error {
	clock := l.assigner.config.Clock
	for last := clock.Now(); d > 0; d -= lookEvery {
		if err := clock.Sleep(ctx, min(d, lookEvery)); err != nil {
			return err
		}
		now := clock.Now()
		if l.copied() != nil || clockWasSet(last, now) {
			return nil
		}
		last = now
	}
	return nil
}

// clockWasSet compares what passed by the wall clock with what passed by the
// monotonic one.
func clockWasSet(from, to time.Time) bool {
	return wasSet(to.Round(0).Sub(from.Round(0)), to.Sub(from))
}

func wasSet(wall, passed time.Duration) bool { return (wall - passed).Abs() > stepMost }
