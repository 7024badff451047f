package sequence

import (
	"math"
	"sync/atomic"
	"time"
)

// run is a range of numbers that were claimed together: first, first+stride, …
type run struct{ first, count, stride int64 }

// segment is a run that is handed out from its start. The offsets used to count-1 are left.
//
// Offsets count from 0, not from first. Requests to a used-up segment still increment used, which
// must never overflow.
type segment struct {
	run
	check atomic.Int64 // the offset at which to check whether to fetch the next segment
	since time.Time    // when it became the current segment

	// used has its own cache line: each key writes it, and only reads the other fields.
	_    [cacheLine]byte
	used atomic.Int64
	_    [cacheLine]byte
}

// cacheLine is two lines of 64 bytes, because processors fetch them in pairs.
const cacheLine = 128

// noCheck is the check of a segment that needs no more checks.
const noCheck = math.MaxInt64

func newSegment(r run) *segment {
	s := &segment{run: r}
	s.check.Store(noCheck)
	return s
}

// at returns the number at an offset.
func (s *segment) at(offset int64) int64 { return s.first + offset*s.stride }

// take hands out n consecutive offsets if enough are left. It takes one offset with an addition,
// which needs no retry. It takes several with a compare-and-swap, so that a request that is too
// large wastes nothing.
func (s *segment) take(n int64) (offset int64, ok bool) {
	if n == 1 {
		offset = s.used.Add(1) - 1
		return offset, offset < s.count
	}
	for {
		offset = s.used.Load()
		if n > s.count-min(offset, s.count) {
			return 0, false
		}
		if s.used.CompareAndSwap(offset, offset+n) {
			return offset, true
		}
	}
}

// cut is like take, and returns the offsets as a run.
func (s *segment) cut(n int64) (run, bool) {
	offset, ok := s.take(n)
	return run{s.at(offset), n, s.stride}, ok
}

// left returns how many numbers the segment has left.
func (s *segment) left() int64 {
	return s.count - min(s.used.Load(), s.count)
}

// retire ends the segment and returns how many numbers it has handed out. Afterwards take returns
// false, even for callers that still use the segment.
func (s *segment) retire() (handedOut int64) {
	return min(s.used.Swap(s.count), s.count)
}
