package snowflake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/keygen/internal/tick"
	"github.com/shardkey/shardkey/spi"
)

// Callers that cannot be served at once stand in line, in the order in which
// they came. The first in line waits for the clock, or asks for the worker id,
// on behalf of all; the others sleep on a channel. Whoever finds keys serves
// the line in order, so that nobody starves when the layout is saturated, and
// a thousand callers cost one timer.

// waiter is a caller in line. Its fields belong to the generator's mu; its
// keys are the server's until done.
type waiter struct {
	next, prev *waiter
	rest       []int64 // still to be filled
	waited     bool    // it met a full tick: see request
	after      uint64  // position of its newest key
	done       bool
	err        error
	signal     chan struct{} // done, or first in line
	cancel     func()        // interrupts the first in line's wait
	since      int64         // clock reading when the wait began
	slept      bool
}

type line struct{ first, last *waiter }

func (l *line) push(w *waiter) {
	if w.prev = l.last; l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
}

func (l *line) remove(w *waiter) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
}

// rotate puts the first in line behind the others: one that takes many ticks
// lets those in between that take one.
func (l *line) rotate() {
	if w := l.first; w != l.last {
		l.remove(w)
		w.next, w.prev = nil, nil
		l.push(w)
		wake(l.first)
	}
}

// queue fills keys in line.
func (g *Generator) queue(ctx context.Context, keys []int64, waited bool) error {
	w := &waiter{rest: keys, waited: waited, signal: make(chan struct{}, 1)}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.line.push(w)
	g.waiting.Add(1)
	for {
		todo := g.serve()
		if w.done {
			return w.err
		}
		first := g.line.first == w
		g.mu.Unlock()
		err := g.await(ctx, w, first, todo)
		g.mu.Lock()
		if w.done {
			return w.err
		}
		if err != nil {
			g.leave(w, err)
			return err
		}
	}
}

// todo is what the first in line has to do before it can be served.
type todo struct {
	nap time.Duration
	act func(context.Context) error // asks the lease's store
}

// await does what the first in line has to do, or waits to be it. mu is free.
func (g *Generator) await(ctx context.Context, w *waiter, first bool, t todo) error {
	if err := ctx.Err(); err != nil {
		return g.ended(err)
	}
	if !first {
		select {
		case <-w.signal:
			return nil
		case <-ctx.Done():
			return g.ended(ctx.Err())
		}
	}
	actx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.mu.Lock()
	w.cancel = cancel
	done := w.done
	g.mu.Unlock()
	if done {
		return nil
	}
	var err error
	if t.act != nil {
		err = t.act(actx)
	} else {
		err = g.cfg.Clock.Sleep(actx, min(t.nap, maxNap))
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return g.ended(ctx.Err())
	case actx.Err() != nil:
		return nil // served or closed meanwhile
	case err != nil && t.act != nil:
		g.mu.Lock()
		g.failAll(err)
		g.mu.Unlock()
	}
	return err
}

// maxNap bounds one sleep, so that a clock that jumps forward is noticed.
const maxNap = 100 * time.Millisecond

func (g *Generator) ended(err error) error {
	return fmt.Errorf("shardkey: %s had to wait for keys: %w", g.typ(), err)
}

// begin notes that w has to wait.
func (g *Generator) begin(w *waiter, ns int64) {
	if !w.slept {
		w.slept, w.since = true, ns
		g.stats.waits++
	}
}

// finish takes the first in line out of it, served or failed.
func (g *Generator) finish(w *waiter, err error, ns int64) {
	if w.slept {
		g.stats.waited += max(0, ns-w.since)
	}
	w.done, w.err = true, err
	g.out(w)
}

// leave takes w out of line because of err. mu is held.
func (g *Generator) leave(w *waiter, err error) {
	w.done, w.err = true, err
	g.stats.failed(err, g.cfg.Clock)
	g.out(w)
}

func (g *Generator) out(w *waiter) {
	g.line.remove(w)
	g.waiting.Add(-1)
	if w.cancel != nil {
		w.cancel()
	}
	wake(w)
	if g.line.first != nil {
		wake(g.line.first)
	}
}

func wake(w *waiter) {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// failAll gives everybody in line the same error. mu is held.
func (g *Generator) failAll(err error) {
	for g.line.first != nil {
		g.leave(g.line.first, err)
	}
}

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
