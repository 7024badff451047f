package workerid

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// NoWorkerIDError says that every worker id is taken, and by whom. It is
// [spi.ErrNoWorkerID].
type NoWorkerIDError struct {
	Store       string // the store's description
	MaxWorkerID int64
	// Taken are the worker ids in 0..MaxWorkerID that could not be had.
	Taken []Entry
	// Soonest is when the first of them is free, by their records; zero when
	// that cannot be told.
	Soonest time.Time
}

// shownHolders bounds the holders that an error message names.
const shownHolders = 5

func (e *NoWorkerIDError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: all of 0..%d are taken in %s", spi.ErrNoWorkerID, e.MaxWorkerID, e.Store)
	for i, t := range e.Taken {
		if i == shownHolders {
			fmt.Fprintf(&b, "; and %d more", len(e.Taken)-i)
			break
		}
		if t.Err != nil {
			fmt.Fprintf(&b, "; %d: %v", t.WorkerID, t.Err)
		} else {
			fmt.Fprintf(&b, "; %d: %v", t.WorkerID, t.Record)
		}
	}
	if !e.Soonest.IsZero() {
		fmt.Fprintf(&b, "; the next is free at %s", e.Soonest.UTC().Format(time.RFC3339))
	}
	b.WriteString(": stop a holder, wait for its reservation to end, or use another namespace for another family of tables")
	return b.String()
}

func (e *NoWorkerIDError) Unwrap() error { return spi.ErrNoWorkerID }

// LeaseLostError says that a worker id is another owner's now. It is
// [spi.ErrLeaseLost].
type LeaseLostError struct {
	WorkerID int64
	Found    Record // what the store holds; zero when it holds none
	Err      error  // why the record is not understood, when it is not
}

func (e *LeaseLostError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("%v: worker id %d: %v", spi.ErrLeaseLost, e.WorkerID, e.Err)
	case e.Found.IsZero():
		return fmt.Sprintf("%v: worker id %d: its record was removed from the store", spi.ErrLeaseLost, e.WorkerID)
	}
	return fmt.Sprintf("%v: worker id %d: %v", spi.ErrLeaseLost, e.WorkerID, e.Found)
}

func (e *LeaseLostError) Unwrap() []error {
	if e.Err != nil {
		return []error{spi.ErrLeaseLost, e.Err}
	}
	return []error{spi.ErrLeaseLost}
}

// ForeignRecordError says that the place of a worker id's record holds
// something else. It is never overwritten. It is [spi.ErrStore].
type ForeignRecordError struct {
	WorkerID int64
	Value    string // what stands there; messages show its beginning
	Err      error  // what is wrong with it
}

func (e *ForeignRecordError) Error() string {
	shown := e.Value
	if len(shown) > 60 {
		shown = shown[:60] + "…"
	}
	return fmt.Sprintf("%v: the record of worker id %d is not shardkey's (%v): %q; it is left alone: remove it, or use another namespace",
		spi.ErrStore, e.WorkerID, e.Err, shown)
}

func (e *ForeignRecordError) Unwrap() []error { return []error{spi.ErrStore, e.Err} }

// ClockError says that this machine's clock is so far off that nothing it says
// is written to the store. It is [spi.ErrStore].
type ClockError struct {
	Clock time.Time // what this machine's clock says
	Other time.Time // what it was compared with
	What  string    // whose time Other is
}

func (e *ClockError) Error() string {
	return fmt.Sprintf("%v: this machine's clock says %s but %s %s: set the clock; nothing was reserved",
		spi.ErrStore, e.Clock.UTC().Format(time.RFC3339), e.What, e.Other.UTC().Format(time.RFC3339))
}

func (e *ClockError) Unwrap() error { return spi.ErrStore }

// StoreError says that the store could not be asked. It is [spi.ErrStore], and
// the store's own error is in its chain.
type StoreError struct {
	Store string // the store's description
	Op    string // what was asked for, as "list worker ids"
	Err   error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("%v: %s: %s: %v", spi.ErrStore, e.Store, e.Op, e.Err)
}

func (e *StoreError) Unwrap() []error { return []error{spi.ErrStore, e.Err} }

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
	h := spi.Health{WorkerID: new(l.workerID), LeaseRenewals: l.renewals, Err: l.lastErr}
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
		Warnings:      slices.Clone(a.warnings),
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
