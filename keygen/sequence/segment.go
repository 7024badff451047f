package sequence

import (
	"math"
	"sync/atomic"
	"time"
)

// run is numbers that were claimed together: first, first+stride, …
type run struct{ first, count, stride int64 }

// segment is a run that is handed out from its start. Its offsets used … count-1 are
// left.
//
// Offsets count from 0, not from first: what is asked of a used-up segment
// still counts used up, and must never wrap around.
type segment struct {
	run
	check atomic.Int64 // the offset at which to look whether to fetch the next
	since time.Time    // when it became the current one

	// used has a cache line to itself: each key writes it, and reads the rest.
	_    [cacheLine]byte
	used atomic.Int64
	_    [cacheLine]byte
}

// cacheLine is two lines of 64 bytes: processors fetch them in pairs.
const cacheLine = 128

// noCheck is the check of a segment that needs no look any more.
const noCheck = math.MaxInt64

func newSegment(r run) *segment {
	s := &segment{run: r}
	s.check.Store(noCheck)
	return s
}

// at is the number at an offset.
func (s *segment) at(offset int64) int64 { return s.first + offset*s.stride }

// take hands out n consecutive offsets, if as many are left. One is
// taken by an addition, which never has to be repeated; several by a
// compare-and-swap, so that too large a request does not waste what is left.
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

// cut is take as a run.
func (s *segment) cut(n int64) (run, bool) {
	offset, ok := s.take(n)
	return run{s.at(offset), n, s.stride}, ok
}

// left is how many numbers the segment still has.
func (s *segment) left() int64 {
	return s.count - min(s.used.Load(), s.count)
}

// retire ends the segment and returns how many numbers it handed out. After it
// no caller, not even one that still holds the segment, takes another.
func (s *segment) retire() (handedOut int64) {
	return min(s.used.Swap(s.count), s.count)
}
