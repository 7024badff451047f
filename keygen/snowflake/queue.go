package snowflake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/keygen/internal/tick"
	"github.com/shardkey/shardkey/spi"
)

// Callers that cannot be served at once wait in a queue, in the order in which
// they came. The first waits for the clock, or asks for the worker id,
// on behalf of all; the others sleep on a channel. The caller that finds keys serves
// the queue in order, so that no caller starves when the layout is saturated, and
// a thousand callers cost one timer.

// waiter is a caller in the queue. Its fields belong to the generator's mu; its
// keys are the server's until done.
type waiter struct {
	next, prev *waiter
	rest       []int64 // still to be filled
	waited     bool    // it met a full tick: see request
	after      uint64  // position of its newest key
	probe      bool    // it wants no key, but to know whether there is one: see Ready
	done       bool
	err        error
	signal     chan struct{} // done, or first in the queue
	cancel     func()        // interrupts the first waiter's wait
	since      int64         // clock reading when the wait began
	slept      bool
}

type waitQueue struct{ first, last *waiter }

func (q *waitQueue) push(w *waiter) {
	if w.prev = q.last; q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
}

func (q *waitQueue) remove(w *waiter) {
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
}

// rotate puts the first waiter after the others, so that one that takes many ticks
// lets those through that take one.
func (q *waitQueue) rotate() {
	if w := q.first; w != q.last {
		q.remove(w)
		w.next, w.prev = nil, nil
		q.push(w)
		wake(q.first)
	}
}

// enqueue fills keys in the order of the queue.
func (g *generator) enqueue(ctx context.Context, keys []int64, waited bool) error {
	return g.join(ctx, &waiter{rest: keys, waited: waited})
}

