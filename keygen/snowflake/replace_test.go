package snowflake

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// The clock was far ahead for one key and is right again: Health reports it until the next key,
// which is of another worker id and of the clock's time. The one before is given back.
func TestLease_clockThatWasFarAheadTakesAnotherWorkerID(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   config
		ahead time.Duration
	}{
		"wait":            {config{}, time.Hour},
		"wait, a year":    {config{}, 365 * 24 * time.Hour},
		"error":           {config{ClockBack: clockBackFail}, time.Hour},
		"ring":            {config{RingSize: 200}, time.Hour},
		"js53":            {config{Layout: JS53}, time.Hour},
		"borrow":          {config{ClockBack: clockBackBorrow}, 48 * time.Hour},
		"borrow, a ring":  {config{ClockBack: clockBackBorrow, RingSize: 200}, 48 * time.Hour},
		"wait, long tick": {config{Layout: Layout{TimeBits: 30, WorkerBits: 3, SequenceBits: 30, Tick: time.Minute}}, time.Hour},
	} {
		for _, asked := range []string{"Next", "Ready"} {
			t.Run(name+" "+asked, func(t *testing.T) {
				clock := newHandClock()
				store := newFakeStore(clock)
				c.cfg.Clock, c.cfg.Assigner, c.cfg.Logger = clock, store, slog.New(slog.DiscardHandler)
				g := mustNew(t, c.cfg)
				mustKeys(t, g, 3)
				right := clock.Now()
				clock.step(c.ahead)
				mustKeys(t, g, 3)
				for range c.cfg.RingSize { // a ring goes on at once in ticks of which it has used none
					clock.step(ms)
					mustKeys(t, g, 1)
				}
				clock.now = right.Add(ms)
				var back *clockBackError
				if err := g.Health().Err; !errors.As(err, &back) || back.Last.Before(right.Add(c.ahead-2*time.Minute)) || !errors.Is(err, spi.ErrClockBack) {
					t.Errorf("health\nhave: %v\nwant: a clockBackError until %v", err, right.Add(c.ahead))
				}
				if asked == "Ready" {
					if err := g.Ready(t.Context()); err != nil {
						t.Errorf("ready\nhave: %v\nwant: ready, with another worker id", err)
					}
				}
				key := mustKeys(t, g, 1)[0]
				h := g.Health()
				if parts, err := g.DecodeKey(key); err != nil || parts.WorkerID != 1 || parts.Time.Sub(right) > 2*time.Minute {
					t.Errorf("the next key\nhave: %+v, %v\nwant: one of worker id 1 and of about %v", parts, err, right)
				}
				if h.Err != nil || *h.ClockSteps != 1 && asked == "Next" || h.Issued != 7+int64(c.cfg.RingSize) || *h.LeasesLost != 0 {
					t.Errorf("health afterwards\nhave: %+v\nwant: no error", h)
				}
				if store.owner[0] != nil || store.reserved[0] < right.Add(c.ahead).UnixMilli() {
					t.Errorf("worker id 0\nhave: owner %v, free from %v\nwant: given back, free after its last key", store.owner[0], time.UnixMilli(store.reserved[0]))
				}
			})
		}
	}
}

// While no other worker id can be had, Next, Ready and Health return what happened and until
// when, and keys come with the first one that is free.
func TestLease_clockThatWasFarAheadWithoutAnotherWorkerID(t *testing.T) {
	clock := newHandClock()
	store := newFakeStore(clock)
	g := mustNew(t, config{Clock: clock, Assigner: store, Logger: slog.New(slog.DiscardHandler)})
	mustKeys(t, g, 1)
	clock.step(time.Hour)
	mustKeys(t, g, 1)
	until := clock.Now()
	clock.step(-time.Hour)
	store.first = 5000
	for range 2 {
		_, err := g.Next(t.Context())
		for what, err := range map[string]error{"next": err, "ready": g.Ready(t.Context()), "health": g.Health().Err} {
			var back *clockBackError
			if !errors.As(err, &back) || !back.Last.Equal(until) || what != "health" && !errors.Is(err, spi.ErrNoWorkerID) {
				t.Errorf("%s\nhave: %v\nwant: a clockBackError until %v", what, err, until)
			}
		}
	}
	store.first = 7
	mustKeys(t, g, 1)
	if h := g.Health(); *h.WorkerID != 7 || h.Err != nil {
		t.Errorf("have: %+v\nwant: worker id 7", h)
	}
}

