package snowflake

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// lose is what a lease does that finds its record gone: it is over at once.
func (s *fakeStore) lose(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner[id].limit.Store(0)
	s.owner[id] = nil
	s.first = id + 1
}

// The keys of a tick may be finished; the next tick's are of another worker id,
// long before the old limit.
func TestLease_lostEndsWithTheTick(t *testing.T) {
	for name, cfg := range map[string]config{
		"word":      {},
		"ring":      {RingSize: 200},
		"js53":      {Layout: JS53},
		"js53 ring": {Layout: JS53, RingSize: 200},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newHandClock()
			store := newFakeStore(clock)
			cfg.Clock, cfg.Assigner = clock, store
			g := mustNew(t, cfg)
			mustKeys(t, g, 1)
			store.lose(0)
			clock.step(time.Millisecond) // a tick, and a small part of one of js53
			mustKeys(t, g, 1)
			if h := g.Health(); *h.WorkerID != 1 || *h.LeasesLost != 1 {
				t.Fatalf("have: worker %d, %d leases lost\nwant: worker 1, one lost", *h.WorkerID, *h.LeasesLost)
			}
			store.lose(1)
			store.first = 5000 // none free
			clock.step(time.Millisecond)
			_, err := g.Next(t.Context())
			var e *leaseError
			if !errors.As(err, &e) || !errors.Is(err, spi.ErrNoWorkerID) {
				t.Errorf("have: %v\nwant: a leaseError, spi.ErrNoWorkerID", err)
			}
		})
	}
}

// Keys that fill tick after tick, without a jump to the clock's, see it too.
func TestLease_lostEndsASaturatedTick(t *testing.T) {
	clock := newHandClock()
	store := newFakeStore(clock)
	g := mustNew(t, config{Clock: clock, Assigner: store, MaxVibrationOffset: -1})
	mustKeys(t, g, 4096)
	store.lose(0)
	if next := mustKeys(t, g, 1)[0]; next>>12&1023 != 1 {
		t.Errorf("worker of the next tick\nhave: %d\nwant: 1", next>>12&1023)
	}
}

func TestLeaseError_lostDoesNotSpeakOfTheLimit(t *testing.T) {
	err := &leaseError{WorkerID: 3, Limit: time.Now(), Err: spi.ErrLeaseLost}
	if text := err.Error(); strings.Contains(text, "reserved until") || !strings.Contains(text, "worker id 3") {
		t.Errorf("have: %s", text)
	}
}
