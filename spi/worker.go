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
// An assigner may also have a method UsedWith(layout string), which each generator calls once when it is
// made. layout describes the layout, tick and epoch of its keys. Generators that share worker IDs must
// agree in these, so an assigner can store and compare them.
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
//
// SNOWFLAKE refuses a lease whose Floor is more than a minute ahead of the clock, because a clock must
// have been wrong. A lease that starts later on purpose, for example after a failover of its store, may
// also have a method Delay() time.Duration, which returns how far ahead of the clock it may start.
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

// WorkerIDLister is implemented by generators and assigners that can list the worker IDs in their
// store.
type WorkerIDLister interface {
	// ListWorkerIDs returns the records of the store, which may be some seconds old. It leases no
	// worker ID and doesn't change the store. The error wraps [ErrStore] if the store is unavailable. It wraps errors.ErrUnsupported
	// if the worker IDs come from an assigner that can't list them.
	ListWorkerIDs(ctx context.Context) (WorkerIDs, error)
}

// WorkerIDs are the worker IDs in one namespace of a store.
type WorkerIDs struct {
	// Store describes the store and the namespace in one line without secrets. Two lists with the
	// same Store are about the same worker IDs.
	Store string
	// Max is the highest worker ID of the generator's layout. It is −1 in an assigner's list,
	// because an assigner doesn't know the layout.
	Max int64
	// List has the worker IDs that have been used, in ascending order. All others are free.
	List []WorkerID
	// ClockAhead is an estimate of how far this machine's clock is ahead of the store's, from one
	// request. It is nil if the store has no clock that can be read.
	ClockAhead *time.Duration
}

// WorkerID is the store's record of a worker ID. Times are in key time, unless noted. A missing
// time is zero.
type WorkerID struct {
	ID int64
	// State is the state of the worker ID, judged by this machine's clock:
	//
	//   - held: a running process has leased it
	//   - free: it was released
	//   - expired: it wasn't released, but its lease has ended. It is free
	//   - ahead: it is reserved so far in the future that a clock must have been wrong. No
	//     process takes it until that time is near
	//   - fixed: it is configured, or derived from the machine's name or address. Whether other
	//     processes use it isn't known
	//   - unknown: its record isn't valid. No process takes it
	State string
	// Holder describes the process that holds the worker ID, or held it last, for example "host-7
	// pid 4711".
	Holder string
	// Since is the time when the holder leased the worker ID, by the holder's clock.
	Since time.Time
	// ReservedUntil is the first time that no lease has reserved.
	ReservedUntil time.Time
	// FreeFrom is the start of the next lease, if the last holder released the worker ID.
	FreeFrom time.Time
	// Err is the error in the record if State is unknown.
	Err error
}

// Free reports whether a new process may lease the worker ID.
func (id WorkerID) Free() bool { return id.State == "free" || id.State == "expired" }
