package snowflake

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

// Callers that can't be served at once wait in a queue, in the order of their arrival. The first
// caller waits for the clock, or acquires the worker ID, on behalf of all. The others wait on a
// channel. The caller that gets keys also serves the queue in order. No caller starves while the
// layout is saturated, and a thousand callers need one timer.

// waiter is a caller in the queue. The generator's mu guards its fields. Until done, only the
// serving goroutine accesses its keys.
type waiter struct {
	place  *list.Element
	rest   []int64 // keys that aren't set yet
	column *column // nil for a probe
	waited bool    // it found a full tick; see request
	after  uint64  // position of its newest key
	probe  bool    // it only checks whether a key is available; see Ready
	done   bool
	err    error
	signal chan struct{} // it is done, or first in the queue
	cancel func()        // interrupts the wait of the first waiter
	since  int64         // clock reading at the beginning of the wait
	slept  bool
}

// first returns the first waiter, or nil. mu is held.
func (g *generator) first() *waiter {
	if front := g.queue.Front(); front != nil {
		return front.Value.(*waiter)
	}
	return nil
}

// enter appends w to the queue. mu is held.
func (g *generator) enter(w *waiter) {
	w.signal = make(chan struct{}, 1)
	w.place = g.queue.PushBack(w)
	g.waiting.Add(1)
}

