// Package stats counts the figures that generators and assigners report in their health, and names
// the kinds of errors.
package stats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Figures are the counters of a generator, in the form that Health reports. The owner's mutex
// guards them. The zero value is ready to use. An owner sets the figures that it has from the
// start.
type Figures struct{ spi.Health }

// Add returns a pointer to the sum. It doesn't change the old value, because snapshots refer to it.
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

// Fetch counts a request to the store that succeeded or failed. took is its duration. The owner has
// set Segment.
func (f *Figures) Fetch(took time.Duration) {
	f.Segment.Fetches++
	f.Segment.FetchTime = took
}

// Unleased returns the warning for a worker ID that isn't leased. from is where it comes from.
func Unleased(from string) string {
	return from + ": nothing checks that no other process has this worker ID, or had it with a clock ahead; " +
		"use a worker-ID assigner that leases"
}

// Ending returns a warning if keys end at last, less than ten years after now. Otherwise it returns
// "".
func Ending(last, now time.Time) string {
	if !last.Before(now.AddDate(10, 0, 0)) {
		return ""
	}
	return fmt.Sprintf("keys end at %s, in less than 10 years; plan another generator for tables that have keys, "+
		"because another epoch would repeat keys; for new tables use more time bits, a longer tick or a later epoch",
		last.UTC().Format(time.RFC3339))
}

// Error counts an error of this kind.
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
	h.Clock, h.Lease, h.Segment = clone(h.Clock), clone(h.Lease), clone(h.Segment)
	return h
}

func clone[T any](part *T) *T {
	if part == nil {
		return nil
	}
	return new(*part)
}

// Kind is an error and its name in [spi.Health.Errors].
type Kind struct {
	Err  error
	Name string
}

// common are the kinds of errors that any generator may return, more specific ones first.
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

// KindOf returns the name of the first kind in err's chain. It tries own first, and then the kinds
// that all generators share. It returns "other" if no kind matches.
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
