package workerid

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// preference orders what a new owner may take, the best first. Taking again
// what was used before keeps the records few and the worker IDs steady; a
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

// candidates are worker IDs in 0..maxWorkerID that look free: the best, in their
// order, and some of all others at random, for when many processes start together.
// What stands out becomes a warning in Health.
func (a *assigner) candidates(ctx context.Context, listed []Entry, maxWorkerID int64) ([]Entry, error) {
	known := map[int64]Entry{}
	for _, e := range listed {
		known[e.WorkerID] = e
	}
	ids, err := a.allowed(ctx, known, maxWorkerID)
	if err != nil {
		return nil, err
	}
	now := a.now()
	var free []candidate
	a.clearWarnings()
	for _, id := range ids {
		e := known[id]
		if warning := a.oddity(id, e, now); warning != "" {
			a.addWarning(id, warning)
			continue
		}
		if p := a.prefer(e.Record, now); p != notFree {
			free = append(free, candidate{id, p, e.Record.start()})
		}
	}
	slices.SortStableFunc(free, candidate.compare)
	var entries []Entry
	for _, c := range a.some(free) {
		entries = append(entries, Entry{WorkerID: c.id, Record: known[c.id].Record})
	}
	return entries, nil
}

// candidate is a worker ID that looks free.
type candidate struct {
	id         int64
	preference preference
	start      int64 // of its next owner
}

// compare puts the one before that was used last, as its machine may have been this
// one; of those that start ahead of this clock the first.
func (c candidate) compare(other candidate) int {
	switch {
	case c.preference != other.preference:
		return cmp.Compare(c.preference, other.preference)
	case c.preference == startAhead:
		return cmp.Compare(c.start, other.start)
	}
	return cmp.Compare(other.start, c.start)
}

// bestOffered are how many candidates are kept in their order, offered how many
// altogether.
const (
	bestOffered = 16
	offered     = 64
)

// some are the best of the free ones and, of the others, some at random.
func (a *assigner) some(free []candidate) []candidate {
	if len(free) <= offered {
		return free
	}
	for i := bestOffered; i < offered; i++ {
		j := i + a.intN(len(free)-i)
		free[i], free[j] = free[j], free[i]
	}
	return free[:offered]
}

