package leaf

import (
	"math"
	"sync/atomic"
	"time"
)

// segment is an interval of claimed numbers, handed out from its start. The
// numbers first+used … first+size-1 are left.
//
// Offsets count from 0, not from first: what is asked of a used-up segment
// still counts used up, and must never wrap around.
type segment struct {
	first, size int64
	check       atomic.Int64 // the offset at which to look whether to fetch the next
	since       time.Time    // when it became the current one

	// used has a cache line to itself: each key writes it, and reads the rest.
	_    [cacheLine]byte
	used atomic.Int64
	_    [cacheLine]byte
}

// cacheLine is two lines of 64 bytes: processors fetch them in pairs.
const cacheLine = 128

// noCheck is the check of a segment that needs no look any more.
const noCheck = math.MaxInt64

// take hands out n consecutive offsets, if as many are left. One is
// taken by an addition, which never has to be repeated; several by a
// compare-and-swap, so that too large a request does not waste what is left.
func (s *segment) take(n int64) (offset int64, ok bool) {
	if n == 1 {
		offset = s.used.Add(1) - 1
		return offset, offset < s.size
	}
	for {
		offset = s.used.Load()
		if n > s.size-min(offset, s.size) {
			return 0, false
		}
		if s.used.CompareAndSwap(offset, offset+n) {
			return offset, true
		}
	}
}

// left is how many numbers the segment still has.
func (s *segment) left() int64 {
	return s.size - min(s.used.Load(), s.size)
}

// retire ends the segment and returns how many numbers it handed out. After it
// no caller, not even one that still holds the segment, takes another.
func (s *segment) retire() (handedOut int64) {
	return min(s.used.Swap(s.size), s.size)
}
