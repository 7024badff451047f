package snowflake

import (
	"context"
	"fmt"

	"github.com/shardkey/shardkey/keygen/internal/tick"
	"github.com/shardkey/shardkey/spi"
)

// Ready tells whether a key can be made now, within the time that the clock may be
// behind, and uses none. It takes a worker id where there is none yet, or where the clock
// is far behind the keys of the one that there is, and renews one that is at its limit; a renewal that fails earlier is not its business. Its
// errors are those of GenerateInt64Keys.
func (g *generator) Ready(ctx context.Context) error {
	if s := g.slot.Load(); s != nil {
		if now := g.clock.Now(); now >= 0 {
			if _, v := g.probe(s, now); v == taken {
				return nil
			}
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
			return outcome{}, g.timeError(ns)
		}
		if now+s.state.ahead.Load() < need && !g.borrows(s, need, now) {
			if o, err := g.waitOrReplace(s, need, now, ns); err != nil || o.ask {
				return o, err
			}
		}
		// The next key comes by itself, if it may be made then.
		need, v = g.probeLimit(s, s.state.top())
	}
	switch {
	case v == ended:
		return outcome{}, spi.ErrClosed
	case v != atLimit:
		g.finish(w, nil, 0)
	case need > g.lastTick:
		return outcome{}, g.timeError(tick.SatSub(g.clock.At(need).UnixNano(), g.clock.Epoch()))
	case !g.extend(s):
		return outcome{ask: true, tick: need}, nil
	}
	return outcome{}, nil
}

// probe is what take would say to a request for one key: taken, behind, atLimit or
// ended. A full tick is none to speak of where the next one comes by itself. now is
// not negative.
func (g *generator) probe(s *slot, now int64) (need int64, v verdict) {
	st := s.state
	if len(st.ring) != 0 {
		return g.probeRing(s, now)
	}
	w := st.word.Load()
	last := int64(w-1) >> g.seqBits
	switch {
	case w&closedBit != 0:
		return now, ended
	case w != 0 && last > now+st.ahead.Load():
		return last, behind
	}
	return g.probeLimit(s, max(w, uint64(now)<<g.seqBits))
}

func (g *generator) probeRing(s *slot, now int64) (need int64, v verdict) {
	st := s.state
	n, high, latest := int64(len(st.ring)), st.high.Load(), now+st.ahead.Load()
	tick := now
	if high > tick && high <= latest {
		tick = high
	}
	tick = max(tick, min(st.floor.Load(), latest))
	for {
		w := st.ring[tick%n].Load()
		first, end := uint64(tick)<<g.seqBits, uint64(tick+1)<<g.seqBits
		switch {
		case w&closedBit != 0:
			return now, ended
		case w > end:
			return max(high-n+1, st.floor.Load(), latest+1), behind
		case w < end:
			return g.probeLimit(s, max(w, first))
		}
		tick++
	}
}

func (g *generator) probeLimit(s *slot, start uint64) (need int64, v verdict) {
	need = int64(start >> g.seqBits)
	if start >= s.limit.Load() || s.over() {
		return need, atLimit
	}
	return need, taken
}
