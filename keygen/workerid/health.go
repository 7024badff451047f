package workerid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Health returns the state of the lease. Err is set as soon as a renewal fails, which is long
// before the limit.
func (l *lease) Health() spi.Health {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := spi.Health{
		WorkerID: new(l.workerID), Lease: &spi.LeaseHealth{Renewals: l.renewals},
		Err: l.lastErr, Warnings: l.assigner.storeWarnings(),
	}
	if l.ended != nil {
		h.Err = l.ended
		return h
	}
	limit := l.limit.Load()
	h.Lease.Limit, h.Lease.Length = time.UnixMilli(limit), l.assigner.length()
	if h.Err == nil && limit <= l.assigner.now() {
		h.Err = fmt.Errorf("%w: worker ID %d: the reservation ended at %s", spi.ErrLeaseLimit, l.workerID, formatTime(limit))
	}
	return h
}

// tried counts an attempt to renew, and logs the first of several failures. It ignores an attempt
// that its caller's context ended, because that shows nothing about the store.
func (l *lease) tried(err error, callerEnded bool) {
	if err != nil && callerEnded {
		return
	}
	a := l.assigner
	atLimit := err != nil && l.Limit() <= a.now()
	l.mu.Lock()
	first, again := err != nil && l.lastErr == nil && l.ended == nil, err == nil && l.lastErr != nil
	stops := atLimit && !l.stopped && l.ended == nil
	l.stopped = atLimit
	l.lastErr = err
	if err == nil {
		l.renewals++
	}
	l.mu.Unlock()
	if err != nil {
		a.count(err)
	} else {
		a.mu.Lock()
		a.figures.Lease.Renewals++
		a.mu.Unlock()
	}
	log := a.config.Logger
	if first && !stops {
		log.Warn("shardkey: lease renewal failed",
			"worker_id", l.workerID, "until", formatTime(l.Limit()), "error", err)
	}
	if stops {
		log.Error("shardkey: lease ended, no keys until it is renewed",
			"worker_id", l.workerID, "until", formatTime(l.Limit()), "error", err)
	}
	if again {
		log.Info("shardkey: lease renewed again", "worker_id", l.workerID, "until", formatTime(l.Limit()))
	}
}

func (a *assigner) released(l *lease, until int64, err error) {
	if err != nil {
		a.config.Logger.Warn("shardkey: worker ID not released",
			"worker_id", l.workerID, "until", formatTime(until), "error", err)
		return
	}
	a.config.Logger.Info("shardkey: worker ID released", "worker_id", l.workerID)
}

// lost counts and logs a lease that another owner has taken over.
func (a *assigner) lost(l *lease, err error) {
	a.forget(l)
	a.mu.Lock()
	a.figures.Lease.Lost++
	a.mu.Unlock()
	a.config.Logger.Warn("shardkey: lease lost",
		"worker_id", l.workerID, "error", err)
}

// failed counts a failed acquisition, and logs the first of several.
func (a *assigner) failed(err error) {
	a.count(err)
	a.mu.Lock()
	first := a.figures.Err == nil && !a.closed && !errors.Is(err, context.Canceled)
	a.figures.Err = err
	a.mu.Unlock()
	if first {
		a.config.Logger.Error("shardkey: no worker ID leased, no keys until one is", "error", err)
	}
}

func (a *assigner) count(err error) {
	now := a.config.Clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.figures.Error(kindOf(err), err, now)
}

// shownOdd limits the worker IDs in warnings.
const shownOdd = 5

// addWarning records a warning about a worker ID, and logs it the first time.
func (a *assigner) addWarning(workerID int64, warning string) {
	a.mu.Lock()
	known := a.logged[workerID]
	a.logged[workerID] = true
	a.odd = append(a.odd, warning)
	a.mu.Unlock()
	if !known {
		a.config.Logger.Warn("shardkey: worker ID skipped", "worker_id", workerID, "reason", warning)
	}
}

// clearWarnings removes the warnings before the store is read again.
func (a *assigner) clearWarnings() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.odd = nil
}

// askWarnings asks the store for its warnings, and logs new ones. If the request fails, the old
// warnings stay, and the next operation will return the error.
func (a *assigner) askWarnings(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, a.opTimeout())
	defer cancel()
	var warnings []string
	if a.info.Warnings != nil {
		var err error
		if warnings, err = a.info.Warnings(ctx); err != nil {
			return
		}
	}
	if other := a.otherLayouts(ctx); other != "" {
		warnings = append(slices.Clone(warnings), other)
	}
	a.mu.Lock()
	before := a.forgets
	a.forgets = warnings
	a.mu.Unlock()
	for _, w := range warnings {
		if !slices.Contains(before, w) {
			a.config.Logger.Warn("shardkey: worker IDs may not be unique",
				"store", a.info.Name, "warning", w)
		}
	}
}

func (a *assigner) storeWarnings() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append(a.failoverWarnings(), a.forgets...)
}

// Health returns the state of all leases. Err is the error of the lease that reaches its limit
// first, or of the last failed acquisition.
func (a *assigner) Health() spi.Health {
	a.mu.Lock()
	h := a.figures.Snapshot()
	h.Warnings = slices.Clone(a.odd[:min(shownOdd, len(a.odd))])
	if more := len(a.odd) - shownOdd; more > 0 {
		h.Warnings = append(h.Warnings, fmt.Sprintf("%d more worker IDs have similar warnings", more))
	}
	leases := slices.Collect(maps.Keys(a.leases))
	a.mu.Unlock()
	h.Warnings = append(h.Warnings, a.storeWarnings()...)
	for _, l := range leases {
		one := l.Health()
		if h.Lease.Limit.IsZero() || one.Lease.Limit.Before(h.Lease.Limit) {
			h.WorkerID, h.Lease.Limit, h.Lease.Length = one.WorkerID, one.Lease.Limit, one.Lease.Length
		}
		h.Err = cmp.Or(h.Err, one.Err)
	}
	return h
}