// join waits in the queue until w is done.
func (g *generator) join(ctx context.Context, w *waiter) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.enter(w)
	for {
		next, err := g.serveSafely()
		if err != nil {
			g.failAll(err)
		}
		if w.done {
			return w.err
		}
		first := g.first() == w
		if first {
			g.pending = next.ask != nil
		}
		g.mu.Unlock()
		err = g.await(ctx, w, first, next)
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

// await does the work of the first waiter, or waits until w is the first. mu isn't held.
func (g *generator) await(ctx context.Context, w *waiter, first bool, o outcome) error {
	if err := ctx.Err(); err != nil {
		return g.ended(err, nil)
	}
	if !first {
		select {
		case <-w.signal:
			return nil
		case <-ctx.Done():
			return g.ended(ctx.Err(), nil)
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
	if o.ask != nil {
		err = panics.Call("the worker-ID assigner", func() error { return o.ask(actx) })
	} else {
		err = g.cfg.Clock.Sleep(actx, min(o.nap, maxNap))
	}
	switch {
	case ctx.Err() != nil && err != nil && o.ask == nil:
		return g.ended(ctx.Err(), nil)
	case ctx.Err() != nil && err != nil:
		return g.ended(ctx.Err(), err)
	case actx.Err() != nil:
		return nil // served or closed in the meantime
	case err != nil && o.ask != nil:
		g.mu.Lock()
		g.failAll(err)
		g.mu.Unlock()
	}
	return err
}

// maxNap limits one sleep, so that the generator notices a clock that jumps forwards.
const maxNap = 100 * time.Millisecond

// ended returns the error of a caller whose context ended with err. cause is the error of its call
// to the store of worker IDs, or nil. If the caller gave up itself, that the store had no answer
// shows nothing.
func (g *generator) ended(err, cause error) error {
	gaveUp := errors.Is(err, context.Canceled)
	if cause == nil || gaveUp && errors.Is(cause, err) {
		cause = g.trouble()
	}
	ended := fmt.Errorf("shardkey: %s: waiting for keys: %w", g.typ(), err)
	if cause == nil || gaveUp && (errors.Is(cause, err) || errors.Is(cause, errNoAnswer)) {
		return ended
	}
	return fmt.Errorf("%w: %w", ended, cause)
}

// trouble returns why the callers wait, if they wait for the store of worker IDs.
func (g *generator) trouble() error {
	g.mu.Lock()
	pending := g.pending
	g.mu.Unlock()
	if !pending {
		return nil
	}
	s, cause := g.slot.Load(), errNoAnswer
	var source any = g.cfg.Assigner
	if s != nil {
		source = s.lease
	}
	if r, ok := source.(spi.HealthReporter); ok {
		cause = cmp.Or(r.Health().Err, cause)
	}
	if s != nil {
		if _, v := g.probe(s, g.clock.Now()); v == atLimit {
			return g.leaseError(s, cause)
		}
	}
	return cause
}

// errNoAnswer is the reason for a wait if the store hasn't answered a first request yet.
var errNoAnswer = error(&spi.StoreError{Store: "worker IDs", Detail: "no answer yet"})

func (g *generator) begin(w *waiter, ns int64) {
	if !w.slept && !w.probe {
		w.slept, w.since = true, ns
		g.figures.Waits = stats.Add(g.figures.Waits, 1)
	}
}

// finish removes the first waiter from the queue. Its keys are set, or it failed with err.
func (g *generator) finish(w *waiter, err error, ns int64) {
	if w.slept {
		g.figures.Waited += time.Duration(max(0, ns-w.since))
	}
	w.done, w.err = true, err
	g.out(w)
}

// leave removes w from the queue with err. mu is held.
func (g *generator) leave(w *waiter, err error) {
	w.done, w.err = true, err
	g.figures.Error(stats.KindOf(err), err, g.cfg.Clock.Now())
	g.out(w)
}

func (g *generator) out(w *waiter) {
	g.queue.Remove(w.place)
	g.waiting.Add(-1)
	g.pending = g.pending && g.queue.Len() > 0
	if w.cancel != nil {
		w.cancel()
	}
	wake(w)
	wake(g.first())
}

func wake(w *waiter) {
	if w == nil {
		return
	}
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// failAll fails all waiters with the same error. mu is held.
func (g *generator) failAll(err error) {
	for w := g.first(); w != nil; w = g.first() {
		g.leave(w, err)
	}
}

// serveSafely calls serve, and returns a panic of the lease as an error. mu is held.
func (g *generator) serveSafely() (o outcome, err error) {
	defer panics.Recover(&err, "the worker ID's lease")
	return g.serve(), nil
}

// serve sets the keys of the waiters, in order, until the queue is empty or its first waiter has to
// wait. mu is held.
func (g *generator) serve() outcome {
	for g.queue.Len() > 0 {
		if g.closed {
			g.failAll(spi.ErrClosed)
			return outcome{}
		}
		now, ns := g.clock.Read()
		o, err := g.serveAt(now, ns)
		if err != nil {
			g.failAll(err)
		} else if o.waits() {
			g.begin(g.first(), ns)
			return o
		}
	}
	return outcome{}
}

// outcome is the next step of the first waiter: to sleep, or to call the lease's store. It is zero
// if there is nothing to wait for.
type outcome struct {
	nap time.Duration
	ask func(context.Context) error
}

func (o outcome) waits() bool { return o.nap > 0 || o.ask != nil }

// inBackground returns the outcome of replacing s by the slot that ask returns.
func (g *generator) inBackground(s *workerSlot, ask func(context.Context) (*workerSlot, error)) outcome {
	return outcome{ask: func(ctx context.Context) error {
		next, err := ask(ctx)
		if err != nil {
			return err
		}
		return g.change(s, next)
	}}
}

// serveAt serves the queue with one reading of the clock. It reads the clock again if another
// goroutine's reservation is newer than the reading.
func (g *generator) serveAt(now, ns int64) (outcome, error) {
	if now < 0 {
		return outcome{}, g.timeError(g.sinceEpoch(ns))
	}
	s := g.slot.Load()
	if s == nil && g.cfg.Assigner == nil {
		var err error
		if s, err = g.takeSlot(now); err != nil {
			return outcome{}, err
		}
	}
	if s == nil {
		return g.inBackground(nil, func(ctx context.Context) (*workerSlot, error) { return g.leasedSlot(ctx, 0) }), nil
	}
	for w := g.first(); w != nil; w = g.first() {
		var o outcome
		var err error
		if w.probe {
			o, err = g.serveProbe(w, s, now)
		} else {
			o, err = g.serveKeys(w, s, &now, &ns)
		}
		if o.waits() || err != nil {
			return o, err
		}
	}
	return outcome{}, nil
}

// serveKeys sets keys of a waiter, at most those of one tick. If it returns the zero outcome and the
// waiter isn't done, the caller tries again.
func (g *generator) serveKeys(w *waiter, s *workerSlot, now, ns *int64) (outcome, error) {
	n := min(len(w.rest), int(g.seqMask)+1)
	start, need, v := g.take(s, request{now: *now, n: uint64(n), column: w.column, waited: w.waited, after: w.after})
	switch v {
	case taken:
		g.handOut(w, s, n, start, *ns)
	case full:
		w.waited = true
		g.crossed(s.state, *now)
		need -= s.state.ahead.Load()
		return outcome{nap: max(time.Duration(need*g.clock.Length()-*ns)+g.crowdDelay(), 1)}, nil
	case behind:
		// Another goroutine may have read the clock later than this one. Only a reading after the word
		// was loaded shows a clock step.
		*now, *ns = g.clock.Read()
		switch {
		case *now+s.state.ahead.Load() >= need:
		case *now < 0:
			return outcome{}, g.timeError(g.sinceEpoch(*ns))
		default:
			return g.steppedBack(s, need, *now, *ns)
		}
	case atLimit:
		return g.pastLimit(s, need)
	case ended:
		return outcome{}, spi.ErrClosed
	}
	return outcome{}, nil
}

// handOut sets the next n keys of the first waiter, which begin at start.
func (g *generator) handOut(w *waiter, s *workerSlot, n int, start uint64, ns int64) {
	g.fill(s, w.rest[:n], start)
	w.after = start + uint64(n) - 1
	g.figures.stepNeed = 0
	if w.rest = w.rest[n:]; len(w.rest) == 0 {
		g.finish(w, nil, ns)
		return
	}
	// A call that needs many ticks goes to the back of the queue, so that calls that need one tick can
	// continue.
	g.queue.MoveToBack(w.place)
	wake(g.first())
}

// crowdDelay returns extra sleep beyond the next tick if many callers wait. Waking many callers each
// millisecond costs more than their keys. The skipped ticks are used later. If they can't be used
// later, crowdDelay returns zero.
func (g *generator) crowdDelay() time.Duration {
	if g.catchUp == 0 {
		return 0
	}
	return min(time.Duration(g.waiting.Load()/64)*time.Millisecond, catchUpTime/8)
}

// pastLimit returns the next step for keys in tick need, which the slot's limit doesn't cover. The
// lease has to be renewed, unless it was renewed in the meantime.
func (g *generator) pastLimit(s *workerSlot, need int64) (outcome, error) {
	switch {
	case need > g.lastTick:
		return outcome{}, g.timeError(g.clock.At(need))
	case g.extend(s):
		return outcome{}, nil
	}
	return g.inBackground(s, func(ctx context.Context) (*workerSlot, error) { return g.renew(ctx, s, need) }), nil
}

// change replaces s by next, unless s is no longer the current slot because the generator was
// closed.
func (g *generator) change(s, next *workerSlot) error {
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
		g.cfg.Logger.Info("shardkey: worker ID in use", "worker_id", next.id)
		if s != nil {
			_ = g.release(s) // a lost lease needs no release, and the assigner logs other errors
		}
		return nil
	}
	err := g.release(next)
	if g.slot.Load() != nil {
		return nil // try the other slot
	}
	return errors.Join(spi.ErrClosed, err)
}
