package workerid

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"
)

// looks is how often the store is looked at when others take every worker id
// that looked free.
const looks = 3

// take leases a worker id. It is false when there is none.
func (a *Assigner) take(ctx context.Context, l *Lease, maxWorkerID int64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*a.opTimeout())
	defer cancel()
	for range looks {
		entries, err := a.list(ctx)
		if err != nil {
			return false, err
		}
		ids, err := a.candidates(ctx, entries, maxWorkerID)
		if err != nil || len(ids) == 0 {
			return false, err
		}
		if taken, err := a.takeOne(ctx, l, ids); taken || err != nil {
			return taken, err
		}
	}
	return false, nil
}

// takeOne leases the first of the candidates that can be had, in their order.
func (a *Assigner) takeOne(ctx context.Context, l *Lease, ids []Entry) (bool, error) {
	for len(ids) > 0 {
		c := ids[0]
		taken, err := a.takeOver(ctx, l, c)
		if taken || err != nil {
			return taken, err
		}
		// Somebody else took it. When many start at once, all go on to the same
		// next one; a random jump within the best ones spreads them.
		ids = a.spread(ids[1:])
	}
	return false, nil
}

func (a *Assigner) list(ctx context.Context) ([]Entry, error) {
	entries, err := a.store.List(ctx)
	if err != nil {
		return nil, a.storeError("list worker ids", err)
	}
	if err := a.checkClock(ctx, newest(entries)); err != nil {
		return nil, err
	}
	return entries, nil
}

// takeOver tries to put l's first record on top of c's. It is false when
// another owner was faster.
func (a *Assigner) takeOver(ctx context.Context, l *Lease, c Entry) (bool, error) {
	now := a.now()
	floor := a.rules.floor(c.Record, now)
	next := Record{
		Owner:         newToken(),
		ReservedUntil: a.rules.raise(c.Record, max(now, floor)+a.config.Lease.Milliseconds()),
		Holder:        a.holder,
		Since:         now,
	}
	swapped, err := a.store.CompareAndSet(ctx, c.WorkerID, c.Record, next)
	if err == nil && !swapped {
		return false, nil
	}
	if !a.rules.confirmed(swapped, err) {
		// The outcome is not known. If the record is there after all, it is
		// ours; if not, but it still comes, nobody makes ids of it and it runs
		// out.
		found, again := a.store.Get(ctx, c.WorkerID)
		if again != nil || found.Owner != next.Owner {
			return false, a.storeError("take a worker id", err)
		}
	}
	l.begin(c.WorkerID, floor, next)
	return true, nil
}

// newToken is an owner's token: 128 random bits, so that nobody writes the same
// record twice.
func newToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime ends the program instead
	return hex.EncodeToString(b[:])
}

// earliest is before any clock that is not plainly unset.
var earliest = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)

// checkClock refuses to write by a clock that is decades off. Ids would stay
// unique, but the worker id would be of no use until that time has come.
func (a *Assigner) checkClock(ctx context.Context, newest int64) error {
	now := a.config.Clock.Now()
	if now.Before(earliest) {
		return &ClockError{Clock: now, Other: earliest, What: "it is later than"}
	}
	ahead := now.Sub(time.UnixMilli(newest))
	if newest > 0 && ahead <= horizon {
		return nil
	}
	if c, ok := a.store.(Clocked); ok {
		other, err := c.Now(ctx)
		if err != nil {
			return a.storeError("ask for the time", err)
		}
		if !other.IsZero() && now.Sub(other) > horizon {
			return &ClockError{Clock: now, Other: other, What: "the store's says"}
		}
		return nil
	}
	if newest > 0 && ahead > longestPause {
		return &ClockError{Clock: now, Other: time.UnixMilli(newest), What: "the newest reservation in the store is of"}
	}
	return nil
}

// newest is the latest time that any of the records speaks of.
func newest(entries []Entry) int64 {
	latest := int64(0)
	for _, e := range entries {
		latest = max(latest, e.Record.ReservedUntil)
	}
	return latest
}

// noWorkerID makes the error for a store that has none free.
func (a *Assigner) noWorkerID(ctx context.Context, maxWorkerID int64) error {
	e := &NoWorkerIDError{Store: a.store.Describe(), MaxWorkerID: maxWorkerID}
	entries, err := a.store.List(ctx)
	if err != nil {
		return errors.Join(e, a.storeError("list worker ids", err))
	}
	soonest := int64(0)
	for _, t := range entries {
		if t.WorkerID > maxWorkerID {
			continue
		}
		e.Taken = append(e.Taken, t)
		if t.Err == nil && (soonest == 0 || t.Record.ReservedUntil < soonest) {
			soonest = t.Record.ReservedUntil
		}
	}
	if soonest > 0 {
		e.Soonest = time.UnixMilli(soonest)
	}
	return e
}
