package workerid

import (
	"fmt"
	"strings"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// noWorkerIDError says that every worker ID is taken, and by whom. It is
// [spi.ErrNoWorkerID].
type noWorkerIDError struct {
	Store       string // the store's description
	MaxWorkerID int64
	// Taken are the worker IDs in 0..MaxWorkerID that could not be had.
	Taken []Entry
	// Here are those of them that this very process holds: by rules or clocks
	// that differ, as connectors of one rule share one.
	Here []int64
	// Soonest is when the first of them is free, by their records; zero when
	// that is not known.
	Soonest time.Time
}

// shownHolders bounds the holders that an error message names.
const shownHolders = 5

// shownHere bounds the worker IDs of this process that it names.
const shownHere = 16

func (e *noWorkerIDError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: all of 0..%d are taken in %s", spi.ErrNoWorkerID, e.MaxWorkerID, e.Store)
	for i, t := range e.Taken {
		if i == shownHolders {
			fmt.Fprintf(&b, "; and %d more", len(e.Taken)-i)
			break
		}
		if t.Err != nil {
			fmt.Fprintf(&b, "; %d: %v", t.WorkerID, t.Err)
		} else {
			fmt.Fprintf(&b, "; %d: %v", t.WorkerID, t.Record)
		}
	}
	if len(e.Here) > 0 {
		ids := strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Here[:min(shownHere, len(e.Here))]), " ", ", "), "[]")
		fmt.Fprintf(&b, "; this very process holds %s", ids)
		if more := len(e.Here) - shownHere; more > 0 {
			fmt.Fprintf(&b, " and %d more", more)
		}
		b.WriteString(" (connectors that open the same rule share one)")
	}
	if !e.Soonest.IsZero() {
		fmt.Fprintf(&b, "; the next is free at %s", e.Soonest.UTC().Format(time.RFC3339))
	}
	b.WriteString(": stop a holder, wait until its reservation ends, or use another namespace for another family of tables")
	return b.String()
}

func (e *noWorkerIDError) Unwrap() error { return spi.ErrNoWorkerID }

// leaseLostError says that a worker ID is another owner's now. It is
// [spi.ErrLeaseLost].
type leaseLostError struct {
	WorkerID int64
	Found    Record // what the store holds; zero when it holds none
	Err      error  // why the record is not understood, when it is not
}

func (e *leaseLostError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("%v: worker ID %d: %v", spi.ErrLeaseLost, e.WorkerID, e.Err)
	case e.Found.IsZero():
		return fmt.Sprintf("%v: worker ID %d: its record was removed from the store", spi.ErrLeaseLost, e.WorkerID)
	}
	return fmt.Sprintf("%v: worker ID %d: %v", spi.ErrLeaseLost, e.WorkerID, e.Found)
}

func (e *leaseLostError) Unwrap() []error {
	if e.Err != nil {
		return []error{spi.ErrLeaseLost, e.Err}
	}
	return []error{spi.ErrLeaseLost}
}

// ForeignRecordError says that the place of a worker ID's record holds
// something else. It is never overwritten. It is [spi.ErrStore].
type ForeignRecordError struct {
	WorkerID int64
	Value    string // what stands there; messages show its beginning
	Err      error  // what is wrong with it
}

func (e *ForeignRecordError) Error() string {
	shown := e.Value
	if len(shown) > 60 {
		shown = shown[:60] + "…"
	}
	if shown != "" {
		shown = fmt.Sprintf(": %q", shown)
	}
	return fmt.Sprintf("%v: the record of worker ID %d is not shardkey's (%v)%s; "+
		"it is left alone: remove it, or use another namespace",
		spi.ErrStore, e.WorkerID, e.Err, shown)
}

func (e *ForeignRecordError) Unwrap() []error { return []error{spi.ErrStore, e.Err} }

// alteredError says that a store does not keep a record as it was written: one
// with a column that is too narrow, or of another type. It is [spi.ErrStore].
type alteredError struct{ Wrote, Found Record }

func (e *alteredError) Error() string {
	return fmt.Sprintf("%v: the store was given reserved_until %d, free_from %d and returns %d, %d: "+
		"it must keep records as they are; is a column too narrow, or of another type?",
		spi.ErrStore, e.Wrote.ReservedUntil, e.Wrote.FreeFrom, e.Found.ReservedUntil, e.Found.FreeFrom)
}

func (e *alteredError) Unwrap() error { return spi.ErrStore }

// clockError means that this machine's clock is so far off that nothing it shows is written
// to the store. It is [spi.ErrStore].
type clockError struct {
	Clock time.Time // this machine's clock
	Other time.Time // the time that it was compared with
	What  string    // whose time Other is
	// Most is how far ahead the clock may be; 0 where no property sets it.
	Most time.Duration
	// Stays means that the clock is believed once it has stayed there for Most.
	Stays bool
}

func (e *clockError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: this machine's clock says %s but %s %s: nothing was reserved; set the clock that is wrong",
		spi.ErrStore, e.Clock.UTC().Format(time.RFC3339), e.What, e.Other.UTC().Format(time.RFC3339))
	if e.Most > 0 {
		fmt.Fprintf(&b, "; max-clock-ahead is %v", e.Most)
	}
	if e.Stays {
		b.WriteString(", and a clock that stays ahead for as long is used")
	}
	return b.String()
}

func (e *clockError) Unwrap() error { return spi.ErrStore }
