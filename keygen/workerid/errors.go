package workerid

import (
	"errors"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

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

func isForeign(err error) bool {
	_, is := errors.AsType[*ForeignRecordError](err)
	return is
}

// leaseLost returns the error if another owner may have the worker ID. It wraps
// [spi.ErrLeaseLost] and why.
func leaseLost(workerID int64, why error) error {
	return fmt.Errorf("%w: worker ID %d: %w", spi.ErrLeaseLost, workerID, why)
}

// errClock is in the chain if this machine's clock is so far off that nothing may be written to the
// store.
var errClock = fmt.Errorf("%w: wrong clock", spi.ErrStore)

// wrongClock returns the error for a clock that shows now, next to another time. what describes
// the other time.
func wrongClock(now time.Time, what string, other time.Time) error {
	return fmt.Errorf("%w: this machine's clock shows %s, but %s %s, so nothing was reserved; correct the clock that is wrong",
		errClock, now.UTC().Format(time.RFC3339), what, other.UTC().Format(time.RFC3339))
}

func kindOf(err error) string {
	kind := stats.KindOf(err,
		stats.Kind{Err: spi.ErrLeaseLost, Name: "lease-lost"},
		stats.Kind{Err: spi.ErrNoWorkerID, Name: "no-worker-id"},
		stats.Kind{Err: errClock, Name: "clock"},
		stats.Kind{Err: spi.ErrStore, Name: "store"})
	if kind == "store" && isForeign(err) {
		return "foreign-record"
	}
	return kind
}
