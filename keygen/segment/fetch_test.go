package segment

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
)

// setCurrent makes a segment from 1 the current one, which begins now.
func setCurrent(g *generator, count, used int64) *segment {
	s := newSegment(run{1, count, 1})
	s.since = g.clock.Now()
	s.used.Store(used)
	g.current.Store(s)
	return s
}

// The call that takes the number at a segment's check checks the segment, not an earlier one.
func TestFetch_isLookedAtFromTheCheck(t *testing.T) {
	for _, tt := range []struct {
		used   int64
		n      int
		looked bool
	}{
		{9, 1, false}, {10, 1, true}, {11, 1, true},
		{0, 10, false}, {0, 11, true}, {5, 5, false}, {5, 6, true}, {20, 2, true},
	} {
		leafBubble(t, nil, func(t *testing.T, g *generator, _ *fake) {
			s := setCurrent(g, 1<<20, tt.used)
			s.check.Store(10)
			mustKeys(t, g, tt.n)
			must.Equal(t, s.check.Load() != 10, tt.looked, tt.n, "keys after", tt.used, "looked at")
		})
	}
}

// Nothing is fetched early for a closed generator, for a segment other than the current one, or
// if there is a next one.
func TestFetch_aheadOnlyWhereItIsOfUse(t *testing.T) {
	for name, change := range map[string]func(*generator){
		"closed":          func(g *generator) { g.closed = true },
		"another segment": func(g *generator) { g.current.Store(newSegment(run{1, 100, 1})) },
		"has a next one":  func(g *generator) { g.next = newSegment(run{1001, 100, 1}) },
		"of use":          func(*generator) {},
	} {
		leafBubble(t, nil, func(t *testing.T, g *generator, f *fake) {
			s := setCurrent(g, 100, 100)
			change(g)
			g.prefetch(s)
			synctest.Wait()
			if fetched, want := len(f.claims()), name == "of use"; (fetched != 0) != want || s.check.Load() != noCheck {
				t.Errorf("%s\nhave: %d fetches, check at %d\nwant: a fetch: %v", name, fetched, s.check.Load(), want)
			}
			g.mu.Lock()
			g.closed = false
			g.mu.Unlock()
		})
	}
}

// After an early fetch failed, the next one follows when an eighth of the rest is used.
func TestFetch_postpone(t *testing.T) {
	for _, tt := range []struct{ used, want int64 }{{20, 31}, {95, 96}, {0, 13}} {
		leafBubble(t, nil, func(t *testing.T, g *generator, _ *fake) {
			s := setCurrent(g, 100, tt.used)
			g.postpone()
			must.Equal(t, s.check.Load(), tt.want, tt.used, "of 100 used")
		})
	}
	ticketBubble(t, two, nil, func(t *testing.T, g *generator, _ []*fake) {
		s := setCurrent(g, 100, 0)
		if g.postpone(); s.check.Load() != noCheck {
			t.Errorf("TICKET\nhave: looked at from %d\nwant: never, it fetches nothing ahead of use", s.check.Load())
		}
	})
}

// One fetch serves calls that together need no more than the limit. A call that needs more has
// its own fetch.
func TestFetch_requestsOfOneFetch(t *testing.T) {
	leafBubble(t, map[string]any{"max-step": "100"}, func(t *testing.T, g *generator, _ *fake) {
		for _, n := range []int64{40, 60, 1, 99, 1, 150, 0, 150, 1} {
			g.queue = append(g.queue, &request{n: n, done: make(chan struct{})})
		}
		var have [][]int64
		for len(g.queue) > 0 {
			var sizes []int64
			for _, r := range g.nextRequests() {
				sizes = append(sizes, r.n)
			}
			have = append(have, sizes)
		}
		want := [][]int64{{40, 60}, {1, 99}, {1}, {150}, {0, 150}, {1}}
		if !slices.EqualFunc(have, want, slices.Equal[[]int64]) {
			t.Errorf("\nhave: %v\nwant: %v", have, want)
		}
	})
}

