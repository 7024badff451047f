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
	"strings"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// preference orders the worker IDs that a new owner may take, the best first. Reusing worker IDs
// keeps the records few and the worker IDs stable. A record that ended only just now may belong to
// a live lease, if this machine's clock is a little ahead.
type preference int

const (
	released   preference = iota // released, and its start is not ahead of this clock
	longFree                     // reserved_until is more than a lease ago
	neverUsed                    // no record
	justFree                     // reserved_until is recent
	startAhead                   // released, but its start is ahead of this clock
	notFree
)

// candidates returns worker IDs in 0..maxWorkerID that look free: the best in order, and some of
// the others at random, in case many processes start together. Invalid records become warnings in
// Health.
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
	var free []Entry
	a.clearWarnings()
	for _, id := range ids {
		e := known[id]
		e.WorkerID = id
		if warning := a.oddity(e, now); warning != "" {
			a.addWarning(id, warning)
		} else if a.prefer(e.Record, now) != notFree {
			free = append(free, e)
		}
	}
	slices.SortStableFunc(free, func(x, y Entry) int { return a.compare(x.Record, y.Record, now) })
	return a.some(free), nil
}

// compare orders records for a new owner. The most recently used one comes first, because this
// machine may have used it. If they start ahead of this clock, the earliest start comes first.
func (a *assigner) compare(x, y Record, now int64) int {
	p, q := a.prefer(x, now), a.prefer(y, now)
	switch {
	case p != q:
		return cmp.Compare(p, q)
	case p == startAhead:
		return cmp.Compare(x.start(), y.start())
	}
	return cmp.Compare(y.start(), x.start())
}

// bestOffered is the number of candidates that are kept in order, and offered is the number of all
// candidates.
const (
	bestOffered = 16
	offered     = 64
)

// some returns the best candidates, and some of the others at random.
func (a *assigner) some(free []Entry) []Entry {
	if len(free) <= offered {
		return free
	}
	for i := bestOffered; i < offered; i++ {
		j := i + a.intN(len(free)-i)
		free[i], free[j] = free[j], free[i]
	}
	return free[:offered]
}

// allowed returns the worker IDs to choose from. They are all that have a record and, of those
// without, the first ones and some at random, because a layout may have billions. If the store
// chooses the worker IDs, allowed returns its choice.
func (a *assigner) allowed(ctx context.Context, known map[int64]Entry, maxWorkerID int64) ([]int64, error) {
	if a.info.WorkerIDs != nil {
		ids, err := a.info.WorkerIDs(ctx, maxWorkerID)
		if err != nil {
			return nil, a.storeError("choose a worker ID", err)
		}
		ids = slices.DeleteFunc(append([]int64{}, ids...), func(id int64) bool { return id < 0 || id > maxWorkerID })
		return ids, nil
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
	case !r.isFree(now):
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

// oddity returns why a record must not be taken, or "". Either the record isn't valid, or it was
// written with a wrong clock and keys would have its time.
func (a *assigner) oddity(e Entry, now int64) string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Record.start()-now > a.horizon().Milliseconds():
		return fmt.Sprintf("worker ID %d is %v, more than %v ahead of this machine's clock; one of the clocks was wrong",
			e.WorkerID, e.Record, a.horizon())
	}
	return ""
}

// spread moves a random one of the first n candidates to the front.
func (a *assigner) spread(ids []Entry, n int) []Entry {
	if n = min(len(ids), n); n > 1 {
		i := a.intN(n)
		ids[0], ids[i] = ids[i], ids[0]
	}
	return ids
}

// looks is how often the store is read again if other processes take all worker IDs that looked
// free.
const looks = 3

// takeOperations limits the time to lease a worker ID, in store operations of maximum duration. A
// store that thousands of processes use at once answers slowly. Giving up and starting again would
// make that worse.
const takeOperations = 10

// take leases a worker ID. It returns false if none is free.
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

// takeOne leases the first available candidate. If another process is faster, it tries one of the
// best candidates next, so that two processes that start together keep the records few. Then it
// tries any candidate, because thousands of processes would all compete for the best ones.
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

// takeOver tries to replace the record in c by l's first record. It returns false if another owner
// was faster.
func (a *assigner) takeOver(ctx context.Context, l *lease, c Entry) (bool, error) {
	if c.Record.IsZero() {
		// The first record of a worker ID is nobody's. It has no times of a lease, because the write
		// may be applied after the record of another lease was removed.
		c.Record = Record{Owner: newToken(), ReservedUntil: a.now(), FreeFrom: neverHeld, Holder: a.holder, Since: a.now()}
		if _, stored, err := a.put(ctx, c.WorkerID, Record{}, c.Record); !stored {
			return false, err
		}
	}
	now := a.now()
	next := Record{
		Owner:         newToken(),
		ReservedUntil: raised(c.Record, now+a.length().Milliseconds()),
		Holder:        a.holder,
		Since:         now,
	}
	acknowledged, stored, err := a.put(ctx, c.WorkerID, c.Record, next)
	if !stored {
		return false, err
	}
	floor, err := l.startAfter(ctx, c.Record, now)
	if err != nil {
		return false, err
	}
	if acknowledged {
		l.begin(c.WorkerID, floor, next.ReservedUntil, next)
		return true, nil
	}
	// The outcome was unknown, and the record is in the store. It is ours, but the store hasn't
	// acknowledged it.
	l.begin(c.WorkerID, floor, noLimit, next)
	err = l.reserve(ctx, now)
	if errors.Is(err, spi.ErrLeaseLost) {
		return false, nil
	}
	return err == nil, err
}