// A clock that was half a minute ahead costs no worker id, and one that is configured cannot be
// replaced: both are reported.
func TestHealth_clockThatWasAhead(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   func(clock spi.Clock) config
		ahead time.Duration
	}{
		"leased": {func(clock spi.Clock) config { return config{Assigner: newFakeStore(clock)} }, 30 * time.Second},
		"fixed":  {func(spi.Clock) config { return config{WorkerID: 5} }, time.Hour},
		"STATIC": {func(spi.Clock) config { return config{Assigner: givenID(5)} }, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newHandClock()
			cfg := c.cfg(clock)
			cfg.Clock = clock
			g := mustNew(t, cfg)
			mustKeys(t, g, 1)
			worker := *g.Health().WorkerID
			clock.step(c.ahead)
			mustKeys(t, g, 1)
			clock.step(-c.ahead)
			_, err := g.Next(t.Context())
			h := g.Health()
			if !errors.Is(err, spi.ErrClockBack) || !errors.Is(h.Err, spi.ErrClockBack) || !errors.Is(g.Ready(t.Context()), spi.ErrClockBack) || *h.WorkerID != worker {
				t.Errorf("have: %v, %+v\nwant: spi.ErrClockBack, the same worker id", err, h)
			}
			clock.step(c.ahead)
			mustKeys(t, g, 1)
			if err := g.Health().Err; err != nil {
				t.Errorf("have: %v\nwant: none, the time has passed", err)
			}
		})
	}
}

// A lease that is lost after the clock was far ahead is followed by one at the clock's time.
func TestLease_lostAfterTheClockWasFarAhead(t *testing.T) {
	clock := newHandClock()
	store := newFakeStore(clock)
	g := mustNew(t, config{Clock: clock, Assigner: store, ClockBack: clockBackFail})
	mustKeys(t, g, 1)
	clock.step(time.Hour)
	mustKeys(t, g, 1)
	clock.step(-time.Hour)
	store.lose(0)
	if parts, err := g.DecodeKey(mustKeys(t, g, 1)[0]); err != nil || !parts.Time.Equal(clock.Now()) || parts.WorkerID != 1 {
		t.Errorf("have: %+v, %v\nwant: a key of %v", parts, err, clock.Now())
	}
}

// A worker id without a lease, in a new process: the ring does not go back to ticks before it,
// which the process before may have used.
func TestRing_doesNotGoBackBeforeItsProcess(t *testing.T) {
	for name, cfg := range map[string]config{"worker-id": {WorkerID: 3}, "STATIC": {Assigner: givenID(3)}} {
		t.Run(name, func(t *testing.T) {
			cfg.RingSize, cfg.ClockBack, cfg.MaxVibrationOffset = 200, clockBackFail, -1
			seen, began := map[int64]bool{}, newHandClock()
			cfg.Clock = began
			before := mustNew(t, cfg)
			for range 100 {
				if err := takeModel(before, 3, seen); err != nil {
					t.Fatal(err)
				}
				began.step(ms)
			}
			clock := newHandClock() // another process's: it shares nothing
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

// A lease may reach beyond the layout's time field; keys do not.
func TestLease_endsWithTheTimeField(t *testing.T) {
	clock := newHandClock()
	store := newFakeStore(clock)
	store.interval = 100 * 365 * 24 * time.Hour
	g := mustNew(t, config{Clock: clock, Assigner: store, MaxVibrationOffset: -1})
	mustKeys(t, g, 1)
	clock.now = g.clock.At(g.lastTick)
	last := mustKeys(t, g, 4096)[4095]
	var full *timeError
	if key, err := g.Next(t.Context()); !errors.As(err, &full) || !errors.Is(err, spi.ErrTimeOverflow) {
		t.Errorf("after %d, the last key\nhave: %d, %v\nwant: a timeError", last, key, err)
	}
}
