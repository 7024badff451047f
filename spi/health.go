package spi

import (
	"context"
	"encoding/json"
	"time"
)

// HealthReporter reports how a live generator, assigner or lease is doing.
// Health is cheap and may be called by any goroutine.
type HealthReporter interface {
	Health() Health
}

// ReadyReporter tells whether a live generator can make a key now.
//
// Ready returns nil when it can, and else the error that GenerateKeys would return.
// It uses no key, but makes ready what the first one needs, as a worker ID or a
// segment, so that a program may ask before it serves. It returns soon after ctx
// ends, with ctx's error in its chain if it does not know by then. It may be called
// by any goroutine.
//
// A generator without it is taken to be ready while its Health has no Err.
type ReadyReporter interface {
	Ready(ctx context.Context) error
}

// Health is a snapshot of a generator, assigner or lease. A reporter sets the
// fields that apply to it. A nil figure is one that it doesn't have, and 0 one that
// it has: a generator that never waits leaves Waits nil. JSON omits nil figures and
// other zero fields.
type Health struct {
	// Err is what is wrong now, before keys stop coming where that can be
	// known (a lease that could not be renewed). It is nil while all is well.
	Err error
	// Warnings are standing risks, such as a worker ID that nobody set.
	Warnings []string

	// Issued counts the keys handed out.
	Issued int64
	// Waits counts the calls that had to wait, and Waited is their total time.
	Waits  *int64
	Waited time.Duration
	// Borrowed is how far the newest key's time is ahead of the clock.
	Borrowed *time.Duration
	// ClockSteps counts the backward steps of the clock that were seen.
	ClockSteps *int64

	// WorkerID is the worker ID in use; nil while there is none, and for
	// generators that need none.
	WorkerID *int64
	// LeaseLimit is the end of the reserved id-time interval; zero for a worker
	// id without a lease.
	LeaseLimit time.Time
	// LeaseLength is how far ahead of now a renewal reserves: what is left until
	// LeaseLimit right after one.
	LeaseLength time.Duration
	// LeaseRenewals counts renewals of leases, LeasesLost the leases lost.
	LeaseRenewals *int64
	LeasesLost    *int64

	// SegmentLeft is the number of keys in memory. SegmentSize is how many come with
	// one request; it is 0 while that is unknown. SegmentLeft is larger where the next
	// ones are there already.
	SegmentLeft *int64
	SegmentSize int64
	// Fetches is the number of requests to the store and FetchTime the duration of the
	// last one.
	Fetches   *int64
	FetchTime time.Duration

	// Errors counts errors by kind ("clock-back", "store", "lease-limit", …).
	Errors map[string]int64
	// LastError is the newest error and LastErrorTime the time it happened.
	LastError     error
	LastErrorTime time.Time
}

// MarshalJSON writes what is set: errors as their texts, durations in seconds,
// times in RFC 3339.
func (h Health) MarshalJSON() ([]byte, error) {
	var borrowed *float64
	if h.Borrowed != nil {
		borrowed = new(h.Borrowed.Seconds())
	}
	return json.Marshal(struct {
		Error           string           `json:"error,omitzero"`
		Warnings        []string         `json:"warnings,omitempty"`
		Issued          int64            `json:"issued,omitzero"`
		Waits           *int64           `json:"waits,omitzero"`
		WaitedSeconds   float64          `json:"waitedSeconds,omitzero"`
		BorrowedSeconds *float64         `json:"borrowedSeconds,omitzero"`
		ClockSteps      *int64           `json:"clockSteps,omitzero"`
		WorkerID        *int64           `json:"workerId,omitzero"`
		LeaseLimit      time.Time        `json:"leaseLimit,omitzero"`
		LeaseSeconds    float64          `json:"leaseSeconds,omitzero"`
		LeaseRenewals   *int64           `json:"leaseRenewals,omitzero"`
		LeasesLost      *int64           `json:"leasesLost,omitzero"`
		SegmentLeft     *int64           `json:"segmentLeft,omitzero"`
		SegmentSize     int64            `json:"segmentSize,omitzero"`
		Fetches         *int64           `json:"fetches,omitzero"`
		FetchSeconds    float64          `json:"fetchSeconds,omitzero"`
		Errors          map[string]int64 `json:"errors,omitempty"`
		LastError       string           `json:"lastError,omitzero"`
		LastErrorTime   time.Time        `json:"lastErrorTime,omitzero"`
	}{
		textOf(h.Err), h.Warnings,
		h.Issued, h.Waits, h.Waited.Seconds(), borrowed, h.ClockSteps,
		h.WorkerID, h.LeaseLimit, h.LeaseLength.Seconds(), h.LeaseRenewals, h.LeasesLost,
		h.SegmentLeft, h.SegmentSize, h.Fetches, h.FetchTime.Seconds(),
		h.Errors, textOf(h.LastError), h.LastErrorTime,
	})
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
