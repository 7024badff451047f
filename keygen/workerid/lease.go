package workerid

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/shardkey/shardkey/spi"
)

var (
	_ spi.WorkerIDLease  = (*Lease)(nil)
	_ spi.HealthReporter = (*Lease)(nil)
)

// noLimit is the limit of a lease that has ended: below every id time.
const noLimit = 0

// lastUsedUnknown makes Release treat all that was reserved as used.
const lastUsedUnknown = -1

// Lease is a worker id that is held by time interval: see the package comment.
// It implements [spi.WorkerIDLease].
type Lease struct {
	assigner *Assigner
	workerID int64
	floor    int64
	limit    atomic.Int64
	stop     context.CancelFunc // ends the renewal in the background

	// busy is held by whoever talks to the store about this lease; a channel,
	// so that waiting for it ends with a context. It guards confirmed and
	// attempts.
	busy      chan struct{}
	confirmed Record   // the newest record that certainly stood in the store
	attempts  []string // tokens of writes on top of it whose outcome is unknown

	mu       sync.Mutex // guards what follows and changes of limit
	ended    error      // why the lease is no more: lost, or given back
	tries    int64      // attempts to renew that the store, not their caller, ended
	renewals int64
	lastErr  error // of the last attempt to renew; nil after a good one
}

func newLease(a *Assigner) *Lease {
	return &Lease{assigner: a, busy: make(chan struct{}, 1), stop: func() {}}
}

// begin makes it the lease of a worker id, by a record that stands in the
// store.
func (l *Lease) begin(workerID, floor int64, confirmed Record) {
	l.workerID, l.floor, l.confirmed = workerID, floor, confirmed
	l.limit.Store(confirmed.ReservedUntil)
}

// WorkerID is the leased worker id.
func (l *Lease) WorkerID() int64 { return l.workerID }

// Floor is the first id time of this lease, in milliseconds since the Unix
// epoch.
func (l *Lease) Floor() int64 { return l.floor }

// Limit is the first id time that is not this lease's. It falls to 0, below
// every id, when the lease is lost or given back.
func (l *Lease) Limit() int64 { return l.limit.Load() }

// Renew reserves the interval further, so that ids of time until may be made.
// The error is a [*LeaseLostError], a [*StoreError], a [*ClockError] when until
// is more than a day ahead of the clock, or spi.ErrClosed after Release. Callers
// that come together share one question to the store, and its error.
func (l *Lease) Renew(ctx context.Context, until int64) error {
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

// Release gives the worker id back. lastUsed is the highest id time that was
// used, 0 for none. It is idempotent. After an error the worker id is free all
// the same, once the reservation has run out.
func (l *Lease) Release(ctx context.Context, lastUsed int64) error {
	if !l.end(fmt.Errorf("worker id %d was given back: %w", l.workerID, spi.ErrClosed)) {
		return nil
	}
	l.assigner.forget(l)
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.unlock()
	return l.giveBack(ctx, lastUsed)
}

// end takes the limit away for good; it is false when it was done before.
func (l *Lease) end(why error) bool {
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
func (l *Lease) grow(until int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.limit.Store(until)
	}
}

func (l *Lease) endedBy() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

func (l *Lease) finishedTries() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tries
}

// failedSince is the error of the newest attempt, if one has ended since.
func (l *Lease) failedSince(seen int64) error {
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

func (l *Lease) lock(ctx context.Context) error {
	select {
	case l.busy <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("worker id %d: waiting for its renewal: %w", l.workerID, ctx.Err())
	}
}

func (l *Lease) unlock() { <-l.busy }
