package snowflake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

func registered(t *testing.T, typ string, host spi.Host, values map[string]any) (*generator, error) {
	t.Helper()
	props := must.Get(spi.NewProps(values, host))(t)
	g, err := spi.NewKeyGenerator(typ, props)
	if err != nil {
		if g != nil {
			t.Errorf("\nhave: %v and an error\nwant: nil", g)
		}
		return nil, err
	}
	t.Cleanup(func() { _ = g.(*generator).Close() })
	return g.(*generator), nil
}

func TestProperties_checked(t *testing.T) {
	for _, tt := range []struct {
		typ   string
		props map[string]any
		want  string
	}{
		{"SNOWFLAKE", map[string]any{"worker.id": "123"},
			"SNOWFLAKE 41-10-12 (time-worker-sequence bits), tick 1ms, epoch 2016-11-01T00:00:00Z, worker 123, clock-back wait 10ms, vibration 0..1"},
		{"snowflake", nil,
			"SNOWFLAKE 41-10-12 (time-worker-sequence bits), tick 1ms, epoch 2016-11-01T00:00:00Z, worker 0 (not set), clock-back wait 10ms, vibration 0..1"},
		{"snowflake", map[string]any{"worker-id": "1023", "max.vibration.offset": "4095", "max.tolerate.time.difference.milliseconds": "500"},
			"SNOWFLAKE 41-10-12 (time-worker-sequence bits), tick 1ms, epoch 2016-11-01T00:00:00Z, worker 1023, clock-back wait 500ms, vibration 0..4095"},
		{"SNOWFLAKE", map[string]any{"worker-id": "15", "layout": "js53", "epoch": "2020-01-01", "clock-back": "Borrow", "max-vibration-offset": "0"},
			"SNOWFLAKE js53 (time-worker-sequence bits), tick 1s, epoch 2020-01-01T00:00:00Z, worker 15, clock-back borrow, vibration 0..0"},
		{"SNOWFLAKE", map[string]any{"worker-id": "0", "layout": "63-0-0"},
			"SNOWFLAKE 63-0-0 (time-worker-sequence bits), tick 1ms, epoch 2016-11-01T00:00:00Z, worker 0, clock-back wait 10ms, vibration 0..0"},
		{"SNOWFLAKE_RING", map[string]any{"worker-id": "1", "layout": "39-16-8", "tick": "10ms", "clock-back": "error"},
			"SNOWFLAKE_RING 39-16-8 (time-worker-sequence bits), tick 10ms, epoch 2016-11-01T00:00:00Z, worker 1, clock-back error, vibration 0..1, ring of 200"},
		{"SNOWFLAKE_RING", map[string]any{"worker-id": "2", "ring-size": "5", "max-tolerate-time-difference-milliseconds": "0"},
			"SNOWFLAKE_RING 41-10-12 (time-worker-sequence bits), tick 1ms, epoch 2016-11-01T00:00:00Z, worker 2, clock-back wait 0s, vibration 0..1, ring of 5"},
	} {
		g, err := registered(t, tt.typ, spi.Host{}, tt.props)
		if err != nil {
			t.Errorf("%v\nhave: %v\nwant: a generator", tt.props, err)
		} else if have := g.Describe(); have != tt.want {
			t.Errorf("%v\nhave: %s\nwant: %s", tt.props, have, tt.want)
		}
	}
}

func TestProperties_refused(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/refused.txt", 3) {
		want, typ, props := c[0], c[1], map[string]any{}
		for prop := range strings.SplitSeq(c[2], ",") {
			name, value, _ := strings.Cut(prop, "=")
			props[name] = value
		}
		err := must.Err(registered(t, typ, spi.Host{}, props))
		if err == nil || !strings.HasPrefix(err.Error(), "shardkey: key generator "+typ+": ") ||
			errors.As(err, new(*spi.PropError)) != (want == "property") || errors.Is(err, spi.ErrTimeOverflow) != (want == "overflow") {
			t.Errorf("%v\nhave: %v\nwant: an error of kind %s", props, err, want)
		}
	}
}

