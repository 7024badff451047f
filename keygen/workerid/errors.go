package workerid

import (
	"fmt"
	"strings"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// noWorkerIDError is the error if every worker ID is leased. It lists the holders. It wraps
// [spi.ErrNoWorkerID].
type noWorkerIDError struct {
	Store       string // the store's description
	MaxWorkerID int64
	// Taken are the worker IDs in 0..MaxWorkerID that aren't free.
	Taken []Entry
	// Soonest is when the first of them becomes free, by their records. It is zero if that isn't
	// known.
	Soonest time.Time
}

// shownHolders limits the holders in an error message.
const shownHolders = 5

func (e *noWorkerIDError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: all of 0..%d are leased in %s", spi.ErrNoWorkerID, e.MaxWorkerID, e.Store)
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
	if !e.Soonest.IsZero() {
		fmt.Fprintf(&b, "; the next is free at %s", e.Soonest.UTC().Format(time.RFC3339))
	}
	b.WriteString("; stop a holder, wait until its reservation ends, or use another namespace for unrelated tables")
	return b.String()
}

func (e *noWorkerIDError) Unwrap() error { return spi.ErrNoWorkerID }

// leaseLostError is the error if another owner has the worker ID. It wraps [spi.ErrLeaseLost].
type leaseLostError struct {
	WorkerID int64
	Found    Record // record in the store; zero if there is none
	Err      error  // why the record isn't valid, or nil
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

// ForeignRecordError is the error if something other than a record is in the place of a worker ID's
// record. It is never overwritten. The error wraps [spi.ErrStore].
type ForeignRecordError struct {
	WorkerID int64
	Value    string // the content; messages show its beginning
	Err      error  // why it isn't a record
}

func (e *ForeignRecordError) Error() string {
	shown := e.Value
	if len(shown) > 60 {
		shown = shown[:60] + "…"
	}
	if shown != "" {
		shown = fmt.Sprintf(": %q", shown)
	}
	return fmt.Sprintf("%v: worker ID %d: expected a record of shardkey, found other content (%v)%s; "+
		"remove it, or use another namespace",
		spi.ErrStore, e.WorkerID, e.Err, shown)
}

func (e *ForeignRecordError) Unwrap() []error { return []error{spi.ErrStore, e.Err} }

// alteredError is the error if a store returns another record than it was given, for example
// because a column is too narrow or has another type. It wraps [spi.ErrStore].
type alteredError struct{ Wrote, Found Record }

func (e *alteredError) Error() string {
	return fmt.Sprintf("%v: the store changed a record: expected reserved_until %d and free_from %d, found %d and %d; "+
		"check the types of its columns",
		spi.ErrStore, e.Wrote.ReservedUntil, e.Wrote.FreeFrom, e.Found.ReservedUntil, e.Found.FreeFrom)
}

func (e *alteredError) Unwrap() error { return spi.ErrStore }

// clockError is the error if this machine's clock is so far off that nothing may be written to the
// store. It wraps [spi.ErrStore].
type clockError struct {
	Clock time.Time // time of this machine's clock
	Other time.Time // the time that Clock is compared with
	What  string    // whose time Other is
	// Most is how far ahead the clock may be. It is 0 if no property sets it.
	Most time.Duration
	// Stays means that the clock is accepted once it has stayed there for Most.
	Stays bool
}

func (e *clockError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: this machine's clock shows %s, but %s %s, so nothing was reserved; correct the clock that is wrong",
		spi.ErrStore, e.Clock.UTC().Format(time.RFC3339), e.What, e.Other.UTC().Format(time.RFC3339))
	if e.Most > 0 {
		fmt.Fprintf(&b, "; max-clock-ahead is %v", e.Most)
	}
	if e.Stays {
		b.WriteString(", and a clock that stays ahead for that time is accepted")
	}
	return b.String()
}

func (e *clockError) Unwrap() error { return spi.ErrStore }
