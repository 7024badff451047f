package segment

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
)

func TestAdaptStep_followsDuration(t *testing.T) {
	tests := []struct {
		step      int64
		took      time.Duration
		low, high int64
		want      int64
	}{
		{1000, time.Second, 1000, 1_000_000, 2000},
		{1000, 15*time.Minute - 1, 1000, 1_000_000, 2000},
		{1000, 15 * time.Minute, 1000, 1_000_000, 1000},
		{4000, 30 * time.Minute, 1000, 1_000_000, 4000},
		{4000, 30*time.Minute + 1, 1000, 1_000_000, 2000},
		{1000, time.Hour, 1000, 1_000_000, 1000},
		{1500, time.Hour, 1000, 1_000_000, 1000},
		{800_000, time.Second, 1000, 1_000_000, 1_000_000},
		{1, time.Hour, 1, 10, 1},
		{100, time.Second, 100, 100, 100},
		{1000, -time.Hour, 1, 1_000_000, 2000}, // a clock that stepped back
	}
	for _, tt := range tests {
		if have := adaptStep(tt.step, tt.took, tt.low, tt.high); have != tt.want {
			t.Errorf("adaptStep(%d, %v, %d, %d)\nhave: %d\nwant: %d", tt.step, tt.took, tt.low, tt.high, have, tt.want)
		}
	}
}

func TestRate_lead(t *testing.T) {
	perSecond := func(n float64) float64 { return n / float64(time.Second) }
	tests := []struct {
		name    string
		rate    float64
		fetch   time.Duration
		reserve time.Duration
		want    int64
	}{
		{"no rate: the last number", 0, 0, time.Minute, 1},
		{"ten a second for a minute", perSecond(10), 0, time.Minute, 600},
		{"a slow fetch counts eight times", perSecond(10), 10 * time.Second, time.Minute, 800},
		{"no reserve: the fetch alone", perSecond(100), time.Second, 0, 800},
		{"faster than the segment", perSecond(1e9), 0, time.Minute, 10_000},
		{"faster than an int64 holds", math.MaxFloat64, 0, time.Minute, 10_000},
		{"less than a number", perSecond(0.1), 0, time.Second, 1},
	}
	for _, tt := range tests {
		p := rate{fetch: tt.fetch}
		must.Equal(t, p.lead(tt.rate, tt.reserve, 10_000), tt.want, tt.name)
	}
}

// The time of a fetch rises to a slower one at once, and falls by an eighth at a time.
func TestRate_fetched(t *testing.T) {
	r := rate{}
	for _, tt := range []struct{ took, want time.Duration }{
		{800, 800}, {0, 700}, {700, 700}, {620, 690}, {1000, 1000}, {1000, 1000}, {200, 900},
	} {
		if r.fetched(tt.took); r.fetch != tt.want {
			t.Errorf("after a fetch of %d\nhave: %d\nwant: %d", tt.took, r.fetch, tt.want)
		}
	}
}

// The rate is measured since the segment began and since the last check. The higher one counts.
func TestRate_observe(t *testing.T) {
	begin := time.Unix(1000, 0)
	var r rate
	r.begin(begin)
	for _, tt := range []struct {
		after  time.Duration
		offset int64
		want   float64 // per second
	}{{10 * time.Second, 100, 10}, {20 * time.Second, 400, 30}, {30 * time.Second, 410, 410. / 30}, {30 * time.Second, 411, 1e9}} {
		have := r.observe(begin, begin.Add(tt.after), tt.offset) * float64(time.Second)
		if have < tt.want*0.999 || have > tt.want*1.001 {
			t.Errorf("%d numbers after %v\nhave: %v a second\nwant: %v", tt.offset, tt.after, have, tt.want)
		}
	}
}

func TestRate_nextCheck(t *testing.T) {
	for _, tt := range []struct{ offset, lead, size, want int64 }{
		{0, 100, 1000, 450}, {450, 100, 1000, 675}, {899, 100, 1000, 900}, {900, 100, 1000, 901}, {950, 100, 1000, 951},
	} {
		must.Equal(t, nextCheck(tt.offset, tt.lead, tt.size), tt.want, "at", tt.offset, "of", tt.size, "lead", tt.lead)
	}
}

// leafBubble runs a test with a fake leaf_alloc.
func leafBubble(t *testing.T, props map[string]any, test func(*testing.T, *generator, *fake)) {
	t.Helper()
	inBubble(t, "LEAF_SEGMENT", with(types[0].props, props), func(t *testing.T, g *generator, fakes []*fake) {
		test(t, g, fakes[0])
	})
}

// consume takes n numbers at an even rate over a duration. With a single caller, no number may be
// skipped.
func consume(t *testing.T, g *generator, n int64, over time.Duration) {
	t.Helper()
	first := mustKey(t, g)
	for i := range n - 1 {
		if have := mustKey(t, g); have != first+i+1 {
			t.Fatalf("\nhave: %d after %d\nwant: the next number", have, first+i)
		}
		time.Sleep(over / time.Duration(n))
	}
}

