package workerid

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// preference orders what a new owner may take, the best first. Taking again
// what was used before keeps the records few and the worker ids steady; a
// record that has only just run out may be a live one, seen by a clock that is
// a little ahead.
type preference int

const (
	released   preference = iota // and its start has come
	longFree                     // reserved_until is more than a lease ago
	neverUsed                    // no record
	justFree                     // reserved_until is not long ago
	startAhead                   // released, but it starts ahead of this clock
	notFree
)

// candidates are the worker ids in 0..maxWorkerID that look free, the best
// first. What does not, but stands out, becomes a warning in Health.
func (a *assigner) candidates(ctx context.Context, entries []Entry, maxWorkerID int64) ([]Entry, error) {
	known := map[int64]Entry{}
	for _, e := range entries {
		known[e.WorkerID] = e
	}
	ids, err := a.allowed(ctx, known, maxWorkerID)
	if err != nil {
		return nil, err
	}
	now := a.now()
	var free []Entry
	var warnings []string
	for _, id := range ids {
		e := known[id]
		e.WorkerID = id
		if warning := oddity(e, now); warning != "" {
			warnings = append(warnings, warning)
			continue
		}
		if a.prefer(e.Record, now) != notFree {
			free = append(free, e)
		}
	}
	a.warn(warnings)
	slices.SortStableFunc(free, func(x, y Entry) int {
		px, py := a.prefer(x.Record, now), a.prefer(y.Record, now)
		switch {
		case px != py:
			return cmp.Compare(px, py)
		case px == startAhead:
			return cmp.Compare(x.Record.start(), y.Record.start())
		}
		return cmp.Compare(y.Record.start(), x.Record.start()) // the latest first
	})
	return free, nil
}

// freshOffered bounds the worker ids without a record that are looked at: a
// layout may have billions.
const freshOffered = 256

// allowed are the worker ids to choose from: all with a record and the first
// ones without, or what the store chooses.
func (a *assigner) allowed(ctx context.Context, known map[int64]Entry, maxWorkerID int64) ([]int64, error) {
	if c, ok := a.store.(Chooser); ok {
		ids, err := c.WorkerIDs(ctx, maxWorkerID)
		ids = slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return id < 0 || id > maxWorkerID })
		return ids, a.storeError("choose a worker id", err)
	}
	var ids []int64
	for id := range known {
		if id >= 0 && id <= maxWorkerID {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for id, fresh := int64(0), 0; id <= maxWorkerID && fresh < freshOffered; id++ {
		if _, ok := known[id]; !ok {
			ids = append(ids, id)
			fresh++
		}
	}
	return ids, nil
}

func (a *assigner) prefer(r Record, now int64) preference {
	switch {
	case !a.rules.free(r, now):
		return notFree
	case r.IsZero():
		return neverUsed
	case r.FreeFrom > now:
		return startAhead
	case r.FreeFrom > 0:
		return released
	case r.ReservedUntil+a.config.Lease.Milliseconds() <= now:
		return longFree
	}
	return justFree
}

// oddity says what is wrong with a record that must not be taken: it is not
// understood, or a wrong clock has written it and ids would carry its time.
func oddity(e Entry, now int64) string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Record.start()-now > horizon.Milliseconds():
		return fmt.Sprintf("worker id %d is %v, more than %v ahead of this machine's clock: one of the clocks was wrong",
			e.WorkerID, e.Record, time.Duration(horizon))
	}
	return ""
}

// spreadOver is among how many of the best ones a random one comes next.
const spreadOver = 16

// spread puts a random one of the first few candidates to the front.
func (a *assigner) spread(ids []Entry) []Entry {
	if n := min(len(ids), spreadOver); n > 1 {
		i := a.intN(n)
		ids[0], ids[i] = ids[i], ids[0]
	}
	return ids
}

// looks is how often the store is looked at when others take every worker id
// that looked free.
const looks = 3

