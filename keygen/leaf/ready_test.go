package leaf

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/spi"
)

func TestReady_fetchesForTheNextKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, store := newFake(t, 2, config{})
		store.set(func(s *fakeStore) { s.fail = errAway })
		if err := g.Ready(t.Context()); !errors.Is(err, spi.ErrStore) {
			t.Errorf("store away\nhave: %v\nwant: its error", err)
		}
		store.set(func(s *fakeStore) { s.fail = nil })
		for range 3 {
			if err := g.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(store.sizes()); n != 1 {
			t.Errorf("segments claimed\nhave: %d\nwant: 1", n)
		}
		if h := g.Health(); h.Issued != 0 || *h.Waits != 0 || *h.SegmentLeft != 2 {
			t.Errorf("have: %+v\nwant: two numbers left, none issued", h)
		}
		if first := mustReserve(t, g, 1); first != 1 {
			t.Errorf("first number\nhave: %d\nwant: 1", first)
		}
		synctest.Wait()
		store.set(func(s *fakeStore) { s.fail = errAway })
		if err := g.Ready(t.Context()); err != nil {
			t.Errorf("store away, numbers in memory\nhave: %v\nwant: ready", err)
		}
	})
}

func TestReady_endsWithItsContextAndTheGenerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, store := newFake(t, 2, config{})
		store.set(func(s *fakeStore) { s.delay = time.Hour })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("have: %v\nwant: the context's error", err)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		if err := g.Ready(t.Context()); !errors.Is(err, spi.ErrClosed) {
			t.Errorf("have: %v\nwant: spi.ErrClosed", err)
		}
	})
}
