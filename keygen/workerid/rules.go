package workerid

import "time"

// rules are the few decisions that the uniqueness of ids rests on, in one
// place. The simulation takes them out one at a time and must find the repeat.
type rules struct {
	// floor is the first id time of a lease that takes over from prev.
	floor func(prev Record, now int64) int64
	// raise is the reserved_until that follows prev's.
	raise func(prev Record, want int64) int64
	// confirmed reports whether an attempt to write is known to stand in the
	// store: swapped and err are CompareAndSet's.
	confirmed func(swapped bool, err error) bool
	// mine reports whether the record that stands in the store was written by
	// this lease: it is the newest one that was known, or one of the attempts whose
	// outcome was not.
	mine func(found, newest Record, attempts []string) bool
	// shown is the limit of a lease that had limit and was shown a record of its
	// own by the store, which has not confirmed it.
	shown func(limit int64, found Record) int64
	// freeFrom is the first id time that a lease leaves to its successor.
	freeFrom func(floor, limit, lastUsed int64) int64
	// free reports whether a record looks free to a new owner. It is the one
	// place where a clock is asked, and uniqueness does not need it.
	free func(r Record, now int64) bool

	// longest, settled and others are for servers that are replaced by ones which lack the
	// last writes: see failover.go.

	// longest is the longest lease that another owner may have: noted is what the notes say.
	longest func(own, noted time.Duration) time.Duration
	// settled is the longest lease that a server which takes over at now must know of.
	settled func(n leaseLengths, now int64) time.Duration
	// others reports whether another owner may have taken over a lease with the newest
	// record, by clocks that differ by margin.
	others func(newest Record, now, margin int64) bool
}

var theRules = rules{
	floor: func(prev Record, now int64) int64 {
		if prev.IsZero() {
			return now // no lease came before: the clock is all there is
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
		if lastUsed < 0 { // not known: as if all were used
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

// horizon is how far apart two honest clocks can be. A worker ID that starts
// further ahead than that is not taken, for its ids would carry that time, and a
// lease is not moved on to a time further ahead, unless leases are that long.
const horizon = 24 * time.Hour

// longestPause is how long a namespace may have been unused. A clock that is
// further ahead of everything in the store is wrong.
const longestPause = 10 * 365 * 24 * time.Hour
