// Package stats keeps the figures that generators and assigners report in their
// health, and names the kinds of errors there.
package stats

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Figures are what a generator counts, in the form in which Health reports it.
// The owner's mutex guards them. The zero value is ready for use; an owner sets
// the figures that it has from the start.
type Figures struct{ spi.Health }

// Add returns a figure's next value. The old one stays as it is, in the snapshots
// that have it.
func Add(figure *int64, n int64) *int64 {
	if figure != nil {
		n += *figure
	}
	return &n
}

// Wait counts a call that had to wait for d.
func (f *Figures) Wait(d time.Duration) {
	f.Waits = Add(f.Waits, 1)
	f.Waited += d
}

// Fetch counts a question to the store that was answered, or failed, after took.
func (f *Figures) Fetch(took time.Duration) {
	f.Fetches = Add(f.Fetches, 1)
	f.FetchTime = took
}

// Error counts an error of a kind, which came at a time.
func (f *Figures) Error(kind string, err error, at time.Time) {
	if f.Errors == nil {
		f.Errors = map[string]int64{}
	}
	f.Errors[kind]++
	f.LastError, f.LastErrorTime = err, at
}

// Snapshot returns a copy that shares nothing with f.
func (f *Figures) Snapshot() spi.Health {
	h := f.Health
	h.Errors, h.Warnings = maps.Clone(h.Errors), slices.Clone(h.Warnings)
	return h
}

// Kind is an error and the word for it in [spi.Health.Errors].
type Kind struct {
	Err  error
	Name string
}

// common are the kinds of errors that any generator may return, the more
// particular ones first.
var common = []Kind{
	{spi.ErrClosed, "closed"},
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "deadline"},
	{spi.ErrClockBack, "clock-back"},
	{spi.ErrTimeOverflow, "time-overflow"},
	{spi.ErrLeaseLost, "lease-lost"},
	{spi.ErrLeaseLimit, "lease-limit"},
	{spi.ErrNoWorkerID, "no-worker-id"},
	{spi.ErrStore, "store"},
}

// KindOf returns the name of the first kind in own, and then in those that all
// generators share, that is in err's chain; "other" if there is none.
func KindOf(err error, own ...Kind) string {
	for _, kinds := range [][]Kind{own, common} {
		for _, k := range kinds {
			if errors.Is(err, k.Err) {
				return k.Name
			}
		}
	}
	return "other"
}