// put replaces a record and reads it again. stored is false if another owner was faster, or after
// an error. acknowledged is false if the outcome was unknown, but the store returns the record.
func (a *assigner) put(ctx context.Context, workerID int64, prev, next Record) (acknowledged, stored bool, err error) {
	bounded, cancel := context.WithTimeout(ctx, a.opTimeout())
	defer cancel()
	swapped, err := a.store.CompareAndSet(bounded, workerID, prev, next)
	if isForeign(err) {
		a.addWarning(workerID, err.Error())
		return false, false, nil
	}
	if err == nil && !swapped {
		return false, false, nil
	}
	bounded, cancel = context.WithTimeout(ctx, a.opTimeout())
	defer cancel()
	found, readErr := a.store.Get(bounded, workerID)
	acknowledged = confirmed(swapped, err)
	switch {
	case acknowledged && readErr != nil:
		return false, false, a.storeError("read a worker ID that was taken", readErr)
	case acknowledged && found.Owner != next.Owner:
		return false, false, nil // another owner has it already
	case readErr != nil || found.Owner != next.Owner:
		// If the write is applied later, no key uses it and the record expires.
		return false, false, a.storeError("take a worker ID", err)
	case !found.Same(next) || found.FreeFrom != next.FreeFrom:
		return false, false, a.storeError("take a worker ID", fmt.Errorf("the store changed a record: "+
			"expected reserved_until %d and free_from %d, found %d and %d; check the types of its columns",
			next.ReservedUntil, next.FreeFrom, found.ReservedUntil, found.FreeFrom))
	}
	return acknowledged, true, nil
}

// newToken returns an owner's token. It has 128 random bits, so that no record is written twice.
func newToken() string {
	var b [16]byte
	_, _ = cryptorand.Read(b[:]) // never fails: the runtime ends the program instead
	return tokenOf(b, time.Now())
}

// tokenOf adds the time to the random bits. Machines that were started from one snapshot may have
// the same random bits, but hardly the same time in nanoseconds.
func tokenOf(random [16]byte, now time.Time) string {
	return hex.EncodeToString(random[:]) + "-" + strconv.FormatInt(now.UnixNano(), 36)
}

// newestHeld returns the latest reservation of the held records. It ignores reservations that only
// a wrong clock can have made.
func (a *assigner) newestHeld(entries []Entry) int64 {
	latest, most := int64(0), a.now()+(a.config.MaxClockAhead+a.mostAhead()).Milliseconds()
	for _, e := range entries {
		if until := e.Record.ReservedUntil; e.Record.FreeFrom == 0 && until <= most {
			latest = max(latest, until)
		}
	}
	return latest
}

// shownHolders limits the holders in an error message.
const shownHolders = 5

// noWorkerID returns the error for a store that has no free worker ID. It lists the holders, and
// when the first of them becomes free by their records.
func (a *assigner) noWorkerID(ctx context.Context, maxWorkerID int64) error {
	entries, err := a.store.List(ctx)
	err = a.storeError("list worker IDs", err)
	var chosen []int64
	if err == nil && a.info.WorkerIDs != nil {
		chosen, err = a.allowed(ctx, nil, maxWorkerID)
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool {
		return e.WorkerID > maxWorkerID || chosen != nil && !slices.Contains(chosen, e.WorkerID)
	})
	slices.SortFunc(entries, func(x, y Entry) int { return cmp.Compare(x.WorkerID, y.WorkerID) })
	var holders strings.Builder
	soonest := int64(0)
	for i, t := range entries {
		if i < shownHolders {
			fmt.Fprintf(&holders, "; %d: %v", t.WorkerID, cmp.Or[any](t.Err, t.Record))
		}
		if t.Err == nil && (soonest == 0 || t.Record.start() < soonest) {
			soonest = t.Record.start()
		}
	}
	if more := len(entries) - shownHolders; more > 0 {
		fmt.Fprintf(&holders, "; and %d more", more)
	}
	if soonest > 0 {
		fmt.Fprintf(&holders, "; the next is free at %s", time.UnixMilli(soonest).UTC().Format(time.RFC3339))
	}
	leased, advice := fmt.Sprintf("all of 0..%d are leased", maxWorkerID), ", or use another namespace for unrelated tables"
	if chosen != nil {
		leased, advice = fmt.Sprintf("the worker IDs for this process, %v, are leased", chosen), ""
	}
	none := fmt.Errorf("%w: %s in %s%s; stop a holder, or wait until its reservation ends%s",
		spi.ErrNoWorkerID, leased, a.info.Name, &holders, advice)
	if err != nil {
		return errors.Join(none, err)
	}
	return none
}
