package segment

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// ticketBubble runs a test with fake ticket servers.
func ticketBubble(t *testing.T, dsns string, props map[string]any, test func(*testing.T, *generator, []*fake)) {
	t.Helper()
	inBubble(t, "TICKET", with(map[string]any{"dsns": dsns}, props), test)
}

const (
	two   = "u@tcp(a:1)/d,u@tcp(b:1)/d"
	three = "u@tcp(a:1)/d,u@tcp(b:1)/d,u@tcp(c:1)/d"
)

// The servers are used in turn. The rest of a batch serves calls for which it suffices, on its
// server's grid. Otherwise the rest is dropped, unless the call needs more than a batch.
func TestServers_inTurn(t *testing.T) {
	for _, tt := range []struct {
		name, dsns string
		batch      string
		want       [][]int64
	}{
		{"three servers", three, "1", [][]int64{{1}, {2}, {3}, {4}, {5}, {6}, {7, 10, 13}, {8, 11}}},
		{"batches of 4", two, "4", [][]int64{{1}, {3, 5}, {2, 4}, {6, 8}, {9, 11, 13}, {10, 12},
			{17, 19, 21, 23, 25}, {14, 16}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ticketBubble(t, tt.dsns, map[string]any{"batch": tt.batch}, func(t *testing.T, g *generator, _ []*fake) {
				for _, want := range tt.want {
					if have := mustKeys(t, g, len(want)); !slices.Equal(have, want) {
						t.Errorf("\nhave: %v\nwant: %v", have, want)
					}
				}
			})
		})
	}
}

// A batch is one fetch. Later calls use its rest from the buffer.
func TestServers_batch(t *testing.T) {
	ticketBubble(t, "u@tcp(a:1)/d", map[string]any{"batch": "10"}, func(t *testing.T, g *generator, _ []*fake) {
		for range 30 {
			mustKey(t, g)
		}
		if h := g.Health(); h.Segment.Fetches != 3 || *h.Segment.Left != 0 || h.Segment.Size != 10 || h.Issued != 30 {
			t.Errorf("\nhave: %d fetches, %d left of %d, %d issued\nwant: 3, 0 of 10, 30",
				h.Segment.Fetches, *h.Segment.Left, h.Segment.Size, h.Issued)
		}
		for _, n := range []int{4, 25, 6} {
			mustKeys(t, g, n)
		}
		if h := g.Health(); h.Segment.Fetches != 5 {
			t.Errorf("\nhave: %d fetches\nwant: 5", h.Segment.Fetches)
		}
	})
}

// A server that is down is retried after 1, 2, 4, … 30 seconds, and costs nothing in between.
func TestServers_pausesGrow(t *testing.T) {
	ticketBubble(t, two, nil, func(t *testing.T, g *generator, fakes []*fake) {
		fakes[0].fail = []error{errors.New("down")}
		begin := time.Now()
		var tried []time.Duration
		for time.Since(begin) < 100*time.Second {
			before := fakes[0].tries
			mustKey(t, g)
			if fakes[0].tries > before {
				tried = append(tried, time.Since(begin))
			}
			time.Sleep(100 * time.Millisecond)
		}
		last := time.Duration(0)
		for i, want := range []time.Duration{0, 1, 2, 4, 8, 16, 30, 30} {
			if i >= len(tried) {
				t.Fatalf("\nhave: tries at %v\nwant: 8", tried)
			}
			if pause := (tried[i] - last).Round(time.Second); pause != want*time.Second {
				t.Errorf("try %d\nhave: after %v\nwant: after %vs", i, pause, int64(want))
			}
			last = tried[i]
		}
	})
}

func TestServers_slowOneIsSkipped(t *testing.T) {
	ticketBubble(t, two, map[string]any{"timeout": "1s"}, func(t *testing.T, g *generator, fakes []*fake) {
		fakes[0].delay = time.Hour
		begin := time.Now()
		for range 10 {
			mustKey(t, g)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("\nhave: %v for 10 keys\nwant: the timeout once, 1s", took)
		}
		if g.Health().Err == nil {
			t.Error("have: good health\nwant: the error of the server that is skipped")
		}
	})
}

func TestServers_allFail(t *testing.T) {
	ticketBubble(t, two, nil, func(t *testing.T, g *generator, fakes []*fake) {
		a, b := errors.New("down"), errors.New("on fire")
		fakes[0].fail, fakes[1].fail = []error{a}, []error{b}
		for range 3 {
			if _, err := generate(t.Context(), g, 1); !errors.Is(err, a) || !errors.Is(err, b) {
				t.Errorf("\nhave: %v\nwant: both servers' errors", err)
			}
		}
		if h := g.Health(); h.Err == nil || h.Errors["store"] != 6 || h.Issued != 0 {
			t.Errorf("\nhave: %v, errors %v, %d issued\nwant: an error, 6, 0", h.Err, h.Errors, h.Issued)
		}
	})
}

// A server that has repeated numbers is not used again.
func TestServers_refused(t *testing.T) {
	ticketBubble(t, two, nil, func(t *testing.T, g *generator, fakes []*fake) {
		fakes[0].refused = fakes[0].storeError(errRepeated, "fake")
		for range 5 {
			if k := mustKey(t, g); k%2 != 0 {
				t.Errorf("have: %d\nwant: a number of the second server", k)
			}
			time.Sleep(maxPause)
		}
		if h := g.Health(); !errors.Is(h.Err, errRepeated) || h.Errors["repeated"] == 0 {
			t.Errorf("have: %v, %v\nwant: errRepeated", h.Err, h.Errors)
		}
	})
}

// All servers are connected before the first number. Wrong settings of a server that returns stop
// all numbers until they are fixed.
func TestServers_settingsOfAllCount(t *testing.T) {
	ticketBubble(t, two, nil, func(t *testing.T, g *generator, fakes []*fake) {
		wrong := fakes[1].storeError(errSettings, "fake")
		fakes[1].refuse = wrong
		for range 4 {
			_, err := generate(t.Context(), g, 1)
			wantError(t, err, errSettings)
		}
		if fakes[0].tries != 0 {
			t.Errorf("have: %d claims\nwant: none", fakes[0].tries)
		}
		fakes[1].set(func(f *fake) { f.refuse = nil })
		if keys := []int64{mustKey(t, g), mustKey(t, g)}; !slices.Equal(keys, []int64{1, 2}) {
			t.Errorf("after the repair\nhave: %v\nwant: 1 2", keys)
		}
		fakes[0].set(func(f *fake) { f.fail = []error{wrong, nil} }) // error for a number that is off its grid
		if _, err := generate(t.Context(), g, 1); !errors.Is(err, errSettings) {
			t.Errorf("wrong settings at a claim\nhave: %v\nwant: errSettings, and no number of the other server", err)
		}
		fakes[1].set(func(f *fake) { f.refuse = wrong })
		time.Sleep(lifetime)
		failed := 0
		for range 6 {
			if _, err := generate(t.Context(), g, 1); errors.Is(err, errSettings) {
				failed++
			}
		}
		if failed < 5 {
			t.Errorf("\nhave: %d of 6 calls refused\nwant: all from when it is seen", failed)
		}
	})
}
