package workerid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/spi"
)

var (
	_ spi.WorkerIDLease  = (*lease)(nil)
	_ spi.HealthReporter = (*lease)(nil)
)

// noLimit is the limit of a lease that has ended: below every id time.
const noLimit = 0

// lastUsedUnknown makes Release treat all that was reserved as used.
const lastUsedUnknown = -1

// lease is a worker ID that is held by time interval: see the package comment.
// It implements [spi.WorkerIDLease].
type lease struct {
	assigner *assigner
	workerID int64
	floor    int64
	delay    time.Duration // see Delay
	seen     int64         // the newest reservation in the store before it was taken
	limit    atomic.Int64
	identity string             // of the process, before the worker ID was taken
	stop     context.CancelFunc // ends the renewal in the background

	// busy is held by the goroutine that reads or writes the record; a channel,
	// so that waiting for it ends with a context. It guards what follows.
	busy     chan struct{}
	newest   Record   // of this lease, as the store has confirmed or shown it
	attempts []string // tokens of writes on top of it whose outcome is unknown
	server   string   // of the store when it was taken; "": not known
	unsure   bool     // another process may have had it since; see checkServer

	mu       sync.Mutex // guards what follows and changes of limit
	ended    error      // why the lease has ended: lost, or released
	tries    int64      // attempts to renew that the store, not their caller, ended
	renewals int64
	lastErr  error // of the last attempt to renew; nil after a good one
	stopped  bool  // that attempt failed at the limit, which is logged
}

func newLease(a *assigner) *lease {
	return &lease{assigner: a, busy: make(chan struct{}, 1), stop: func() {}, identity: a.identity()}
}

// begin makes it the lease of a worker ID, by a record of its own that the store
// has confirmed or, with a limit below the record's reserved_until, has only shown.
func (l *lease) begin(workerID, floor, limit int64, newest Record) {
	l.workerID, l.floor, l.newest, l.attempts = workerID, floor, newest, nil
	l.limit.Store(limit)
}

// WorkerID is the leased worker ID.
func (l *lease) WorkerID() int64 { return l.workerID }

// Floor is the first id time of this lease, in milliseconds since the Unix
// epoch.
func (l *lease) Floor() int64 { return l.floor }

// Delay is how far ahead of the clock the first id time may be although every clock is
// right: leases begin later after a failover, and with a quarantine.
func (l *lease) Delay() time.Duration { return l.delay }

// Limit is the first id time that is not this lease's. It falls to 0, below
// every id, when the lease is lost or released.
func (l *lease) Limit() int64 { return l.limit.Load() }

// Renew reserves the interval further, so that ids of time until may be made.
// The error has [spi.ErrLeaseLost] or [spi.ErrStore] in its chain, the latter
// also when until is more than a day ahead of the clock or the clock is too far ahead, or [spi.ErrClosed] after
// Release. Callers that come together share one question to the store, and its
// error.
func (l *lease) Renew(ctx context.Context, until int64) error {
	if l.Limit() > until {
		return nil
	}
	seen := l.finishedTries()
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	if l.Limit() > until {
		return nil
	}
	if err := l.failedSince(seen); err != nil {
		return err
	}
	return l.renew(ctx, until)
}

// Release gives the worker ID back. lastUsed is the highest id time that was
// used, 0 for none. It is idempotent. After an error, and when this process is a copy,
// the worker ID is free all the same, once the reservation has run out.
func (l *lease) Release(ctx context.Context, lastUsed int64) (err error) {
	defer guard.Recover(&err, "the store of worker IDs")
	if !l.end(fmt.Errorf("%w: worker ID %d was released", spi.ErrClosed, l.workerID)) {
		return nil
	}
	l.assigner.forget(l)
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	if l.copied() != nil {
		return nil // what the other copies have used is not known
	}
	until := l.newest.ReservedUntil
	err = l.giveBack(ctx, lastUsed)
	l.assigner.released(l, until, err)
	return err
}

// end takes the limit away for good; it is false when it was done before.
func (l *lease) end(why error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return false
	}
	l.ended = why
	l.limit.Store(noLimit)
	l.stop()
	return true
}

// grow raises the limit to what is known to stand in the store.
func (l *lease) grow(until int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.limit.Store(until)
	}
}

func (l *lease) endedBy() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

func (l *lease) finishedTries() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tries
}

// failedSince is the error of the newest attempt, if one has ended since.
func (l *lease) failedSince(seen int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return l.ended
	}
	if l.tries > seen {
		return l.lastErr
	}
	return nil
}

func (l *lease) lock(ctx context.Context) error {
	select {
	case l.busy <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("shardkey: worker ID %d: waiting for its renewal: %w", l.workerID, ctx.Err())
	}
}

func (l *lease) unlock() { <-l.busy }

// maxAttempts bounds the tokens kept of writes whose outcome is not known.
// Beyond it the last token is written again.
const maxAttempts = 64

// busyRetries is how often a write is repeated that the store refused although
// the record is still what it was.
const busyRetries = 3

// renewForever moves the reservation on until the lease ends or ctx does. After
// a failure it comes back sooner, at first. The first time comes early, and so do those after
// a failure, by chance: processes that started together, or whose store was away,
// do not all come at once from then on.
func (l *lease) renewForever(ctx context.Context) {
	every := l.assigner.every()
	failed := time.Duration(0)
	for wait := l.early(every); ; {
		if l.sleep(ctx, wait) != nil {
			return
		}
		every = l.assigner.every()
		wait = every
		if err := l.keep(ctx); err != nil {
			failed = min(failed+1, 3)
			wait = l.early(every * failed / 3)
		} else {
			failed = 0
		}
		if l.endedBy() != nil {
			return
		}
	}
}

