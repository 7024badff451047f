package spi

import (
	"context"
	"time"
)

// WorkerIDAssigner grants worker ids to generators.
//
// AcquireWorkerID leases a worker id in 0..maxWorkerID that nobody else can use
// for the ids of the leased interval. It returns [ErrNoWorkerID] when none is
// free, and the store's error when it cannot be asked.
//
// Closing an assigner (io.Closer) gives back all its leases and ends its
// background work. Methods are called by many goroutines at once.
type WorkerIDAssigner interface {
	AcquireWorkerID(ctx context.Context, maxWorkerID int64) (WorkerIDLease, error)
}

// WorkerIDLease is the right to make ids of one worker id for a time interval.
// The interval is id time: the time written into ids, not that of any clock.
type WorkerIDLease interface {
	// WorkerID is the leased worker id. It never changes.
	WorkerID() int64

	// Floor is the first millisecond since the Unix epoch that an id of this
	// lease may carry. It never changes.
	Floor() int64

	// Limit is the first millisecond since the Unix epoch that an id of this
	// lease may not carry. It grows as the lease is renewed, and falls to 0,
	// below every key, when the lease is lost or released;
	// math.MaxInt64 means that the worker id is not leased but given (STATIC).
	// It is cheap: generators read it for each reservation of keys.
	Limit() int64

	// Renew reserves the interval further, so that an id of time until may be
	// made: it returns nil once Limit is greater than until. It returns
	// [ErrLeaseLost] when the worker id is another owner's (acquire another
	// one then) and the store's error when it cannot be asked (the lease
	// still stands, to its Limit). The lease renews itself in the background;
	// generators call Renew when they have met the limit all the same.
	Renew(ctx context.Context, until int64) error

	// Release gives the worker id back. No id of this lease may be made
	// afterwards. lastUsed is the highest id time that was used, so that the
	// next owner may begin right behind it; 0 when none was.
	Release(ctx context.Context, lastUsed int64) error
}

// Clock is the time that generators and leases live by. Tests give their own.
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
