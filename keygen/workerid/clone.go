package workerid

import (
	"context"
	"errors"
	"time"
)

var errCopied = errors.New("this process or its machine was restored from a snapshot, " +
	"so another copy may use the same worker ID")

// copied returns an error if this process may be a clone that shares the lease with another
// process.
func (l *lease) copied() error {
	now := l.assigner.identity()
	if now == l.identity || now == "" || l.identity == "" {
		return nil
	}
	return leaseLost(l.workerID, errCopied)
}

// lookEvery is how often a lease checks whether its process is a clone. stepMost is how far the
// clock may be set in that time without being a sign of a restored snapshot.
const (
	lookEvery = 100 * time.Millisecond
	stepMost  = time.Second
)

// sleep waits for d. It returns early if the process is a clone or if the clock was set, as on a
// machine that was restored from a snapshot. The lease is then renewed at once, because only one of
// two clones can renew it.
func (l *lease) sleep(ctx context.Context, d time.Duration) error {
	clock := l.assigner.config.Clock
	for last := clock.Now(); d > 0; {
		if err := clock.Sleep(ctx, min(d, lookEvery)); err != nil {
			return err
		}
		now := clock.Now()
		passed := now.Sub(last)
		if l.copied() != nil || wasSet(now.Round(0).Sub(last.Round(0)), passed) {
			return nil
		}
		d -= max(passed, lookEvery) // a busy process oversleeps
		last = now
	}
	return nil
}

// wasSet compares the time that passed by the wall clock with the monotonic clock.
func wasSet(wall, passed time.Duration) bool { return (wall - passed).Abs() > stepMost }
