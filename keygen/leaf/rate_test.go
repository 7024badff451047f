package leaf

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
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
	}
	for _, tt := range tests {
		p := rate{fetch: tt.fetch}
		if have := p.lead(tt.rate, tt.reserve, 10_000); have != tt.want {
			t.Errorf("%s\nhave: %d\nwant: %d", tt.name, have, tt.want)
		}
	}
}

// consume takes n numbers at an even rate over the time.
func consume(t *testing.T, g *generator, n int64, over time.Duration) {
	t.Helper()
	for range n {
		mustReserve(t, g, 1)
		time.Sleep(over / time.Duration(n))
	}
}

// At a steady rate the segments grow until they last 15 minutes, and when the
// rate falls they shrink until they last 30, down to the row's step.
func TestRate_stepFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newFake(t, 100, config{})
		consume(t, g, 10_000, 10_000*time.Second) // 900 to 1800 last 15 to 30 minutes
		sizes := s.sizes()
		if last := sizes[len(sizes)-1]; last < 900 || last > 1800 {
			t.Errorf("at 1 a second\nhave: segments of %v\nwant: the last one in 900..1800", sizes)
		}
		consume(t, g, 6000, 6000*20*time.Second) // 45 to 90, but the row says 100
		sizes = s.sizes()
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

func TestRate_stepStaysInBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newFake(t, 1000, config{MinStep: 50, MaxStep: 300})
		consume(t, g, 3000, time.Minute)
		consume(t, g, 3000, 1000*time.Hour)
		sizes := s.sizes()
		if first, least, most := sizes[0], slices.Min(sizes), slices.Max(sizes); first != 300 || least < 50 || least > 99 || most != 300 {
			t.Errorf("\nhave: %v\nwant: from 300, within 50..300, down to 50..99", sizes)
		}
	})
}

// The next segment is fetched when the rest lasts for the reserve, neither at
// a fixed share nor only at the end.
func TestRate_fetchIsEarlyEnough(t *testing.T) {
	tests := []struct {
		name      string
		every     time.Duration // between two numbers
		low, high int64         // numbers used when the second fetch comes
	}{
		{"1 in 10 s: 6 numbers are a minute", 10 * time.Second, 985, 997},
		{"1 a second: 60 numbers are a minute", time.Second, 920, 945},
		{"5 a second: 300 numbers are a minute", time.Second / 5, 660, 710},
		{"1000 a second: all are", time.Millisecond, 100, 130},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, s := newFake(t, 1000, config{})
				s.set(func(s *fakeStore) { s.delay = 10 * time.Millisecond })
				var used int64
				for len(s.sizes()) < 2 && used < 1000 {
					mustReserve(t, g, 1)
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

// With the reserve's time of numbers fetched ahead, no call waits at a steady
// rate, whatever the database's delay.
func TestRate_steadyCallersDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newFake(t, 1000, config{})
		s.set(func(s *fakeStore) { s.delay = 2 * time.Second })
		consume(t, g, 20_000, 20_000*100*time.Millisecond)
		if h := g.Health(); *h.Waits != 1 {
			t.Errorf("\nhave: %d waits in %d fetches\nwant: the first call's only", *h.Waits, *h.Fetches)
		}
	})
}

// The row's step is read at the start and then at most every ten minutes: a
// fetch is one statement.
func TestRate_rowIsReadSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newFake(t, 10, config{MaxStep: 10})
		consume(t, g, 5000, 5*time.Minute)
		if s.reads != 1 || len(s.sizes()) < 500 {
			t.Errorf("\nhave: %d reads, %d claims\nwant: 1, 500 or more", s.reads, len(s.sizes()))
		}
		s.set(func(s *fakeStore) { s.step = 5 })
		consume(t, g, 1000, time.Hour)
		if s.reads < 4 || s.reads > 8 {
			t.Errorf("\nhave: %d reads in 65 minutes\nwant: 4..8", s.reads)
		}
	})
}
