package segment

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

func (s *segment) left() int64 {
	return s.count - min(s.used.Load(), s.count)
}

// retire ends the segment and returns how many numbers it has handed out. Afterwards take returns
// false, even for callers that still use the segment.
func (s *segment) retire() (handedOut int64) {
	return min(s.used.Swap(s.count), s.count)
}

// A segment should last between shortest and longest. Then requests to the database are rare, and a
// restart loses few numbers.
const (
	shortest = 15 * time.Minute
	longest  = 30 * time.Minute
)

// adaptStep returns the size of later segments. took is how long a segment of size step lasted.
func adaptStep(step int64, took time.Duration, low, high int64) int64 {
	switch {
	case took < shortest:
		step *= 2
	case took > longest:
		step /= 2
	}
	return clamp(step, low, high)
}

func clamp(v, low, high int64) int64 { return max(low, min(v, high)) }

// rate measures how fast numbers are requested, and how long a fetch takes. The generator's mutex
// guards it.
type rate struct {
	last         float64       // numbers per nanosecond in the last segment; 0 if unknown
	fetch        time.Duration // recent duration of a fetch; slow fetches have more weight
	lookedAt     time.Time     // time of the last check of the current segment
	lookedOffset int64         // offset at the last check
}

// fetched records the duration of a fetch. The average follows slower fetches at once, and faster
// ones gradually.
func (r *rate) fetched(took time.Duration) {
	r.fetch = max(took, r.fetch-(r.fetch-took)/8)
}

// begin is called when a segment becomes the current one.
func (r *rate) begin(now time.Time) { r.lookedAt, r.lookedOffset = now, 0 }

// observe records the segment's offset and returns the rate. The rate is the higher of the rate
// since the last check and the rate since the segment began.
func (r *rate) observe(since, now time.Time, offset int64) float64 {
	seen := max(perNano(offset, now.Sub(since)), perNano(offset-r.lookedOffset, now.Sub(r.lookedAt)))
	r.lookedAt, r.lookedOffset = now, offset
	return seen
}

func perNano(n int64, d time.Duration) float64 {
	return float64(n) / float64(max(d, 1))
}

// lead returns how many numbers must be left when the next segment is fetched. They must last for
// the reserve, and for a fetch that takes eight times as long as recently.
func (r *rate) lead(rate float64, reserve time.Duration, size int64) int64 {
	ahead := rate * float64(max(reserve, 8*r.fetch))
	return int64(min(max(1, ahead), float64(size)))
}

// nextCheck returns the offset of the next check. It is halfway to the offset where the fetch would
// start at the current rate, because the rate may rise.
func nextCheck(offset, lead, size int64) int64 {
	return offset + max(1, (size-lead-offset)/2)
}
