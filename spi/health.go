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
// chain. An acquisition should continue, so that a later call finds it done. Ready may be called by
// multiple goroutines at once.
//
// A generator without a Ready method counts as ready while its Health has no Err.
type ReadyReporter interface {
	Ready(ctx context.Context) error
}

// Health is a snapshot of a generator, assigner or lease. A reporter sets the fields that apply to
// it. A nil pointer means that the figure or part doesn't apply: a generator that never waits leaves
// Waits nil.
type Health struct {
	// Err is the current error, or nil. Where possible it is set before keys can't be generated any
	// more, for example when a lease couldn't be renewed.
	Err error `json:"-"`
	// Warnings are permanent risks, for example that no worker ID was configured.
	Warnings []string `json:"warnings,omitempty"`

	// Issued is the number of keys returned.
	Issued int64 `json:"issued,omitzero"`
	// Waits is the number of calls that had to wait. Waited is the total time they waited.
	Waits  *int64        `json:"waits,omitempty"`
	Waited time.Duration `json:"-"`
	// WorkerID is the worker ID in use. It is nil if there is none, or if the generator needs none.
	WorkerID *int64 `json:"workerId,omitempty"`

	Clock   *ClockHealth   `json:"-"`
	Lease   *LeaseHealth   `json:"-"`
	Segment *SegmentHealth `json:"-"`

	// Errors is the number of errors by kind ("clock-back", "store", "lease-limit", …).
	Errors map[string]int64 `json:"errors,omitempty"`
	// LastError is the newest error, and LastErrorTime its time.
	LastError     error     `json:"-"`
	LastErrorTime time.Time `json:"lastErrorTime,omitzero"`
}

// ClockHealth compares a generator's keys with its clock.
type ClockHealth struct {
	// Ahead is how far the newest key's time is ahead of the clock.
	Ahead time.Duration `json:"-"`
	// Steps is the number of times that the clock moved backwards. It is nil if they aren't counted.
	Steps *int64 `json:"clockSteps,omitempty"`
}

// LeaseHealth describes the lease of a worker ID, or an assigner's leases.
type LeaseHealth struct {
	// Limit is the first time that the lease doesn't cover, in the time of keys. It is zero if there
	// is none at present.
	Limit time.Time `json:"leaseLimit,omitzero"`
	// Length is the time from now to Limit just after a renewal.
	Length time.Duration `json:"-"`
	// Left is the time until Limit, when keys can no longer be generated. It is negative after the
	// limit, and 0 if there is none. A generator or assigner leaves it 0.
	Left time.Duration `json:"-"`
	// Renewals is the number of renewals, and Lost the number of lost leases.
	Renewals int64 `json:"leaseRenewals"`
	Lost     int64 `json:"leasesLost"`
}

// SegmentHealth describes the keys that a generator fetches from a store.
type SegmentHealth struct {
	// Left is the number of keys in memory. It is nil if the generator keeps none. It is larger than
	// Size if the next segment is in memory too.
	Left *int64 `json:"segmentLeft,omitempty"`
	// Size is the number of keys in one request, or 0 if it isn't known yet.
	Size int64 `json:"segmentSize,omitzero"`
	// Fetches is the number of requests to the store. FetchTime is the duration of the last one.
	Fetches   int64         `json:"fetches"`
	FetchTime time.Duration `json:"-"`
}

// MarshalJSON writes the fields that are set in one object: errors as strings, durations in seconds,
// and times in RFC 3339.
func (h Health) MarshalJSON() ([]byte, error) {
	type fields Health
	v := struct {
		Error string `json:"error,omitzero"`
		fields
		*ClockHealth
		*LeaseHealth
		*SegmentHealth
		LastError string   `json:"lastError,omitzero"`
		Waited    float64  `json:"waitedSeconds,omitzero"`
		Borrowed  *float64 `json:"borrowedSeconds,omitempty"`
		Length    float64  `json:"leaseSeconds,omitzero"`
		Left      float64  `json:"leaseLeftSeconds,omitzero"`
		FetchTime float64  `json:"fetchSeconds,omitzero"`
	}{Error: textOf(h.Err), fields: fields(h), ClockHealth: h.Clock, LeaseHealth: h.Lease, SegmentHealth: h.Segment,
		LastError: textOf(h.LastError), Waited: h.Waited.Seconds()}
	if h.Clock != nil {
		v.Borrowed = new(h.Clock.Ahead.Seconds())
	}
	if h.Lease != nil {
		v.Length, v.Left = h.Lease.Length.Seconds(), h.Lease.Left.Seconds()
	}
	if h.Segment != nil {
		v.FetchTime = h.Segment.FetchTime.Seconds()
	}
	return json.Marshal(v)
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
