package workerid

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

// Health says how the lease is: Err is set as soon as a renewal fails, which is
// long before its limit.
func (l *lease) Health() spi.Health {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := spi.Health{
		WorkerID: new(l.workerID), LeaseRenewals: new(l.renewals),
		Err: l.lastErr, Warnings: l.assigner.storeWarnings(),
	}
	if l.ended != nil {
		h.Err = l.ended
		return h
	}
	limit := l.limit.Load()
	h.LeaseLimit, h.LeaseLength = time.UnixMilli(limit), l.assigner.length()
	if h.Err == nil && limit <= l.assigner.now() {
		h.Err = fmt.Errorf("%w: worker ID %d: reserved until %s", spi.ErrLeaseLimit, l.workerID, formatTime(limit))
	}
	return h
}

// tried counts an attempt to renew, and logs when renewals begin to fail. One
// that its caller's context ended says nothing about the store.
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
	l.tries++
	l.lastErr = err
	if err == nil {
		l.renewals++
	}
	l.mu.Unlock()
	if err != nil {
		a.count(err)
	} else {
		a.mu.Lock()
		a.figures.LeaseRenewals = stats.Add(a.figures.LeaseRenewals, 1)
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

// leased logs a lease that begins.
func (a *assigner) leased(l *lease) {
	a.config.Logger.Info("shardkey: worker ID leased", "worker_id", l.workerID, "until", formatTime(l.Limit()))
}

// released logs a lease that was released, or was to be.
func (a *assigner) released(l *lease, until int64, err error) {
	if err != nil {
		a.config.Logger.Warn("shardkey: worker ID not released",
			"worker_id", l.workerID, "until", formatTime(until), "error", err)
		return
	}
	a.config.Logger.Info("shardkey: worker ID released", "worker_id", l.workerID)
}

// lost counts and logs a lease that is another owner's now.
func (a *assigner) lost(l *lease, err error) {
	a.forget(l)
	a.mu.Lock()
	a.figures.LeasesLost = stats.Add(a.figures.LeasesLost, 1)
	a.mu.Unlock()
	a.config.Logger.Warn("shardkey: lease lost",
		"worker_id", l.workerID, "error", err)
}

// failed counts an acquisition that failed, and logs the first of a row.
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

// kindOf is the word under which health counts an error.
func kindOf(err error) string {
	kind := stats.KindOf(err,
		stats.Kind{Err: spi.ErrLeaseLost, Name: "lease-lost"},
		stats.Kind{Err: spi.ErrNoWorkerID, Name: "no-worker-id"},
		stats.Kind{Err: spi.ErrStore, Name: "store"})
	if kind != "store" {
		return kind
	}
	var clock *clockError
	var foreign *ForeignRecordError
	switch {
	case errors.As(err, &clock):
		return "clock"
	case errors.As(err, &foreign):
		return "foreign-record"
	}
	return kind
}

// shownOdd bounds the worker IDs that warnings name.
const shownOdd = 5

// addWarning keeps what is wrong with a worker ID, and logs it the first time.
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

// clearWarnings begins another look at the store.
func (a *assigner) clearWarnings() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.odd = nil
}

// askWarnings asks the store how it may forget leases, and logs what is new. What was known
// stays if it can't be asked: the error is also that of the next operation.
func (a *assigner) askWarnings(ctx context.Context) {
	if a.info.Warnings == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, a.opTimeout())
	defer cancel()
	warnings, err := a.info.Warnings(ctx)
	if err != nil {
		return
	}
	a.mu.Lock()
	before := a.forgets
	a.forgets = warnings
	a.mu.Unlock()
	for _, w := range warnings {
		if !slices.Contains(before, w) {
			a.config.Logger.Warn("shardkey: worker-ID store is not durable",
				"store", a.info.Name, "warning", w)
		}
	}
}

// storeWarnings are the standing risks of the store.
func (a *assigner) storeWarnings() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append(a.failoverWarnings(), a.forgets...)
}

// held are the worker IDs held, in order.
func (a *assigner) held() []int64 {
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
// limit comes first, or why no worker ID could be had.
func (a *assigner) Health() spi.Health {
	a.mu.Lock()
	h := a.figures.Snapshot()
	h.Warnings = slices.Clone(a.odd[:min(shownOdd, len(a.odd))])
	if more := len(a.odd) - shownOdd; more > 0 {
		h.Warnings = append(h.Warnings, fmt.Sprintf("and %d more worker IDs like these", more))
	}
	leases := slices.Collect(maps.Keys(a.leases))
	a.mu.Unlock()
	h.Warnings = append(h.Warnings, a.storeWarnings()...)
	for _, l := range leases {
		one := l.Health()
		if h.LeaseLimit.IsZero() || one.LeaseLimit.Before(h.LeaseLimit) {
			h.WorkerID, h.LeaseLimit, h.LeaseLength = one.WorkerID, one.LeaseLimit, one.LeaseLength
		}
		if h.Err == nil {
			h.Err = one.Err
		}
	}
	return h
}
