package workerid

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// stats are an assigner's figures; its mu guards them.
type stats struct {
	acquired  int64
	renewals  int64
	lost      int64
	errors    map[string]int64
	lastErr   error
	lastErrAt time.Time
	acquireBy error // why the last acquisition failed; nil after a good one
}

// Health says how the lease is: Err is set as soon as a renewal fails, which is
// long before its limit.
func (l *Lease) Health() spi.Health {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := spi.Health{WorkerID: l.workerID, LeaseRenewals: l.renewals, Err: l.lastErr}
	if l.ended != nil {
		h.Err = l.ended
		return h
	}
	limit := l.limit.Load()
	h.LeaseLimit = time.UnixMilli(limit)
	if h.Err == nil && limit <= l.assigner.now() {
		h.Err = fmt.Errorf("%w: worker id %d: reserved until %s", spi.ErrLeaseLimit, l.workerID, formatTime(limit))
	}
	return h
}

// tried counts an attempt to renew, and logs when renewals begin to fail. One
// that its caller's context ended says nothing about the store.
func (l *Lease) tried(err error, callerEnded bool) {
	if err != nil && callerEnded {
		return
	}
	l.mu.Lock()
	first := err != nil && l.lastErr == nil && l.ended == nil
	l.tries++
	l.lastErr = err
	if err == nil {
		l.renewals++
	}
	l.mu.Unlock()
	a := l.assigner
	if err != nil {
		a.count(err)
	} else {
		a.mu.Lock()
		a.stats.renewals++
		a.mu.Unlock()
	}
	if first {
		a.config.Logger.Warn("shardkey: worker-id lease could not be renewed; keys go on to its limit",
			"worker_id", l.workerID, "limit", formatTime(l.Limit()), "error", err)
	}
}

// lost counts and logs a lease that is another owner's now.
func (a *Assigner) lost(l *Lease, err error) {
	a.forget(l)
	a.mu.Lock()
	a.stats.lost++
	a.mu.Unlock()
	a.config.Logger.Warn("shardkey: worker-id lease lost; another worker id is taken at the next key", "worker_id", l.workerID, "error", err)
}

// failed counts an acquisition that failed.
func (a *Assigner) failed(err error) {
	a.count(err)
	a.mu.Lock()
	a.stats.acquireBy = err
	a.mu.Unlock()
}

func (a *Assigner) count(err error) {
	now := a.config.Clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stats.errors[errorKind(err)]++
	a.stats.lastErr, a.stats.lastErrAt = err, now
}

func errorKind(err error) string {
	var clock *ClockError
	var foreign *ForeignRecordError
	switch {
	case errors.Is(err, spi.ErrLeaseLost):
		return "lease-lost"
	case errors.Is(err, spi.ErrNoWorkerID):
		return "no-worker-id"
	case errors.As(err, &clock):
		return "clock"
	case errors.As(err, &foreign):
		return "foreign-record"
	case errors.Is(err, spi.ErrClosed):
		return "closed"
	}
	return "store"
}

// warn keeps what the last look at the store found odd, a few of them.
func (a *Assigner) warn(warnings []string) {
	const shown = 5
	if n := len(warnings); n > shown {
		warnings = append(warnings[:shown:shown], fmt.Sprintf("and %d more worker ids like these", n-shown))
	}
	a.mu.Lock()
	a.warnings = warnings
	a.mu.Unlock()
}

// held are the worker ids held, in order.
func (a *Assigner) held() []int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := []int64{}
	for l := range a.leases {
		ids = append(ids, l.workerID)
	}
	slices.Sort(ids)
	return ids
}

// Health sums up the assigner's leases: Err is the trouble of the one whose
// limit comes first, or why no worker id could be had.
func (a *Assigner) Health() spi.Health {
	a.mu.Lock()
	h := spi.Health{
		WorkerID: -1, Warnings: slices.Clone(a.warnings),
		LeaseRenewals: a.stats.renewals, LeasesLost: a.stats.lost,
		Errors: maps.Clone(a.stats.errors), LastError: a.stats.lastErr, LastErrorTime: a.stats.lastErrAt,
		Err: a.stats.acquireBy,
	}
	leases := slices.Collect(maps.Keys(a.leases))
	a.mu.Unlock()
	for _, l := range leases {
		one := l.Health()
		if h.LeaseLimit.IsZero() || one.LeaseLimit.Before(h.LeaseLimit) {
			h.WorkerID, h.LeaseLimit = one.WorkerID, one.LeaseLimit
		}
		if h.Err == nil {
			h.Err = one.Err
		}
	}
	return h
}