// take leases a worker id. It is false when there is none.
func (a *assigner) take(ctx context.Context, l *lease, maxWorkerID int64) (bool, error) {
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
func (a *assigner) takeOne(ctx context.Context, l *lease, ids []Entry) (bool, error) {
	for len(ids) > 0 {
		c := ids[0]
		taken, err := a.takeOver(ctx, l, c)
		if taken || err != nil {
			return taken, err
		}
		// Another process took it. When many start together, all continue with the same
		// next one; a random jump within the best ones spreads them.
		ids = a.spread(ids[1:])
	}
	return false, nil
}

func (a *assigner) list(ctx context.Context) ([]Entry, error) {
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
func (a *assigner) takeOver(ctx context.Context, l *lease, c Entry) (bool, error) {
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
	found, readErr := a.store.Get(ctx, c.WorkerID)
	switch confirmed := a.rules.confirmed(swapped, err); {
	case confirmed && readErr != nil:
		return false, a.storeError("read a worker id that was taken", readErr)
	case confirmed && found.Owner != next.Owner:
		return false, nil // another owner has it already
	case readErr != nil || found.Owner != next.Owner:
		// If it is applied later, no ids are made of it and it runs out.
		return false, a.storeError("take a worker id", err)
	case !found.Same(next) || found.FreeFrom != next.FreeFrom:
		return false, a.storeError("take a worker id", &alteredError{Wrote: next, Found: found})
	case confirmed:
		l.begin(c.WorkerID, floor, next.ReservedUntil, next)
		return true, nil
	}
	// The outcome was not known, and the record is there: it is ours, but the
	// store has not confirmed it.
	l.begin(c.WorkerID, floor, a.rules.shown(noLimit, next), next)
	var lost *leaseLostError
	err = l.reserve(ctx, now)
	if errors.As(err, &lost) {
		return false, nil
	}
	return err == nil, err
}

// newToken is an owner's token: 128 random bits, so that the same record is never
// written twice.
func newToken() string {
	var b [16]byte
	_, _ = cryptorand.Read(b[:]) // never fails: the runtime ends the program instead
	return tokenOf(b, time.Now())
}

// tokenOf adds the time to the random bits: machines started from one snapshot may
// go on with the same random numbers, but hardly in the same nanosecond.
func tokenOf(random [16]byte, now time.Time) string {
	return hex.EncodeToString(random[:]) + "-" + strconv.FormatInt(now.UnixNano(), 36)
}

// earliest is before any clock that is not plainly unset.
var earliest = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)

// checkClock refuses to write by a clock that is decades off. Ids would stay
// unique, but the worker id would be of no use until that time has come.
func (a *assigner) checkClock(ctx context.Context, newest int64) error {
	now := a.config.Clock.Now()
	if now.Before(earliest) {
		return &clockError{Clock: now, Other: earliest, What: "it is later than"}
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
			return &clockError{Clock: now, Other: other, What: "the store's says"}
		}
		return nil
	}
	if newest > 0 && ahead > longestPause {
		return &clockError{Clock: now, Other: time.UnixMilli(newest), What: "the newest reservation in the store is of"}
	}
	return nil
}

// newest is the latest reservation of the records.
func newest(entries []Entry) int64 {
	latest := int64(0)
	for _, e := range entries {
		latest = max(latest, e.Record.ReservedUntil)
	}
	return latest
}

// noWorkerID makes the error for a store that has none free.
func (a *assigner) noWorkerID(ctx context.Context, maxWorkerID int64) error {
	e := &NoWorkerIDError{Store: a.store.Describe(), MaxWorkerID: maxWorkerID}
	entries, err := a.store.List(ctx)
	if err != nil {
		return errors.Join(e, a.storeError("list worker ids", err))
	}
	slices.SortFunc(entries, func(x, y Entry) int { return cmp.Compare(x.WorkerID, y.WorkerID) })
	soonest := int64(0)
	for _, t := range entries {
		if t.WorkerID > maxWorkerID {
			continue
		}
		e.Taken = append(e.Taken, t)
		if t.isHere() {
			e.Here = append(e.Here, t.WorkerID)
		}
		if t.Err == nil && (soonest == 0 || t.Record.start() < soonest) {
			soonest = t.Record.start()
		}
	}
	if soonest > 0 {
		e.Soonest = time.UnixMilli(soonest)
	}
	return e
}
