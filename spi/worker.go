package spi

import (
	"context"
	"time"
)

// WorkerIDAssigner leases worker IDs to generators.
//
// AcquireWorkerID leases a worker ID in 0..maxWorkerID. No other lease of this worker ID covers any
// time of this one. The error wraps [ErrNoWorkerID] if no worker ID is free, and [ErrStore] if the
// store is unavailable.
//
// Closing an assigner (io.Closer) releases all its leases and stops its background work. Methods
// are called by multiple goroutines at once.
type WorkerIDAssigner interface {
	AcquireWorkerID(ctx context.Context, maxWorkerID int64) (WorkerIDLease, error)
}

// WorkerIDLease is the right to generate keys with a worker ID for a time interval. The interval is
// in key time, which is the time in the keys and may differ from the clock. All times are
// milliseconds since the Unix epoch (time.UnixMilli). They are integers because generators compare
// them for each reservation of keys.
type WorkerIDLease interface {
	// WorkerID is the leased worker ID. It never changes.
	WorkerID() int64

	// Floor is the first millisecond that a key of this lease may have. It never changes.
	Floor() int64

	// Limit is the first millisecond that a key of this lease may not have. It grows when the lease
	// is renewed. It is 0 after the lease is lost or released. math.MaxInt64 means that the worker
	// ID is fixed and not leased (STATIC). Limit is fast: generators call it for each reservation
	// of keys.
	Limit() int64

	// Renew extends the interval until it includes the time until: it returns nil once Limit is
	// greater than until. The error wraps [ErrLeaseLost] if another process has taken over the
	// worker ID. The caller then has to acquire another one. The error wraps [ErrStore] if the
	// store is unavailable. The lease is then still valid up to its Limit. A lease renews itself in
	// the background, and generators call Renew only if they reach the limit anyway.
	Renew(ctx context.Context, until int64) error

	// Release releases the worker ID. Afterwards no key of this lease may be generated. lastUsed is
	// the latest key time that was used, so that the next lease can start right after it. It is 0
	// if none was used.
	Release(ctx context.Context, lastUsed int64) error
}

// Clock is the clock of generators and leases. Tests replace it.
type Clock interface {
	// Now returns the current time. It can jump forwards and backwards.
	Now() time.Time
	// Sleep waits for d. If ctx ends first, it returns ctx's error.
	Sleep(ctx context.Context, d time.Duration) error
}

// SystemClock is the clock of the operating system.
var SystemClock Clock = systemClock{}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
