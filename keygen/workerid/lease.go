package workerid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/spi"
)

var (
	_ spi.WorkerIDLease  = (*lease)(nil)
	_ spi.HealthReporter = (*lease)(nil)
)

// noLimit is the limit of a lease that has ended. It is below every key time.
const noLimit = 0

// lastUsedUnknown makes Release treat the whole reservation as used.
const lastUsedUnknown = -1

// lease is a lease of a worker ID for a time interval (see the package comment). It implements
// [spi.WorkerIDLease].
type lease struct {
	assigner *assigner
	workerID int64
	floor    int64
	delay    time.Duration // see Delay
	seen     int64         // newest reservation in the store before the lease was taken
	limit    atomic.Int64
	identity string             // identity of the process before the worker ID was taken
	stop     context.CancelFunc // ends the background renewal

	// busy is held while a goroutine reads or writes the record. It is a channel, so that a wait
	// for it can end with a context. It guards the following fields.
	busy     chan struct{}
	newest   Record   // newest record of this lease that the store has acknowledged or returned
	attempts []string // tokens of later writes whose outcome is unknown
	server   string   // server of the store when the lease was taken; "" if unknown
	unsure   bool     // another process may have had it since; see checkServer

	mu       sync.Mutex // guards the following fields and changes of limit
	ended    error      // why the lease has ended: lost or released
	renewals int64
	lastErr  error // error of the last attempt to renew, or nil
	stopped  bool  // that attempt failed at the limit, which was logged
}

func newLease(a *assigner) *lease {
	return &lease{assigner: a, busy: make(chan struct{}, 1), stop: func() {}, identity: a.identity()}
}

// begin makes l the lease of a worker ID. newest is its own record. The limit is the record's
// reserved_until if the store has acknowledged it, and lower if the store has only returned it.
func (l *lease) begin(workerID, floor, limit int64, newest Record) {
	l.workerID, l.floor, l.newest, l.attempts = workerID, floor, newest, nil
	l.limit.Store(limit)
}

// WorkerID returns the leased worker ID.
func (l *lease) WorkerID() int64 { return l.workerID }

// Floor returns the first key time of this lease, in milliseconds since the Unix epoch.
func (l *lease) Floor() int64 { return l.floor }

// Delay returns how far ahead of the clock the lease may start even though all clocks are right.
// Leases start later if the worker ID has no record, after a failover, and with a quarantine.
func (l *lease) Delay() time.Duration { return l.delay }

// Limit returns the first key time that this lease doesn't cover. It is 0 after the lease is lost
// or released.
func (l *lease) Limit() int64 { return l.limit.Load() }

// Renew extends the reservation until it includes the key time until. The error wraps
// [spi.ErrLeaseLost], [spi.ErrStore] or, after Release, [spi.ErrClosed]. It also wraps spi.ErrStore
// if until is more than a day ahead of the clock, or if the clock is too far ahead.
func (l *lease) Renew(ctx context.Context, until int64) error {
	if l.Limit() > until {
		return nil
	}
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	if l.Limit() > until {
		return nil
	}
	return l.renew(ctx, until)
}

// Release releases the worker ID. lastUsed is the highest key time that was used, or 0 for none. It
// is idempotent. After an error, or if this process is a clone, the worker ID becomes free when the
// reservation ends.
func (l *lease) Release(ctx context.Context, lastUsed int64) (err error) {
	defer panics.Recover(&err, "the store of worker IDs")
	if !l.end(fmt.Errorf("%w: worker ID %d was released", spi.ErrClosed, l.workerID)) {
		return nil
	}
	l.assigner.forget(l)
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	if l.copied() != nil {
		return nil // the times that other clones used aren't known
	}
	until := l.newest.ReservedUntil
	err = l.giveBack(ctx, lastUsed)
	l.assigner.released(l, until, err)
	return err
}

// end sets the limit to noLimit for good. It returns false if that was done before.
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

// grow raises the limit to a time that the store is known to have recorded.
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
		return l.storeError("wait for a renewal", ctx.Err())
	}
}

func (l *lease) unlock() { <-l.busy }

// maxAttempts limits the tokens of writes whose outcome is unknown. Beyond it, the last token is
// written again.
const maxAttempts = 64

// busyRetries is how often a write is repeated that the store refused although the record is
// unchanged.
const busyRetries = 3

// renewForever renews the lease until the lease or ctx ends. After a failure it retries sooner at
// first. The first renewal and the retries have random delays. Otherwise, processes that started
// together, or whose store was unavailable, would all renew at the same time from then on.
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

// early returns a random duration between half of d and d.
func (l *lease) early(d time.Duration) time.Duration {
	return d - time.Duration(l.assigner.intN(int(d/2/time.Microsecond)+1))*time.Microsecond
}

// keep renews the lease once, up to one lease length from now.
func (l *lease) keep(ctx context.Context) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	return l.renew(ctx, l.assigner.now())
}

