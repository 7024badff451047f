package spi

import (
	"context"
	"time"
)

// WorkerIDLister is implemented by generators and assigners that can list the worker IDs in their
// store.
type WorkerIDLister interface {
	// ListWorkerIDs reads the records of the store. It leases no worker ID and doesn't change the
	// store. The error wraps [ErrStore] if the store is unavailable. It wraps errors.ErrUnsupported
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
