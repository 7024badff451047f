package segment

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
)

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
			s := newSegment(run{1, 1 << 20, 1})
			s.since = g.clock.Now()
			s.used.Store(tt.used)
			s.check.Store(10)
			g.current.Store(s)
			mustKeys(t, g, tt.n)
			if looked := s.check.Load() != 10; looked != tt.looked {
				t.Errorf("%d keys after %d\nhave: looked at: %v\nwant: %v", tt.n, tt.used, looked, tt.looked)
			}
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
			s := newSegment(run{1, 100, 1})
			s.since = g.clock.Now()
			s.used.Store(100)
			g.current.Store(s)
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
			s := newSegment(run{1, 100, 1})
			s.used.Store(tt.used)
			g.current.Store(s)
			g.postpone()
			must.Equal(t, s.check.Load(), tt.want, tt.used, "of 100 used")
		})
	}
	ticketBubble(t, two, nil, func(t *testing.T, g *generator, _ []*fake) {
		s := newSegment(run{1, 100, 1})
		g.current.Store(s)
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
			if !slices.Equal(have, tt.want) {
				t.Errorf("%v, steps %d of the row\nhave: %d\nwant: %d", tt.props, tt.bases, have, tt.want)
			}
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
		g.current.Store(newSegment(run{1, 1000, 1}))
		g.current.Load().since = g.clock.Now()
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
		s := newSegment(run{1, 1000, 1})
		s.since = g.clock.Now()
		g.rate.begin(s.since)
		s.used.Store(100)
		g.current.Store(s)
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