// allowed are the worker IDs to choose from: all with a record and, of those
// without, the first ones and some at random, as a layout may have billions; or what the
// store chooses.
func (a *assigner) allowed(ctx context.Context, known map[int64]Entry, maxWorkerID int64) ([]int64, error) {
	if a.info.WorkerIDs != nil {
		ids, err := a.info.WorkerIDs(ctx, maxWorkerID)
		ids = slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return id < 0 || id > maxWorkerID })
		return ids, a.storeError("choose a worker ID", err)
	}
	var ids []int64
	for id := range known {
		if id >= 0 && id <= maxWorkerID {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	fresh := len(ids)
	for id := int64(0); id <= maxWorkerID && len(ids) < fresh+bestOffered; id++ {
		if _, ok := known[id]; !ok {
			ids = append(ids, id)
		}
	}
	for range offered {
		id := int64(a.intN(int(min(maxWorkerID, math.MaxInt32-1)) + 1))
		if _, ok := known[id]; !ok && !slices.Contains(ids[fresh:], id) {
			ids = append(ids, id)
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
func (a *assigner) oddity(id int64, e Entry, now int64) string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Record.start()-now > a.horizon().Milliseconds():
		return fmt.Sprintf("worker ID %d is %v, more than %v ahead of this machine's clock: one of the clocks was wrong",
			id, e.Record, a.horizon())
	}
	return ""
}

// spread puts a random one of the first n candidates to the front.
func (a *assigner) spread(ids []Entry, n int) []Entry {
	if n = min(len(ids), n); n > 1 {
		i := a.intN(n)
		ids[0], ids[i] = ids[i], ids[0]
	}
	return ids
}

// looks is how often the store is looked at when others take every worker ID
// that looked free.
const looks = 3

// takeOperations bounds the time that it takes to lease a worker ID, in operations that
// are as slow as they may be. A store that is asked by thousands at once answers
// each of them late: who gives up and begins again makes it worse.
const takeOperations = 10

// take leases a worker ID. It is false when there is none.
func (a *assigner) take(ctx context.Context, l *lease, maxWorkerID int64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, takeOperations*a.opTimeout())
	defer cancel()
	a.askWarnings(ctx)
	a.notNoted.Store(nil)
	if err := a.noteLease(ctx); err != nil {
		return false, err
	}
	for range looks {
		entries, err := a.list(ctx)
		if err != nil {
			return false, err
		}
		l.seen = a.newestHeld(entries)
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

// takeOne leases the first of the candidates that can be had. One that is lost to
// another process is followed by another of the best, so that two that start together
// keep the records few; the next ones by any, as thousands would all lose the same.
func (a *assigner) takeOne(ctx context.Context, l *lease, ids []Entry) (bool, error) {
	for among := bestOffered; len(ids) > 0; among = offered {
		taken, err := a.takeOver(ctx, l, ids[0])
		if taken || err != nil {
			return taken, err
		}
		ids = a.spread(ids[1:], among)
	}
	return false, nil
}

func (a *assigner) list(ctx context.Context) ([]Entry, error) {
	bounded, cancel := context.WithTimeout(ctx, a.opTimeout())
	defer cancel()
	entries, err := a.store.List(bounded)
	if err != nil {
		return nil, a.storeError("list worker IDs", err)
	}
	if err := a.checkClock(ctx, 0, entries); err != nil {
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
		ReservedUntil: a.rules.raise(c.Record, max(now, floor)+a.length().Milliseconds()),
		Holder:        a.holder,
		Since:         now,
	}
	bounded, cancel := context.WithTimeout(ctx, a.opTimeout())
	defer cancel()
	swapped, err := a.store.CompareAndSet(bounded, c.WorkerID, c.Record, next)
	var foreign *ForeignRecordError
	if errors.As(err, &foreign) {
		a.addWarning(c.WorkerID, err.Error())
		return false, nil
	}
	if err == nil && !swapped {
		return false, nil
	}
	bounded, cancel = context.WithTimeout(ctx, a.opTimeout())
	defer cancel()
	found, readErr := a.store.Get(bounded, c.WorkerID)
	confirmed := a.rules.confirmed(swapped, err)
	switch {
	case confirmed && readErr != nil:
		return false, a.storeError("read a worker ID that was taken", readErr)
	case confirmed && found.Owner != next.Owner:
		return false, nil // another owner has it already
	case readErr != nil || found.Owner != next.Owner:
		// If it is applied later, no ids are made of it and it runs out.
		return false, a.storeError("take a worker ID", err)
	case !found.Same(next) || found.FreeFrom != next.FreeFrom:
		return false, a.storeError("take a worker ID", &alteredError{Wrote: next, Found: found})
	}
	if floor, err = l.apart(ctx, floor, now, l.seen); err != nil {
		return false, err
	}
	if confirmed {
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
// continue with the same random numbers, but hardly in the same nanosecond.
func tokenOf(random [16]byte, now time.Time) string {
	return hex.EncodeToString(random[:]) + "-" + strconv.FormatInt(now.UnixNano(), 36)
}

// newestHeld is the latest reservation of the records that are held, but for those that only a
// wrong clock can have made.
func (a *assigner) newestHeld(entries []Entry) int64 {
	latest, most := int64(0), a.now()+(a.config.MaxClockAhead+a.mostAhead()).Milliseconds()
	for _, e := range entries {
		if until := e.Record.ReservedUntil; e.Record.FreeFrom == 0 && until <= most {
			latest = max(latest, until)
		}
	}
	return latest
}

// started tells this process from one before it that had its name, as the same container has.
var started = time.Now().UnixMilli()

// noWorkerID makes the error for a store that has none free.
func (a *assigner) noWorkerID(ctx context.Context, maxWorkerID int64) error {
	e := &noWorkerIDError{Store: a.info.Name, MaxWorkerID: maxWorkerID}
	entries, err := a.store.List(ctx)
	if err != nil {
		return errors.Join(e, a.storeError("list worker IDs", err))
	}
	if a.info.WorkerIDs != nil {
		ids, err := a.allowed(ctx, nil, maxWorkerID)
		if err != nil {
			return errors.Join(e, err)
		}
		entries = slices.DeleteFunc(entries, func(e Entry) bool { return !slices.Contains(ids, e.WorkerID) })
	}
	slices.SortFunc(entries, func(x, y Entry) int { return cmp.Compare(x.WorkerID, y.WorkerID) })
	soonest := int64(0)
	for _, t := range entries {
		if t.WorkerID > maxWorkerID {
			continue
		}
		e.Taken = append(e.Taken, t)
		if r := t.Record; r.Holder == a.holder && r.FreeFrom == 0 && r.Since >= started {
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
