package snowflake

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestShared_stateOutlivesItsGenerators(t *testing.T) {
	for _, ring := range []int{1, 200} {
		clock := newHandClock()
		cfg := config{Clock: clock, WorkerID: 5, RingSize: ring}
		seen := map[int64]bool{}
		for range 10 {
			g := mustNew(t, cfg)
			if err := takeModel(g, 3, seen); err != nil {
				t.Fatalf("ring %d: %v", ring, err)
			}
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A generator with another ring takes the worker id over when it is free, and
// begins after all that was made.
func TestShared_ringSizesDiffer(t *testing.T) {
	clock := newHandClock()
	plain := mustNew(t, config{Clock: clock, WorkerID: 5})
	seen := map[int64]bool{}
	if err := takeModel(plain, 3, seen); err != nil {
		t.Fatal(err)
	}
	ring := mustNew(t, config{Clock: clock, WorkerID: 5, RingSize: 200})
	if _, err := ring.Next(context.Background()); err == nil || !strings.Contains(err.Error(), "ring size 1, and this one has 200") {
		t.Fatalf("\nhave: %v\nwant: an error that names both ring sizes", err)
	}
	if err := plain.Close(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := takeModel(ring, 3, seen); err != nil {
			t.Fatal(err)
		}
	}
	clock.step(-1 * ms) // within the ring, but not of its own past
	if _, err := ring.Next(context.Background()); err != nil {
		t.Fatal(err) // waited for
	}
}

func TestShared_identitiesDiffer(t *testing.T) {
	clock := newHandClock()
	first := mustNew(t, config{Clock: clock, WorkerID: 5})
	mustKeys(t, first, 100)
	for _, cfg := range []config{
		{Clock: clock, WorkerID: 6},
		{Clock: newHandClock(), WorkerID: 5},
		{Clock: clock, WorkerID: 5, Layout: JS53},
		{Clock: clock, WorkerID: 5, Epoch: DefaultEpoch.Add(time.Hour)},
		{Clock: uncomparableClock{clock: clock}, WorkerID: 5},
	} {
		g := mustNew(t, cfg)
		if parts, err := g.DecodeKey(mustKeys(t, g, 1)[0]); err != nil || parts.Sequence != 0 {
			t.Errorf("%+v\nhave: %+v %v\nwant: sequence 0, a state of its own", cfg, parts, err)
		}
	}
}

// uncomparableClock cannot be a map's key.
type uncomparableClock struct {
	clock *handClock
	_     []int
}

func (c uncomparableClock) Now() time.Time { return c.clock.Now() }

func (c uncomparableClock) Sleep(ctx context.Context, d time.Duration) error {
	return c.clock.Sleep(ctx, d)
}