// The step begins with the row's, and stays between the row's and max-step, whatever the row
// changes to.
func TestFetch_sizeFollowsTheRow(t *testing.T) {
	for _, tt := range []struct {
		props map[string]any
		bases []int64
		want  []int64
	}{
		{nil, []int64{10, 40, 20}, []int64{10, 40, 40}},
		{nil, []int64{0, -5, 3}, []int64{1, 1, 3}},
		{map[string]any{"max-step": "30"}, []int64{10, 40, 20}, []int64{10, 30, 30}},
		{map[string]any{"min-step": "5"}, []int64{10, 1}, []int64{10, 10}},
		{map[string]any{"min-step": "5"}, []int64{1, 10}, []int64{5, 5}},
	} {
		leafBubble(t, tt.props, func(t *testing.T, g *generator, _ *fake) {
			var have []int64
			for _, base := range tt.bases {
				have = append(have, g.size(base, nil))
			}
			must.EqualSlices(t, have, tt.want, tt.props, "steps", tt.bases, "of the row")
		})
	}
}

// A new segment is first checked after a tenth, or half way to the next fetch at the last
// segment's rate.
func TestFetch_firstCheck(t *testing.T) {
	leafBubble(t, map[string]any{"reserve": "1m"}, func(t *testing.T, g *generator, _ *fake) {
		for _, tt := range []struct {
			rate float64 // per second
			want int64
		}{{0, 100}, {1, 470}, {10, 200}, {100, 0}} {
			g.rate.last = tt.rate / 1e9
			must.Equal(t, g.firstCheck(newSegment(run{1, 1000, 1})), tt.want, "at", tt.rate, "a second")
		}
		g.rate.last = 0
		setCurrent(g, 1000, 0)
		mustKeys(t, g, 500)
		time.Sleep(50 * time.Second)
		s := newSegment(run{1001, 1000, 1})
		if g.promote(s); s.check.Load() != 200 || g.rate.lookedAt != g.clock.Now() || g.rate.lookedOffset != 0 {
			t.Errorf("after one of 10 a second\nhave: looked at from %d, rate %+v\nwant: 200, the rate measured from now", s.check.Load(), g.rate)
		}
	})
}

// If the fetch is not due at a check, the check sets the time of the next one.
func TestFetch_looksAgain(t *testing.T) {
	leafBubble(t, map[string]any{"reserve": "1m"}, func(t *testing.T, g *generator, f *fake) {
		s := setCurrent(g, 1000, 100)
		g.rate.begin(s.since)
		time.Sleep(100 * time.Second)
		if g.prefetch(s); s.check.Load() != 520 || len(f.claims()) != 0 { // half way from 100 to 940
			t.Errorf("\nhave: looked at from %d, %d fetches\nwant: 520, none", s.check.Load(), len(f.claims()))
		}
	})
}

// A fetch claims at least a step and at least the numbers that calls need. If the next segment is
// already buffered, it claims only those, because it has no place for the rest.
func TestFetch_size(t *testing.T) {
	for _, tt := range []struct {
		requests []int64
		next     bool
		want     int64
	}{
		{[]int64{30}, false, 100},
		{[]int64{100}, false, 100},
		{[]int64{70, 60}, false, 130},
		{[]int64{0}, false, 100},
		{[]int64{0, 30}, false, 130},
		{[]int64{30}, true, 30},
		{[]int64{70, 60}, true, 130},
		{[]int64{0}, true, 1},
	} {
		leafBubble(t, nil, func(t *testing.T, g *generator, _ *fake) {
			if tt.next {
				g.next = newSegment(run{1, 10, 1})
			}
			var requests []*request
			for _, n := range tt.requests {
				requests = append(requests, &request{n: n})
			}
			must.Equal(t, g.size(100, requests), tt.want, "for", tt.requests, "a next segment", tt.next)
		})
	}
}

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
		must.Equal(t, adaptStep(tt.step, tt.took, tt.low, tt.high), tt.want, "adaptStep(", tt.step, tt.took, tt.low, tt.high, ")")
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
		must.Equal(t, sizes[len(sizes)-1], 100, "the last of", sizes, "at 1 in 20 seconds")
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
				must.Equal(t, *g.Health().Waits, waits, "waits after", waits, "fetches of", f.claims())
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
			must.Equal(t, *g.Health().Waits, 1, "the first call's wait only")
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
		must.Fail(t, h.Err, "health after the failure of the fetch ahead")
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
