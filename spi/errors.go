package spi

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrClosed is returned by a generator or assigner after Close.
	ErrClosed = errors.New("shardkey: closed")

	// ErrClockBack is in the chain of a generator's error when the clock went
	// back further than the generator waits for.
	ErrClockBack = errors.New("shardkey: clock moved backwards")

	// ErrTimeOverflow is in the chain of a generator's error when the layout's
	// time field is full: the clock is past the layout's last time or before
	// its epoch.
	ErrTimeOverflow = errors.New("shardkey: time does not fit the key's layout")

	// ErrNoWorkerID is in the chain of an assigner's error when every worker
	// id is taken.
	ErrNoWorkerID = errors.New("shardkey: no worker id is free")

	// ErrLeaseLost is in the chain of an error when a worker id's lease has
	// become another owner's.
	ErrLeaseLost = errors.New("shardkey: worker-id lease lost")

	// ErrLeaseLimit is in the chain of a generator's error when the reserved
	// interval of its worker id is used up and could not be renewed.
	ErrLeaseLimit = errors.New("shardkey: worker-id lease is at its limit")

	// ErrStore is in the chain of an error when the server that a generator or
	// assigner depends on could not be asked, or holds what it should not.
	ErrStore = errors.New("shardkey: key store")
)

// UnknownTypeError is the error for a generator or assigner type that nobody
// registered.
type UnknownTypeError struct {
	Kind  string   // "key generator" or "worker-id assigner"
	Type  string   // as it was written
	Known []string // the registered types
}

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("unknown %s type %q; registered are %s", e.Kind, e.Type, strings.Join(e.Known, ", "))
}

// PropError is the error for a property that is missing, not understood, out
// of range or unknown.
type PropError struct {
	Name  string // the property as it was written
	Value string // its value; empty for a secret or a missing property
	Want  string // what would be right, as "an integer in 0..1023"
	// Unknown says that no property has this name; Known are those there are.
	Unknown bool
	Known   []string
}

func (e *PropError) Error() string {
	switch {
	case e.Unknown:
		return fmt.Sprintf("unknown property %q; known are %s", e.Name, strings.Join(e.Known, ", "))
	case e.Value == "":
		return fmt.Sprintf("property %q: want %s", e.Name, e.Want)
	}
	return fmt.Sprintf("property %q is %q: want %s", e.Name, e.Value, e.Want)
}

// HealthReporter says how a live generator or lease is. Health is cheap and is
// called by any goroutine.
type HealthReporter interface {
	Health() Health
}

// Health is a snapshot of a generator or lease. Figures that do not apply to
// it are zero.
type Health struct {
	// Err says what is wrong now, before keys stop coming where that can be
	// known (a lease that could not be renewed); nil while all is well.
	Err error
	// Warnings are standing risks, such as a worker id that nobody set.
	Warnings []string

	// Issued counts the keys handed out.
	Issued int64
	// Waits counts the calls that had to wait, and Waited their time together.
	Waits  int64
	Waited time.Duration
	// Borrowed is how far the newest key's time is ahead of the clock.
	Borrowed time.Duration
	// ClockSteps counts the steps back of the clock that were seen.
	ClockSteps int64

	// WorkerID is the worker id in use, -1 while there is none (or it does
	// not apply).
	WorkerID int64
	// LeaseLimit is the end of the reserved id-time interval; zero for a worker
	// id without lease.
	LeaseLimit time.Time
	// LeaseRenewals and LeasesLost count what happened to leases.
	LeaseRenewals int64
	LeasesLost    int64

	// SegmentLeft is how many keys are in memory, Fetches how often the store
	// was asked and FetchTime the time of the last fetch.
	SegmentLeft int64
	Fetches     int64
	FetchTime   time.Duration

	// Errors counts errors by kind ("clock-back", "store", "lease-limit", …).
	Errors map[string]int64
	// LastError is the newest error and LastErrorTime when it came.
	LastError     error
	LastErrorTime time.Time
}