func TestProperties_assigner(t *testing.T) {
	host := spi.Host{WorkerIDAssigner: func(name string) (spi.WorkerIDAssigner, error) {
		if name != "cluster" {
			return nil, errors.New("no such assigner")
		}
		return givenID(77), nil
	}}
	g := must.Get(registered(t, "SNOWFLAKE", host, map[string]any{"worker-id-assigner": "cluster"}))(t)
	mustKeys(t, g, 1)
	must.Equal(t, *g.Health().WorkerID, 77, "worker ID")
	for _, props := range []map[string]any{{"worker-id-assigner": "other"}, {"worker-id-assigner": "cluster", "worker-id": "1"}} {
		must.Fail(t, must.Err(registered(t, "SNOWFLAKE", host, props)), props)
	}
}

// Processes that use the same worker ID are the most frequent cause of duplicate keys.
func TestHealth_unleasedWorkerID(t *testing.T) {
	assigner := spi.Host{WorkerIDAssigner: func(string) (spi.WorkerIDAssigner, error) { return newFakeStore(spi.SystemClock), nil }}
	for _, test := range []struct {
		props map[string]any
		want  string
	}{
		{nil, "no worker ID"},
		{map[string]any{"worker-id": "0"}, "worker-id 0"},
		{map[string]any{"worker-id": "123"}, "worker-id 123"},
		{map[string]any{"worker-id-assigner": "cluster"}, ""},
	} {
		have := must.Get(registered(t, "SNOWFLAKE", assigner, test.props))(t).Health().Warnings
		if test.want == "" && len(have) != 0 || test.want != "" && (len(have) != 1 || !strings.Contains(have[0], test.want)) {
			t.Errorf("%v\nhave: %q\nwant: a warning that contains %q", test.props, have, test.want)
		}
	}
}

// A rule opens as long as one key is left, with a warning in the last ten years.
func TestProperties_layoutThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := func() (*generator, error) {
			return registered(t, "SNOWFLAKE", spi.Host{WorkerIDAssigner: func(string) (spi.WorkerIDAssigner, error) { return newFakeStore(spi.SystemClock), nil }},
				map[string]any{"worker-id-assigner": "cluster", "epoch": stamp(time.Now()), "layout": "29-21-13", "tick": "1s"})
		}
		g := must.Get(open())(t)
		epoch, last := g.cfg.Epoch, g.clock.At(g.lastTick)
		reopen := func() error {
			_, err := registered(t, "SNOWFLAKE", spi.Host{WorkerIDAssigner: func(string) (spi.WorkerIDAssigner, error) { return givenID(5), nil }},
				map[string]any{"worker-id-assigner": "cluster", "epoch": stamp(epoch), "layout": "29-21-13", "tick": "1s"})
			return err
		}
		must.Equal(t, len(g.Health().Warnings), 0, "warnings, 17 years before the end")
		time.Sleep(time.Until(last.AddDate(-10, 0, 0)))
		must.Equal(t, len(g.Health().Warnings), 0, "warnings, 10 years before the end")
		time.Sleep(time.Second)
		must.Equal(t, len(g.Health().Warnings), 1, "warnings, in the last 10 years")
		time.Sleep(time.Until(last))
		must.Do(t, reopen(), "with one key left")
		mustKeys(t, g, 1)
		time.Sleep(time.Second)
		must.Is(t, reopen(), spi.ErrTimeOverflow, "with no key left")
	})
}

// listing is an assigner that lists one worker ID. mute is one that lists none.
type (
	mute    struct{ spi.WorkerIDAssigner }
	listing struct{ mute }
)

func (listing) ListWorkerIDs(context.Context) (spi.WorkerIDs, error) {
	return spi.WorkerIDs{Store: "here", Max: -1, List: []spi.WorkerID{{ID: 3, State: "held"}}}, nil
}

