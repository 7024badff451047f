package spi

import (
	"context"
	"time"
)

// WorkerIDAssigner grants worker IDs to generators.
//
// AcquireWorkerID leases a worker ID in 0..maxWorkerID that nobody else can use
// for ids of the leased interval. The error is [ErrNoWorkerID] when none is free,
// and the store's when the store cannot be reached.
//
// Closing an assigner (io.Closer) releases all its leases and stops its
// background work. Methods are called by many goroutines at once.
type WorkerIDAssigner interface {
	AcquireWorkerID(ctx context.Context, maxWorkerID int64) (WorkerIDLease, error)
}

// WorkerIDLease is the right to make ids of one worker ID for a time interval.
// The interval is in id time: the time written into ids, not that of any clock.
// All its times are milliseconds since the Unix epoch (time.UnixMilli): bare
// integers, since generators compare them for each reservation of keys.
type WorkerIDLease interface {
	// WorkerID is the leased worker ID. It never changes.
	WorkerID() int64

	// Floor is the first millisecond that an id of this lease may carry. It
	// never changes.
	Floor() int64

	// Limit is the first millisecond that an id of this lease may not carry. It
	// grows as the lease is renewed, and falls to 0, below every id, when the
	// lease is lost or released. math.MaxInt64 means that the worker ID is not
	// leased but fixed (STATIC). Limit is cheap: generators call it for each
	// reservation of keys.
	Limit() int64

	// Renew extends the interval so that an id of time until may be made: it
	// returns nil once Limit is greater than until. The error is [ErrLeaseLost]
	// when the worker ID has become another owner's (acquire another one then),
	// and the store's when the store cannot be reached (the lease is still good
	// up to its Limit). A lease renews itself in the background; generators
	// call Renew when they have reached the limit all the same.
	Renew(ctx context.Context, until int64) error

	// Release gives the worker ID back. No id of this lease may be made
	// afterwards. lastUsed is the latest id time that was used, so that the
	// next owner may begin right after it; 0 when none was used.
	Release(ctx context.Context, lastUsed int64) error
}

// Clock is the clock of generators and leases. Tests pass their own.
type Clock interface {
	// Now is the wall clock's time. It may step back and forth.
	Now() time.Time
	// Sleep waits for d or until ctx ends, and then returns ctx's error.
	Sleep(ctx context.Context, d time.Duration) error
}

// SystemClock is the machine's clock.
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
