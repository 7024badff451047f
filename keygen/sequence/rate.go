package sequence

import "time"

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