// join waits in the queue until w is done.
func (g *generator) join(ctx context.Context, w *waiter) error {
	w.signal = make(chan struct{}, 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue.push(w)
	g.waiting.Add(1)
	for {
		todo, err := g.serveSafely()
		if err != nil {
			g.failAll(err)
		}
		if w.done {
			return w.err
		}
		first := g.queue.first == w
		g.mu.Unlock()
		err = g.await(ctx, w, first, todo)
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

// todo is what the first waiter has to do before it can be served.
type todo struct {
	nap time.Duration
	act func(context.Context) error // asks the lease's store
}

// await does what the first waiter has to do, or waits to be the first. mu is free.
func (g *generator) await(ctx context.Context, w *waiter, first bool, t todo) error {
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
		err = guard.Call("the worker-id assigner", func() error { return t.act(actx) })
	} else {
		err = g.cfg.Clock.Sleep(actx, min(t.nap, maxNap))
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return g.ended(ctx.Err())
	case actx.Err() != nil:
		return nil // served or closed in the meantime
	case err != nil && t.act != nil:
		g.mu.Lock()
		g.failAll(err)
		g.mu.Unlock()
	}
	return err
}

// maxNap bounds one sleep, so that a clock that jumps forward is noticed.
const maxNap = 100 * time.Millisecond

func (g *generator) ended(err error) error {
	return fmt.Errorf("shardkey: %s had to wait for keys: %w", g.typ(), err)
}

// begin notes that w has to wait.
func (g *generator) begin(w *waiter, ns int64) {
	if !w.slept && !w.probe {
		w.slept, w.since = true, ns
		g.figures.Waits = stats.Add(g.figures.Waits, 1)
	}
}

// finish takes the first waiter out of the queue, served or failed.
func (g *generator) finish(w *waiter, err error, ns int64) {
	if w.slept {
		g.figures.Waited += time.Duration(max(0, ns-w.since))
	}
	w.done, w.err = true, err
	g.out(w)
}

// leave takes w out of the queue because of err. mu is held.
func (g *generator) leave(w *waiter, err error) {
	w.done, w.err = true, err
	g.figures.Error(stats.KindOf(err), err, g.cfg.Clock.Now())
	g.out(w)
}

func (g *generator) out(w *waiter) {
	g.queue.remove(w)
	g.waiting.Add(-1)
	if w.cancel != nil {
		w.cancel()
	}
	wake(w)
	if g.queue.first != nil {
		wake(g.queue.first)
	}
}

func wake(w *waiter) {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// failAll fails every waiter with the same error. mu is held.
func (g *generator) failAll(err error) {
	for g.queue.first != nil {
		g.leave(g.queue.first, err)
	}
}

// serveSafely is serve, whose error is a panic of the lease's. mu is held.
func (g *generator) serveSafely() (t todo, err error) {
	defer guard.Recover(&err, "the worker id's lease")
	return g.serve(), nil
}

// serve gives keys to the waiters, in order, until the queue is empty or its first must
// wait. mu is held.
func (g *generator) serve() todo {
	for g.queue.first != nil {
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
// must be asked. The zero outcome: the queue is empty.
type outcome struct {
	nap  time.Duration
	ask  bool
	tick int64 // that the lease must reach
	back error // why another worker id is asked for: the clock is far behind the keys of this one
}

// serveAt serves the queue with one reading of the clock, and another one
// whenever a reservation is newer than that.
func (g *generator) serveAt(now, ns int64) (outcome, error) {
	if now < 0 {
		return outcome{}, g.timeError(ns)
	}
	s := g.slot.Load()
	if s == nil && g.cfg.Assigner == nil {
		var err error
		if s, err = g.takeSlot(now); err != nil {
			return outcome{}, err
		}
	}
	if s == nil {
		return outcome{ask: true}, nil
	}
	for w := g.queue.first; w != nil; w = g.queue.first {
		if w.probe {
			if o, err := g.serveProbe(w, s, now); o != (outcome{}) || err != nil {
				return o, err
			}
			continue
		}
		n := min(len(w.rest), int(g.seqMask)+1)
		start, need, v := g.take(s, request{now: now, n: uint64(n), waited: w.waited, after: w.after})
		switch v {
		case taken:
			g.fill(s, w.rest[:n], start)
			w.after = start + uint64(n) - 1
			g.figures.stepping = false
			if w.rest = w.rest[n:]; len(w.rest) == 0 {
				g.finish(w, nil, ns)
			} else {
				g.queue.rotate()
			}
		case full:
			w.waited = true
			g.crossed(s.state, now)
			g.begin(w, ns)
			need -= s.state.ahead.Load()
			return outcome{nap: time.Duration(need*g.clock.Length()-ns) + g.crowdNap()}, nil
		case behind:
			// Another goroutine may have read the clock after this one did:
			// only a reading made after the word was loaded shows a step.
			if now, ns = g.clock.Read(); now+s.state.ahead.Load() >= need {
				continue
			} else if now < 0 {
				return outcome{}, g.timeError(ns)
			}
			o, err := g.steppedBack(s, need, now, ns)
			if err != nil || o.ask {
				return o, err
			}
			if o.nap > 0 {
				g.begin(w, ns)
				return o, nil
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

// crowdNap is extra sleep beyond the next tick when many callers wait: waking a
// crowd each millisecond costs more than the keys do. The ticks that
// pass are made up for; where they would not be, it is zero.
func (g *generator) crowdNap() time.Duration {
	if g.catchUp == 0 {
		return 0
	}
	return min(time.Duration(g.waiting.Load()/64)*time.Millisecond, catchUpTime/8)
}

// todo turns an outcome into the work of the first waiter.
func (g *generator) todo(o outcome, now, ns int64) todo {
	if !o.ask {
		return todo{nap: max(o.nap, time.Nanosecond)}
	}
	s := g.slot.Load()
	g.begin(g.queue.first, ns)
	return todo{act: func(ctx context.Context) error {
		next, err := g.ask(ctx, s, o, now)
		if err != nil {
			return err
		}
		return g.change(s, next)
	}}
}

// ask takes a first slot or another one, or has s reach the outcome's tick.
func (g *generator) ask(ctx context.Context, s *slot, o outcome, now int64) (*slot, error) {
	switch {
	case s == nil:
		return g.leasedSlot(ctx, now, 0)
	case o.back != nil:
		return g.replace(ctx, s, now, o.back)
	}
	return g.renew(ctx, s, o.tick, now)
}

// change makes next the slot in place of s, unless that is not the slot any
// longer: the generator has been closed.
func (g *generator) change(s, next *slot) error {
	if next == s {
		return nil
	}
	g.mu.Lock()
	ours := !g.closed && g.slot.Load() == s
	if ours {
		g.retire(s)
		g.slot.Store(next)
	}
	g.mu.Unlock()
	if ours {
		g.cfg.Logger.Info("shardkey: keys are made with a leased worker id", "worker_id", next.id)
		if s != nil {
			_ = g.release(s) // one that was lost is no longer there, and of others the assigner logs it
		}
		return nil
	}
	err := g.release(next)
	if g.slot.Load() != nil {
		return nil // try the other slot
	}
	return errors.Join(spi.ErrClosed, err)
}
