package spi

import (
	"context"
	"time"
)

// WorkerIDLister is a generator or a [WorkerIDAssigner] that can say who has the
// worker IDs of its store.
type WorkerIDLister interface {
	// ListWorkerIDs reads what the store says of each worker ID. It leases none,
	// and neither makes nor changes anything in the store. The error is the
	// store's when the store cannot be reached, and has errors.ErrUnsupported in its
	// chain where worker IDs come from an assigner that cannot list them.
	ListWorkerIDs(ctx context.Context) (WorkerIDs, error)
}

// WorkerIDs are the worker IDs that one store keeps, in one namespace.
type WorkerIDs struct {
	// Store names the store and the namespace in one line without secrets. Two
	// lists with one Store are of the same worker IDs.
	Store string
	// Max is the highest worker ID that there can be: that of the generator's
	// layout. It is −1 in an assigner's list, as an assigner does not know it.
	Max int64
	// List has the worker IDs that were ever used, in order. All others are free.
	List []WorkerID
	// ClockAhead is how far this machine's clock is ahead of the store's, as well as
	// one question can tell; nil when the store has no clock that can be read.
	ClockAhead *time.Duration
}

// WorkerID is what a store says of a worker ID that was used. Times are of ids,
// and zero when there is none.
type WorkerID struct {
	ID int64
	// State shows who may have the worker ID, by this machine's clock:
	//
	//   - held: a process at work has it.
	//   - free: it was released.
	//   - expired: it wasn't released, but its reservation has run out. It is free.
	//   - ahead: it is reserved so far ahead that only a wrong clock can have done it.
	//     No process takes it before that time comes near.
	//   - fixed: it is configured, or comes from the machine's name or address. Nothing
	//     shows which other processes have it.
	//   - unknown: it has a record that is not understood. No process takes it.
	State string
	// Holder names the process that holds the worker ID, or was the last to, for
	// people: "host-7 pid 4711".
	Holder string
	// Since is when the holder took the worker ID, by the holder's clock.
	Since time.Time
	// ReservedUntil is the first moment that no key has been reserved for.
	ReservedUntil time.Time
	// FreeFrom is where the keys of the next holder begin, when the last one has
	// given the worker ID back.
	FreeFrom time.Time
	// Err says what is wrong with a record whose state is unknown.
	Err error
}

// Free reports whether a new process may take the worker ID.
func (id WorkerID) Free() bool { return id.State == "free" || id.State == "expired" }
