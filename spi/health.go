package spi

import (
	"context"
	"encoding/json"
	"time"
)

// HealthReporter reports the health of an open generator, assigner or lease. Health is fast and may
// be called by multiple goroutines at once.
type HealthReporter interface {
	Health() Health
}

// ReadyReporter reports whether an open generator can generate a key now.
//
// Ready returns nil if it can, and otherwise the error that GenerateKeys would return. It generates
// no key, but prepares the first one: it acquires a worker ID or fetches a segment, for example.
// Call it before the program accepts requests.
//
// If the result isn't known when ctx ends, Ready returns soon afterwards with ctx's error in its
// chain. It may be called by multiple goroutines at once.
//
// A generator without a Ready method counts as ready while its Health has no Err.
type ReadyReporter interface {
	Ready(ctx context.Context) error
}

// Health is a snapshot of a generator, assigner or lease. A reporter sets the fields that apply to
// it. A nil pointer means that the figure doesn't apply: a generator that never waits leaves Waits
// nil. JSON omits nil pointers and other zero fields.
type Health struct {
	// Err is the current error, or nil. Where possible it is set before keys can't be generated any
	// more, for example when a lease couldn't be renewed.
	Err error
	// Warnings are permanent risks, for example that no worker ID was configured.
	Warnings []string

	// Issued is the number of keys returned.
	Issued int64
	// Waits is the number of calls that had to wait. Waited is the total time they waited.
	Waits  *int64
	Waited time.Duration
	// Borrowed is how far the newest key's time is ahead of the clock.
	Borrowed *time.Duration
	// ClockSteps is the number of times that the clock moved backwards.
	ClockSteps *int64

	// WorkerID is the worker ID in use. It is nil if there is none, or if the generator needs none.
	WorkerID *int64
	// LeaseLimit is the first time that the lease doesn't cover, in the time of keys. It is zero
	// for a worker ID without a lease.
	LeaseLimit time.Time
	// LeaseLength is the time from now to LeaseLimit just after a renewal.
	LeaseLength time.Duration
	// LeaseRenewals is the number of renewals, and LeasesLost the number of lost leases.
	LeaseRenewals *int64
	LeasesLost    *int64

	// SegmentLeft is the number of keys in memory. SegmentSize is the number of keys in one
	// request, or 0 if it isn't known yet. SegmentLeft is larger than SegmentSize if the next
	// segment is in memory too.
	SegmentLeft *int64
	SegmentSize int64
	// Fetches is the number of requests to the store. FetchTime is the duration of the last one.
	Fetches   *int64
	FetchTime time.Duration

	// Errors is the number of errors by kind ("clock-back", "store", "lease-limit", …).
	Errors map[string]int64
	// LastError is the newest error, and LastErrorTime its time.
	LastError     error
	LastErrorTime time.Time
}

// MarshalJSON writes the fields that are set: errors as strings, durations in seconds, and times in
// RFC 3339.
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