// At a steady rate, segments grow until they last 15 minutes. When the rate falls, they shrink
// until they last 30 minutes, but not below the row's step.
func TestRate_stepFollows(t *testing.T) {
	leafBubble(t, nil, func(t *testing.T, g *generator, f *fake) {
		consume(t, g, 10_000, 10_000*time.Second) // 900 to 1800 last 15 to 30 minutes
		sizes := f.claims()
		if last := sizes[len(sizes)-1]; last < 900 || last > 1800 {
			t.Errorf("at 1 a second\nhave: segments of %v\nwant: the last one in 900..1800", sizes)
		}
		consume(t, g, 6000, 6000*20*time.Second) // 45 to 90, but the row's step is 100
		sizes = f.claims()
		if last := sizes[len(sizes)-1]; last != 100 {
			t.Errorf("at 1 in 20 seconds\nhave: segments of %v\nwant: the last one of 100", sizes)
		}
		for i, size := range sizes[1:] {
			if size > 2*sizes[i] || 2*size < sizes[i] {
				t.Errorf("have: %d after %d\nwant: at most twice or half", size, sizes[i])
			}
		}
	})
}

// If calls use up whole fetches, later fetches become larger, until some numbers stay buffered
// for the next call.
func TestRate_stepFollowsLargeCalls(t *testing.T) {
	for _, n := range []int{100, 101, 1500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			leafBubble(t, nil, func(t *testing.T, g *generator, f *fake) {
				for range 200 {
					mustKeys(t, g, n)
					time.Sleep(time.Second)
				}
				waits := *g.Health().Waits
				for range 200 {
					mustKeys(t, g, n)
					time.Sleep(time.Second)
				}
				if have := *g.Health().Waits; have != waits {
					t.Errorf("\nhave: %d waits after %d, fetches of %v\nwant: all from memory", have, waits, f.claims())
				}
			})
		})
	}
}

// The next segment is fetched when the rest lasts as long as the reserve, not at a fixed share or
// at the end.
func TestRate_fetchIsEarlyEnough(t *testing.T) {
	for _, tt := range []struct {
		name      string
		reserve   string
		every     time.Duration // time between two numbers
		low, high int64         // numbers used before the second fetch
	}{
		{"1 in 10 s: 6 numbers are a minute", "1m", 10 * time.Second, 985, 997},
		{"1 a second: 60 numbers are a minute", "1m", time.Second, 920, 945},
		{"5 a second: 300 numbers are a minute", "1m", time.Second / 5, 660, 710},
		{"1000 a second: all are", "1m", time.Millisecond, 100, 130},
		{"no reserve: 8 fetches of 10 ms", "0s", time.Millisecond, 900, 930},
	} {
		t.Run(tt.name, func(t *testing.T) {
			leafBubble(t, map[string]any{"reserve": tt.reserve}, func(t *testing.T, g *generator, f *fake) {
				f.base, f.delay = 1000, 10*time.Millisecond
				var used int64
				for len(f.claims()) < 2 && used < 1000 {
					mustKey(t, g)
					used++
					time.Sleep(tt.every)
				}
				if used < tt.low || used > tt.high {
					t.Errorf("\nhave: the second fetch after %d of 1000\nwant: %d..%d", used, tt.low, tt.high)
				}
			})
		})
	}
}

// If the fetch is early enough, no call waits at a steady rate, with any delay of the database.
func TestRate_steadyCallersDoNotWait(t *testing.T) {
	for _, tt := range []struct{ delay, every time.Duration }{
		{2 * time.Second, 100 * time.Millisecond}, {5 * time.Millisecond, time.Millisecond},
	} {
		leafBubble(t, nil, func(t *testing.T, g *generator, f *fake) {
			f.delay = tt.delay
			consume(t, g, 20_000, 20_000*tt.every)
			if h := g.Health(); *h.Waits != 1 {
				t.Errorf("\nhave: %d waits in %d fetches\nwant: the first call's only", *h.Waits, h.Segment.Fetches)
			}
		})
	}
}

// Health reports the problem before keys end. A failed early fetch is repeated, but not for each
// key.
func TestRate_fetchAheadIsRetriedSeldom(t *testing.T) {
	leafBubble(t, nil, func(t *testing.T, g *generator, f *fake) {
		f.base = 10_000
		mustKey(t, g)
		f.set(func(f *fake) { f.fail = []error{errAway} })
		for range 9000 {
			mustKey(t, g)
			synctest.Wait()
		}
		h := g.Health()
		if h.Err == nil {
			t.Error("have: good health\nwant: the failure of the fetch ahead")
		}
		if n := h.Errors["store"]; n < 2 || n > 40 {
			t.Errorf("\nhave: %d attempts over 9000 keys\nwant: 2..40", n)
		}
		f.set(func(f *fake) { f.fail = nil })
		for range 1000 {
			mustKey(t, g)
			synctest.Wait()
		}
		if h := g.Health(); h.Err != nil || *h.Waits != 1 {
			t.Errorf("\nhave: %v, %d waits\nwant: well again, without a wait", h.Err, *h.Waits)
		}
	})
}