// renew tries once to extend the reservation, and records the outcome. The caller holds busy.
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
	if errors.Is(err, spi.ErrLeaseLost) && l.end(err) {
		l.assigner.lost(l, err)
	}
	l.tried(err, callerEnded)
	return err
}

// reserve extends the reservation. It writes a new token even if the time is already reserved,
// because only one of two clones can do that.
func (l *lease) reserve(ctx context.Context, until int64) (err error) {
	defer panics.Recover(&err, "the store of worker IDs") // the outcome is unknown, as with any error
	if err := l.checkClocks(ctx, until); err != nil {
		return err
	}
	if l.assigner.length() < l.assigner.config.Lease {
		_ = l.assigner.noteLease(ctx) // until it succeeds, the shorter length is used
	}
	if len(l.attempts) > 0 {
		if err := l.reread(ctx); err != nil {
			return err
		}
	}
	l.unsure = l.unsure || l.mayBeOthers()
	for range busyRetries {
		done, err := l.write(ctx, l.next(l.target(until)))
		if done || err != nil {
			return err
		}
		if err := l.reread(ctx); err != nil {
			return err
		}
	}
	return l.storeError("renew", errors.New("the record is busy"))
}

// target returns the time up to which to reserve: one lease length beyond now. If that doesn't
// include until, it is one length beyond until. A generator that needs all keys of its layout stays
// ahead of the clock, and would need a renewal for each tick. So once the clock has passed the start
// of the lease, half a length ahead is enough for that.
func (l *lease) target(until int64) int64 {
	now, length := l.assigner.now(), l.assigner.length().Milliseconds()
	if until >= now+length || now >= l.floor && until > now+length/2 {
		return until + length
	}
	return now + length
}

// next returns the record that reserves up to want.
func (l *lease) next(want int64) Record {
	r := l.newest
	r.Owner = newToken()
	if len(l.attempts) >= maxAttempts {
		r.Owner = l.attempts[len(l.attempts)-1]
	}
	r.ReservedUntil = raised(l.newest, want)
	return r
}

// write replaces the newest record by next. The limit is raised only if the store has acknowledged
// the write.
func (l *lease) write(ctx context.Context, next Record) (done bool, err error) {
	if !slices.Contains(l.attempts, next.Owner) {
		l.attempts = append(l.attempts, next.Owner)
	}
	swapped, err := l.assigner.store.CompareAndSet(ctx, l.workerID, l.newest, next)
	if confirmed(swapped, err) {
		l.newest, l.attempts = next, nil
		if err := l.checkServer(ctx); err != nil {
			return false, err
		}
		l.grow(next.ReservedUntil)
		return true, nil
	}
	return false, l.readError("renew", err)
}

// reread finds out which record the store has: the newest one, one of the attempts, or another
// owner's. If it is one of the attempts, the next write replaces it. It doesn't raise the limit,
// because a store may return a write that isn't durable yet.
func (l *lease) reread(ctx context.Context) error {
	found, err := l.assigner.store.Get(ctx, l.workerID)
	if err != nil {
		return l.readError("read the lease", err)
	}
	if !isOwn(found, l.newest, l.attempts) {
		why := found.String()
		if found.IsZero() {
			why = "its record was removed from the store"
		}
		return leaseLost(l.workerID, errors.New(why))
	}
	if !found.Same(l.newest) {
		l.newest, l.attempts = found, nil
	}
	return nil
}

// giveBack writes to the store that the worker ID is free after lastUsed. The lease has no limit
// any more. The caller holds busy.
func (l *lease) giveBack(ctx context.Context, lastUsed int64) error {
	ctx, cancel := context.WithTimeout(ctx, l.assigner.opTimeout())
	defer cancel()
	for range busyRetries {
		next := l.next(l.newest.ReservedUntil)
		next.FreeFrom = freeFrom(l.floor, l.newest.ReservedUntil, lastUsed)
		if done, err := l.write(ctx, next); done || err != nil {
			return err
		}
		if err := l.reread(ctx); errors.Is(err, spi.ErrLeaseLost) {
			return nil // another owner has it already
		} else if err != nil {
			return err
		}
	}
	return l.storeError("release", errors.New("the record is busy"))
}

// checkClocks returns an error for times that only a wrong clock can have made.
func (l *lease) checkClocks(ctx context.Context, until int64) error {
	now := l.assigner.config.Clock.Now()
	if asked := time.UnixMilli(until); asked.Sub(now) > l.assigner.horizon()+l.delay {
		return wrongClock(now, "keys were requested for", asked)
	}
	return l.assigner.checkClock(ctx, l.newest.ReservedUntil, nil)
}

// readError returns the error of a lost lease for a foreign record, because it can't be renewed.
func (l *lease) readError(op string, err error) error {
	if isForeign(err) {
		return leaseLost(l.workerID, err)
	}
	return l.storeError(op, err)
}

func (l *lease) storeError(op string, err error) error {
	return l.assigner.storeError(fmt.Sprintf("%s (worker ID %d)", op, l.workerID), err)
}
