package workerid

import "time"

// rules are the few decisions that the uniqueness of keys depends on. The simulation replaces them
// one at a time, and must then find a duplicate key.
type rules struct {
	// floor returns the first key time of a lease that replaces prev.
	floor func(prev Record, now int64) int64
	// raise returns the reserved_until of the record that replaces prev.
	raise func(prev Record, want int64) int64
	// confirmed reports whether the store has acknowledged a write. swapped and err are the results
	// of CompareAndSet.
	confirmed func(swapped bool, err error) bool
	// mine reports whether this lease wrote the record that was found in the store. Either it is
	// the newest known record, or it is one of the attempts whose outcome wasn't known.
	mine func(found, newest Record, attempts []string) bool
	// shown returns the limit of a lease that had limit, after the store has returned a record of
	// the lease that it hasn't acknowledged.
	shown func(limit int64, found Record) int64
	// freeFrom returns the first key time that a lease leaves to its successor.
	freeFrom func(floor, limit, lastUsed int64) int64
	// free reports whether a record looks free to a new owner. It is the only rule that uses a
	// clock, and uniqueness doesn't depend on it.
	free func(r Record, now int64) bool

	// longest, settled and others are for servers that are replaced by servers without the last
	// writes; see failover.go.

	// longest returns the longest lease that another owner may have. noted is the length in the
	// notes.
	longest func(own, noted time.Duration) time.Duration
	// settled returns the longest lease that a server which takes over at now must know of.
	settled func(n leaseLengths, now int64) time.Duration
	// others reports whether another owner may have taken over a lease with the newest record, if
	// clocks differ by at most margin.
	others func(newest Record, now, margin int64) bool
}

var theRules = rules{
	floor: func(prev Record, now int64) int64 {
		if prev.IsZero() {
			return now // there was no lease before, so the clock is the only bound
		}
		return prev.start()
	},
	raise: func(prev Record, want int64) int64 {
		return max(prev.ReservedUntil, want)
	},
	confirmed: func(swapped bool, err error) bool {
		return swapped && err == nil
	},
	mine: func(found, newest Record, attempts []string) bool {
		if found.Same(newest) {
			return true
		}
		for _, token := range attempts {
			if found.Owner == token {
				return true
			}
		}
		return false
	},
	shown: func(limit int64, _ Record) int64 { return limit },
	freeFrom: func(floor, limit, lastUsed int64) int64 {
		if lastUsed < 0 { // unknown, so the whole reservation counts as used
			return limit
		}
		return max(floor, lastUsed+1)
	},
	free: func(r Record, now int64) bool {
		return r.IsZero() || r.FreeFrom > 0 || r.ReservedUntil <= now
	},
	longest: func(own, noted time.Duration) time.Duration { return max(own, noted) },
	settled: func(n leaseLengths, now int64) time.Duration {
		if n.before > 0 && now < n.since+n.longest.Milliseconds() {
			return n.before
		}
		return n.longest
	},
	others: func(newest Record, now, margin int64) bool { return newest.ReservedUntil-now < margin },
}

// horizon is the maximum difference of two right clocks. A worker ID that starts further ahead
// isn't taken, because keys would have that time. A lease isn't renewed to a time further ahead,
// unless leases are that long.
const horizon = 24 * time.Hour

// longestPause is the maximum time for which a namespace may have been unused. A clock that is
// further ahead of everything in the store is wrong.
const longestPause = 10 * 365 * 24 * time.Hour