// early is a random time between half of d and d.
func (l *lease) early(d time.Duration) time.Duration {
	return d - time.Duration(l.assigner.intN(int(d/2/time.Microsecond)+1))*time.Microsecond
}

// keep is one round of renewal: it reserves one lease ahead of now or, when the
// clock went back and that is reserved already, looks whether the record still
// stands.
func (l *lease) keep(ctx context.Context) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	return l.renew(ctx, l.assigner.now())
}

// renew tries once to reserve a lease beyond until and beyond now, and keeps
// the figures. The caller holds busy.
func (l *lease) renew(ctx context.Context, until int64) error {
	if err := l.endedBy(); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, l.assigner.opTimeout())
	defer cancel()
	err := l.copied()
	if err == nil {
		err = l.reserve(bounded, until)
	}
	callerEnded := ctx.Err() != nil
	var lost *leaseLostError
	if errors.As(err, &lost) && l.end(err) {
		l.assigner.lost(l, err)
	}
	l.tried(err, callerEnded)
	return err
}

func (l *lease) reserve(ctx context.Context, until int64) (err error) {
	defer guard.Recover(&err, "the store of worker IDs") // the outcome is unknown, as with any error
	if err := l.checkClocks(ctx, until); err != nil {
		return err
	}
	if l.assigner.length() < l.assigner.config.Lease {
		_ = l.assigner.noteLease(ctx) // until it is known, the shorter length does
	}
	if len(l.attempts) > 0 {
		if err := l.reread(ctx); err != nil {
			return err
		}
	}
	l.unsure = l.unsure || l.mayBeOthers()
	for range busyRetries {
		want := max(until, l.assigner.now()) + l.assigner.length().Milliseconds()
		next := l.next(want)
		if next.ReservedUntil == l.newest.ReservedUntil && l.Limit() >= next.ReservedUntil {
			return l.reread(ctx) // far enough; is it still ours?
		}
		done, err := l.write(ctx, next)
		if done || err != nil {
			return err
		}
		if err := l.reread(ctx); err != nil {
			return err
		}
	}
	return l.storeError("renew", errors.New("the record was busy"))
}

// next is the record that reserves up to want.
func (l *lease) next(want int64) Record {
	r := l.newest
	r.Owner = newToken()
	if len(l.attempts) >= maxAttempts {
		r.Owner = l.attempts[len(l.attempts)-1]
	}
	r.ReservedUntil = l.assigner.rules.raise(l.newest, want)
	return r
}

// write puts next on top of the newest record. The limit follows only when the
// store has confirmed it.
func (l *lease) write(ctx context.Context, next Record) (done bool, err error) {
	if !slices.Contains(l.attempts, next.Owner) {
		l.attempts = append(l.attempts, next.Owner)
	}
	swapped, err := l.assigner.store.CompareAndSet(ctx, l.workerID, l.newest, next)
	if l.assigner.rules.confirmed(swapped, err) {
		l.newest, l.attempts = next, nil
		if err := l.checkServer(ctx); err != nil {
			return false, err
		}
		l.grow(next.ReservedUntil)
		return true, nil
	}
	return false, l.readError("renew", err)
}

// reread finds out what stands in the store: the newest record, one of the
// attempts, or another owner's. One of the attempts is what the next write continues
// top of; it does not move the limit, for a store may show what it has not yet made
// last.
func (l *lease) reread(ctx context.Context) error {
	found, err := l.assigner.store.Get(ctx, l.workerID)
	if err != nil {
		return l.readError("read the lease", err)
	}
	if !l.assigner.rules.mine(found, l.newest, l.attempts) {
		return &leaseLostError{WorkerID: l.workerID, Found: found}
	}
	if !found.Same(l.newest) {
		l.newest, l.attempts = found, nil
		l.grow(l.assigner.rules.shown(l.Limit(), found))
	}
	return nil
}

// giveBack writes to the store that the worker ID is free after lastUsed.
// The lease has no limit any more. The caller holds busy.
func (l *lease) giveBack(ctx context.Context, lastUsed int64) error {
	ctx, cancel := context.WithTimeout(ctx, l.assigner.opTimeout())
	defer cancel()
	for range busyRetries {
		next := l.next(l.newest.ReservedUntil)
		next.FreeFrom = l.assigner.rules.freeFrom(l.floor, l.newest.ReservedUntil, lastUsed)
		if done, err := l.write(ctx, next); done || err != nil {
			return err
		}
		var lost *leaseLostError
		if err := l.reread(ctx); errors.As(err, &lost) {
			return nil // it is another's already
		} else if err != nil {
			return err
		}
	}
	return l.storeError("give back", errors.New("the record was busy"))
}

// checkClocks refuses times that only a wrong clock can have made.
func (l *lease) checkClocks(ctx context.Context, until int64) error {
	now := l.assigner.config.Clock.Now()
	if asked := time.UnixMilli(until); asked.Sub(now) > l.assigner.horizon()+l.delay {
		return &clockError{Clock: now, Other: asked, What: "ids are asked for of"}
	}
	return l.assigner.checkClock(ctx, l.newest.ReservedUntil, nil)
}

// readError makes a foreign record a lost lease: it cannot be renewed.
func (l *lease) readError(op string, err error) error {
	var foreign *ForeignRecordError
	if errors.As(err, &foreign) {
		return &leaseLostError{WorkerID: l.workerID, Err: err}
	}
	return l.storeError(op, err)
}

func (l *lease) storeError(op string, err error) error {
	return l.assigner.storeError(fmt.Sprintf("%s (worker ID %d)", op, l.workerID), err)
}
