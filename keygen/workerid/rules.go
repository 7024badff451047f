package workerid

import (
	"slices"
	"time"
)

// The uniqueness of keys depends on these few decisions. The simulation is also built with a bug in
// each of them, and must then find a duplicate key.

// neverHeld is the FreeFrom of a worker ID's first record, which no lease has held.
const neverHeld = 1

// floorAfter returns the first key time of a lease that replaces prev. If no lease has held prev,
// the worker ID was never used, or its record was removed. A lease that had a removed record
// reserved at most one length beyond its clock (see reserve), so the new lease starts there, at the
// last millisecond that it reserves itself.
func floorAfter(prev Record, now int64, length time.Duration) int64 {
	if prev.FreeFrom == neverHeld {
		return now + length.Milliseconds() - 1
	}
	return prev.start()
}

// raised returns the reserved_until of the record that replaces prev.
func raised(prev Record, want int64) int64 {
	return max(prev.ReservedUntil, want)
}

// confirmed reports whether the store has acknowledged a write. swapped and err are the results of
// CompareAndSet.
func confirmed(swapped bool, err error) bool {
	return swapped && err == nil
}

// isOwn reports whether this lease wrote the record that was found in the store. Either it is the
// newest known record, or it is one of the attempts whose outcome wasn't known.
func isOwn(found, newest Record, attempts []string) bool {
	return found.Same(newest) || slices.Contains(attempts, found.Owner)
}

// freeFrom returns the first key time that a lease leaves to its successor.
func freeFrom(floor, limit, lastUsed int64) int64 {
	if lastUsed < 0 { // unknown, so the whole reservation counts as used
		return limit
	}
	return max(floor, lastUsed+1)
}

// isFree reports whether a record looks free to a new owner. It is the only rule that uses a clock,
// and uniqueness doesn't depend on it.
func (r Record) isFree(now int64) bool {
	return r.IsZero() || r.FreeFrom > 0 || r.ReservedUntil <= now
}

// settled returns the longest lease that a server which takes over at now must know of; see
// failover.go.
func (n leaseLengths) settled(now int64) time.Duration {
	if n.before > 0 && now < n.since+n.longest.Milliseconds() {
		return n.before
	}
	return n.longest
}

// horizon is the maximum difference of two right clocks. A worker ID that starts further ahead
// isn't taken, because keys would have that time. A lease isn't renewed to a time further ahead,
// unless leases are that long.
const horizon = 24 * time.Hour

// longestPause is the maximum time for which a namespace may have been unused. A clock that is
// further ahead of everything in the store is wrong.
const longestPause = 10 * 365 * 24 * time.Hour