func TestListWorkerIDs_ofTheAssigner(t *testing.T) {
	for _, test := range []struct {
		cfg   config
		store string
		want  spi.WorkerID
	}{
		{config{WorkerID: 7}, "worker-id", spi.WorkerID{ID: 7, State: "fixed"}},
		{config{Assigner: listing{}}, "here", spi.WorkerID{ID: 3, State: "held"}},
	} {
		list, err := mustNew(t, test.cfg).ListWorkerIDs(t.Context())
		if err != nil || list.Store != test.store || list.Max != 1023 || !slices.Equal(list.List, []spi.WorkerID{test.want}) {
			t.Errorf("have: %+v, %v\nwant: %s, %+v", list, err, test.store, test.want)
		}
	}
	must.Is(t, must.Err(mustNew(t, config{Assigner: mute{}}).ListWorkerIDs(t.Context())), errors.ErrUnsupported)
}

func TestClockBack_policies(t *testing.T) {
	for _, tt := range []struct {
		policy string
		tol    time.Duration
		ring   int
		step   time.Duration
		slept  time.Duration
		ahead  time.Duration // of the key relative to the clock's
		fails  bool
		// In the error.
		tolerated string
	}{
		{policy: clockBackWait, step: 10 * ms, slept: 10 * ms},
		{policy: clockBackWait, step: 11 * ms, fails: true, tolerated: "10ms;"},
		{policy: clockBackWait, step: 1 * ms, slept: 1 * ms},
		{policy: clockBackWait, tol: -1, step: 1 * ms, fails: true, tolerated: "0s;"},
		{policy: clockBackWait, tol: time.Minute, step: 50 * time.Second, slept: 50 * time.Second},
		{policy: clockBackWait, step: 24 * time.Hour, fails: true, tolerated: "10ms;"},
		{policy: clockBackFail, step: 1 * ms, fails: true, tolerated: "0s;"},
		{policy: clockBackBorrow, step: 1 * ms, ahead: 1 * ms},
		{policy: clockBackBorrow, step: 24 * time.Hour, ahead: 24 * time.Hour},
		{policy: clockBackWait, ring: 200, step: 150 * ms},
		{policy: clockBackFail, ring: 200, step: 199 * ms},
		{policy: clockBackWait, ring: 200, step: 205 * ms, slept: 6 * ms},
		{policy: clockBackWait, ring: 200, step: 210 * ms, fails: true, tolerated: "10ms;"},
		{policy: clockBackFail, ring: 200, step: 200 * ms, fails: true, tolerated: "0s;"},
		{policy: clockBackBorrow, ring: 200, step: time.Hour, ahead: time.Hour},
	} {
		t.Run(fmt.Sprintf("%v ring %d step %v", tt.policy, tt.ring, tt.step), func(t *testing.T) {
			g, clock := fixed(t, config{ClockBack: tt.policy, Tolerance: tt.tol, RingSize: tt.ring})
			for range 300 { // use up the ring
				mustKeys(t, g, 3)
				clock.step(ms)
			}
			before := mustKeys(t, g, 1)[0]
			clock.step(-tt.step)
			start := clock.Now()
			key, err := g.Next(t.Context())
			if tt.fails {
				by := fmt.Sprintf("backwards by %v: ", tt.step)
				if h := g.Health(); !errors.Is(err, spi.ErrClockBack) || tt.ring == 0 && !strings.Contains(err.Error(), by) ||
					!strings.Contains(err.Error(), "tolerance "+tt.tolerated) || h.Errors["clock-back"] != 1 || *h.Clock.Steps != 1 || !errors.Is(h.LastError, spi.ErrClockBack) {
					t.Errorf("\nhave: %v, %+v\nwant: one clock-back error of %v, one step", err, h, tt.step)
				}
				clock.step(tt.step)
				mustKeys(t, g, 1) // the clock has caught up
				return
			}
			must.Do(t, err)
			must.Equal(t, clock.Now().Sub(start), tt.slept, "waited")
			if tt.ring < 2 && key <= before {
				t.Errorf("\nhave: %d after %d\nwant: ascending keys", key, before)
			}
			must.Equal(t, partsOf(t, g, key).Time.Sub(clock.Now()), tt.ahead, "the key is ahead of the clock by")
			if h := g.Health(); *h.Clock.Steps != 1 || h.Clock.Ahead < tt.ahead {
				t.Errorf("\nhave: %+v\nwant: one step of the clock, %v borrowed", h, tt.ahead)
			}
		})
	}
}

