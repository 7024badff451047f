package sequence

import "time"

// A segment shall last between shortest and longest: long enough for the
// database to be asked seldom, short enough for a restart to lose little.
const (
	shortest = 15 * time.Minute
	longest  = 30 * time.Minute
)

// adaptStep returns the size of later segments when one of the present size
// lasted as long as took.
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

// rate is how fast numbers were asked for lately, and how long a
// fetch takes. The mutex of its generator guards it.
type rate struct {
	last         float64       // numbers a nanosecond in the last segment; 0 while unknown
	fetch        time.Duration // how long one took of late, the slower ones weighing more
	lookedAt     time.Time     // of the present segment's last look
	lookedOffset int64         // the offset then
}

// fetched notes the time of a fetch. It follows slower fetches at once and
// faster ones slowly.
func (r *rate) fetched(took time.Duration) {
	r.fetch = max(took, r.fetch-(r.fetch-took)/8)
}

// begin is called when a segment becomes the current one.
func (r *rate) begin(now time.Time) { r.lookedAt, r.lookedOffset = now, 0 }

// observe notes that the segment stands at offset and returns the rate seen: that
// since the last look or that since the segment began, whichever is higher.
func (r *rate) observe(since, now time.Time, offset int64) float64 {
	seen := max(perNano(offset, now.Sub(since)), perNano(offset-r.lookedOffset, now.Sub(r.lookedAt)))
	r.lookedAt, r.lookedOffset = now, offset
	return seen
}

func perNano(n int64, d time.Duration) float64 {
	return float64(n) / float64(max(d, 1))
}

// lead is how many numbers must be left when the next segment is fetched: what
// the reserve and a fetch that takes eight times as long as lately use up.
func (r *rate) lead(rate float64, reserve time.Duration, size int64) int64 {
	ahead := rate * float64(max(reserve, 8*r.fetch))
	return int64(min(max(1, ahead), float64(size)))
}

// nextCheck is the offset of the next look: half way to where the fetch would
// be due at the present rate, because the rate may rise in between.
func nextCheck(offset, lead, size int64) int64 {
	return offset + max(1, (size-lead-offset)/2)
}
