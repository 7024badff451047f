package snowflake

import (
	"context"
	"errors"
	"time"

	"github.com/shardkey/shardkey/keygen/internal/tick"
	"github.com/shardkey/shardkey/spi"
)

// serve gives keys to the line, in order, until it is empty or its first must
// wait. mu is held.
func (g *Generator) serve() todo {
	for g.line.first != nil {
		if g.closed {
			g.failAll(spi.ErrClosed)
			break
		}
		now, ns := g.clock.Read()
		t, err := g.serveAt(now, ns)
		if err != nil {
			g.failAll(err)
		} else if t != (outcome{}) {
			return g.todo(t, now, ns)
		}
	}
	return todo{}
}

// outcome says why serveAt stopped: time must pass (nap), or the lease's store
// must be asked. The zero outcome: the line is empty.
type outcome struct {
	nap  time.Duration
	ask  bool
	tick int64 // that the lease must reach
}

// serveAt serves the line with one reading of the clock, and another one
// whenever a reservation is newer than that.
func (g *Generator) serveAt(now, ns int64) (outcome, error) {
	if now < 0 {
		return outcome{}, g.timeError(ns)
	}
	s := g.seat.Load()
	if s == nil && g.cfg.Assigner == nil {
		var err error
		if s, err = g.sit(now); err != nil {
			return outcome{}, err
		}
	}
	if s == nil {
		return outcome{ask: true}, nil
	}
	for w := g.line.first; w != nil; w = g.line.first {
		n := min(uint64(len(w.rest)), g.seqMask+1)
		start, need, v := g.take(s, request{now: now, n: n, waited: w.waited, after: w.after})
		switch v {
		case taken:
			g.fill(s, w.rest[:n], start)
			g.stats.stepping = false
			w.after = start + n - 1
			if w.rest = w.rest[n:]; len(w.rest) == 0 {
				g.finish(w, nil, ns)
			} else {
				g.line.rotate()
			}
		case full:
			w.waited = true
			g.crossed(s.state, now)
			g.begin(w, ns)
			need -= s.state.ahead.Load()
			return outcome{nap: time.Duration(need*g.clock.Length()-ns) + g.crowdNap()}, nil
		case behind:
			// Another goroutine may have read the clock after this one did:
			// only a reading made after the word was loaded tells a step.
			if now, ns = g.clock.Read(); now >= need {
				continue
			} else if now < 0 {
				return outcome{}, g.timeError(ns)
			}
			nap, err := g.steppedBack(s, need, now, ns)
			if err != nil {
				return outcome{}, err
			}
			if nap > 0 {
				g.begin(w, ns)
				return outcome{nap: nap}, nil
			}
		case atLimit:
			if need > g.lastTick {
				return outcome{}, g.timeError(tick.SatSub(g.clock.At(need).UnixNano(), g.clock.Epoch()))
			}
			if !g.extend(s) {
				return outcome{ask: true, tick: need}, nil
			}
		case ended:
			return outcome{}, spi.ErrClosed
		}
	}
	return outcome{}, nil
}

// crowdNap is how much longer than to the next tick the first in line sleeps:
// waking a crowd each millisecond costs more than the keys do. The ticks that
// pass meanwhile are made up for, so it is nothing where they would not be.
func (g *Generator) crowdNap() time.Duration {
	if g.catchUp == 0 {
		return 0
	}
	return min(time.Duration(g.waiting.Load()/64)*time.Millisecond, catchUpTime/8)
}

// todo turns an outcome into the work of the first in line.
func (g *Generator) todo(o outcome, now, ns int64) todo {
	if !o.ask {
		return todo{nap: max(o.nap, time.Nanosecond)}
	}
	s := g.seat.Load()
	g.begin(g.line.first, ns)
	return todo{act: func(ctx context.Context) error {
		next, err := g.ask(ctx, s, o.tick, now)
		if err != nil {
			return err
		}
		return g.change(s, next)
	}}
}

// ask takes a first seat, or has s reach tick.
func (g *Generator) ask(ctx context.Context, s *seat, tick, now int64) (*seat, error) {
	if s == nil {
		return g.leasedSeat(ctx, now, 0)
	}
	return g.renew(ctx, s, tick, now)
}

// change makes next the seat in place of s, unless that is not the seat any
// more: the generator has been closed meanwhile.
func (g *Generator) change(s, next *seat) error {
	if next == s {
		return nil
	}
	g.mu.Lock()
	ours := !g.closed && g.seat.Load() == s
	if ours {
		g.retire(s)
		g.seat.Store(next)
	}
	g.mu.Unlock()
	if ours {
		return nil
	}
	err := g.release(next)
	if g.seat.Load() != nil {
		return nil // try the other seat
	}
	return errors.Join(spi.ErrClosed, err)
}
