package snowflake

import (
	"context"
	"fmt"

	"github.com/shardkey/shardkey/spi"
)

// Ready returns nil if a key can be generated now, or within the tolerated wait for the clock. It
// generates no key. It acquires a worker ID if there is none, or if the clock is far behind the
// keys of the current one. It renews a lease that is at its limit. A renewal that failed earlier
// doesn't matter. Its errors are those of GenerateInt64Keys.
func (g *generator) Ready(ctx context.Context) error {
	if s := g.slot.Load(); s != nil {
		if _, v := g.probe(s, g.clock.Now()); v == taken {
			return nil
		}
	}
	err := g.join(ctx, &waiter{probe: true})
	if err == nil || ctx.Err() == nil {
		return err
	}
	// The assigner's error explains the wait, which ctx's error doesn't.
	if r, ok := g.cfg.Assigner.(spi.HealthReporter); ok {
		if cause := r.Health().Err; cause != nil {
			return fmt.Errorf("%w: %w", err, cause)
		}
	}
	return err
}

// serveProbe checks whether a key is available for a waiter. If it returns the zero outcome and the
// waiter isn't done, the lease was extended and the caller tries again.
func (g *generator) serveProbe(w *waiter, s *slot, now int64) (outcome, error) {
	need, v := g.probe(s, now)
	if v == behind {
		now, ns := g.clock.Read()
		if now < 0 {
			return outcome{}, g.timeError(g.sinceEpoch(ns))
		}
		if now+s.state.ahead.Load() < need && !g.borrows(s, need, now) {
			if o, err := g.waitOrReplace(s, need, now, ns); err != nil || o.ask != nil {
				return o, err
			}
		}
		// The next tick comes without any action. Check whether it may be used.
		need, v = g.probe(s, int64(s.state.top()>>g.seqBits))
	}
	switch v {
	case ended:
		return outcome{}, spi.ErrClosed
	case atLimit:
		return g.pastLimit(s, need, now)
	}
	g.finish(w, nil, 0)
	return outcome{}, nil
}

// probe returns the verdict of take for one key: taken, behind, atLimit or ended. If the clock's
// tick is full, it returns the verdict for the next tick.
func (g *generator) probe(s *slot, now int64) (need int64, v verdict) {
	for {
		_, need, v = g.take(s, request{now: now, n: 1, dry: true})
		if v != full {
			return need, v
		}
		now = need - s.state.ahead.Load()
	}
}
