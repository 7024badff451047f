package ticket

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
		g, servers := newFake(t, config{Batch: 2}, 1)
		servers[0].fail = storeError("fake", "away", nil, nil)
		if err := g.Ready(t.Context()); !errors.Is(err, spi.ErrStore) {
			t.Errorf("server away\nhave: %v\nwant: its error", err)
		}
		servers[0].fail = nil
		for range 3 {
			if err := g.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if h := g.Health(); servers[0].fetches != 1 || h.Issued != 0 || *h.Waits != 0 || *h.SegmentLeft != 2 {
			t.Errorf("have: %d fetches, %+v\nwant: one, and two numbers left", servers[0].fetches, h)
		}
		if keys := mustKeys(t, g, 2); keys[0] != 1 || keys[1] != 2 || servers[0].fetches != 1 {
			t.Errorf("have: %d, %d fetches\nwant: 1 and 2, which are in memory", keys, servers[0].fetches)
		}
	})
}

func TestReady_endsWithItsContextAndTheGenerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, servers := newFake(t, config{}, 1)
		servers[0].delay = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("have: %v\nwant: the context's error", err)
		}
		if len(g.queue) != 0 {
			t.Errorf("have: %d in the queue\nwant: none", len(g.queue))
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		if err := g.Ready(t.Context()); !errors.Is(err, spi.ErrClosed) {
			t.Errorf("have: %v\nwant: spi.ErrClosed", err)
		}
	})
}