// The clock steps back again while a caller waits for it.
func TestClockBack_waitsUntilTheClockHasPassed(t *testing.T) {
	clock := &limpingClock{handClock: newHandClock(), limp: 5}
	g := mustNew(t, config{Clock: clock, WorkerIDSet: true})
	before := mustKeys(t, g, 1)[0]
	clock.step(-10 * ms)
	if after := mustKeys(t, g, 1)[0]; after <= before || clock.limp != 0 {
		t.Errorf("\nhave: %d after %d, %d limps left\nwant: an ascending key when the clock has passed", after, before, clock.limp)
	}
}

// The clock steps back twice behind the same tick.
func TestClockBack_countsEachStep(t *testing.T) {
	g, clock := fixed(t, config{})
	mustKeys(t, g, 1)
	for range 2 {
		clock.step(-5 * ms)
		mustKeys(t, g, 1)
	}
	must.Equal(t, *g.Health().Clock.Steps, 2, "steps of the clock")
}

// limpingClock steps back by 9 ms after each of its first sleeps.
type limpingClock struct {
	*handClock
	limp int
}

func (c *limpingClock) Sleep(ctx context.Context, d time.Duration) error {
	err := c.handClock.Sleep(ctx, d)
	if c.limp > 0 {
		c.limp--
		c.step(-9 * ms)
	}
	return err
}

// While keys are ahead of the clock, they advance at the clock's rate. The lead shrinks when the
// demand is lower.
func TestClockBack_borrowKeepsTheClocksRate(t *testing.T) {
	g, clock := fixed(t, config{ClockBack: clockBackBorrow})
	mustKeys(t, g, 1)
	clock.step(-time.Second)
	must.Equal(t, len(g.Health().Warnings), 1, "warnings with the usual lead: that the worker ID isn't leased")
	start := clock.Now()
	mustKeys(t, g, 100*4096)
	must.Equal(t, clock.Now().Sub(start), 100*ms, "100 ticks of keys")
	for range 500 {
		clock.step(ms)
		mustKeys(t, g, 1)
	}
	// The hundred ticks were full, so the first of these keys began another.
	must.Equal(t, g.Health().Clock.Ahead, 501*ms, "borrowed")
	clock.step(time.Second)
	mustKeys(t, g, 1)
	must.Equal(t, g.Health().Clock.Ahead, 0, "borrowed after the step")
	// After the clock has passed the last key, a full tick waits for the clock again.
	start = clock.Now()
	mustKeys(t, g, 2*4096)
	must.Equal(t, clock.Now().Sub(start), 2*ms, "two ticks of keys")
}

// A new process has a worker ID without a lease. Its ring doesn't use ticks from before its
// start, which an earlier process may have used.
func TestRing_doesNotGoBackBeforeItsProcess(t *testing.T) {
	for name, cfg := range map[string]config{"worker-id": {WorkerID: 3}, "STATIC": {Assigner: givenID(3)}} {
		t.Run(name, func(t *testing.T) {
			cfg.RingSize, cfg.ClockBack, cfg.MaxVibrationOffset = 200, clockBackFail, -1
			seen, began := map[int64]bool{}, newHandClock()
			cfg.Clock = began
			before := mustNew(t, cfg)
			for range 100 {
				must.Do(t, takeModel(before, 3, seen))
				began.step(ms)
			}
			clock := newHandClock() // of another process, so it shares no state
			clock.step(100 * ms)
			cfg.Clock = clock
			g := mustNew(t, cfg)
			for range 20 {
				if err := takeModel(g, 3, seen); err != nil && !errors.Is(err, spi.ErrClockBack) {
					t.Fatal(err)
				}
				clock.step(-5 * ms)
			}
		})
	}
}
