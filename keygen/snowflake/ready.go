package snowflake

import (
	"context"
	"fmt"

	"github.com/shardkey/shardkey/spi"
)

// Ready tells whether a key can be made now, within the time that the clock may be
// behind, and uses none. It takes a worker ID where there is none yet, or where the clock
// is far behind the keys of the one that there is, and renews one that is at its limit; a
// renewal that fails earlier is not its business. Its errors are those of GenerateInt64Keys.
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
	// What the wait was for, ctx's error does not say.
	if r, ok := g.cfg.Assigner.(spi.HealthReporter); ok {
		if cause := r.Health().Err; cause != nil {
			return fmt.Errorf("%w: %w", err, cause)
		}
	}
	return err
}

// serveProbe answers a waiter that wants to know whether there is a key. It is not
// done when the zero outcome is returned and the lease has become longer.
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
		// The next key comes by itself, if it may be made then.
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

// probe is what take would say to a request for one key: taken, behind, atLimit or
// ended. Where the clock's tick is full, it is what take will say in the next one.
func (g *generator) probe(s *slot, now int64) (need int64, v verdict) {
	for {
		_, need, v = g.take(s, request{now: now, n: 1, dry: true})
		if v != full {
			return need, v
		}
		now = need - s.state.ahead.Load()
	}
}
