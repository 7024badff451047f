package spi

import "time"

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
