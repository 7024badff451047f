package snowflake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

// figures are the figures for Health that the state doesn't have. The generator's mu guards them.
type figures struct {
	stats.Figures       // Issued is the sum of former slots
	steps         int64 // clock steps of former slots
	stepNeed      int64 // the tick of the last clock step that was counted
	stepLogged    time.Time
	lost          int64 // number of lost leases
}

// retire adds the figures of a slot that is replaced or closed. mu is held.
func (g *generator) retire(s *workerSlot) {
	if s != nil {
		g.figures.Issued += s.state.issued()
		g.figures.steps += s.state.steps.Load()
	}
}

// Health returns the figures and the current error. Issued and Clock.Steps include all generators
// that share the worker ID in this process.
func (g *generator) Health() spi.Health {
	g.mu.Lock()
	h := g.figures.Snapshot()
	h.Clock = &spi.ClockHealth{Steps: new(g.figures.steps)}
	lost, closed := g.figures.lost, g.closed
	g.mu.Unlock()
	if closed {
		h.Err = spi.ErrClosed
	}
	h.Warnings = append(h.Warnings, g.risks()...)
	if s := g.slot.Load(); s != nil {
		g.slotHealth(&h, s, lost)
	} else if r, ok := g.cfg.Assigner.(spi.HealthReporter); ok && !closed {
		h.Err = errors.Join(h.Err, r.Health().Err) // the reason for a missing worker ID
	}
	return h
}

// risks returns the warnings about the configuration. It reads no clock but the system's: a custom
// clock isn't read before the first key.
func (g *generator) risks() (all []string) {
	switch {
	case g.cfg.Assigner != nil: // it reports its own risks
	case g.cfg.WorkerIDSet:
		all = append(all, stats.Unleased(fmt.Sprintf("worker-id %d", g.cfg.WorkerID)))
	default:
		all = append(all, stats.Unleased("no worker ID is set, so 0 is used"))
	}
	if g.clock.System() {
		if end := stats.Ending(g.clock.At(g.lastTick), g.cfg.Clock.Now()); end != "" {
			all = append(all, fmt.Sprintf("layout %s with epoch %s: %s", g.cfg.Layout, stamp(g.cfg.Epoch), end))
		}
	}
	return all
}

func (g *generator) slotHealth(h *spi.Health, s *workerSlot, lost int64) {
	h.WorkerID = new(s.id)
	h.Issued += s.state.issued()
	*h.Clock.Steps += s.state.steps.Load()
	now, ns := g.clock.Read()
	if top := s.state.top(); top > s.from {
		h.Clock.Ahead = max(0, time.Duration(int64((top-1)>>g.seqBits)*g.clock.Length()-ns))
	}
	if h.Clock.Ahead > max(g.cfg.Tolerance, time.Second)+s.delay {
		h.Warnings = append(h.Warnings,
			fmt.Sprintf("shardkey: keys are %v ahead of the clock, which stepped back or is wrong", h.Clock.Ahead))
	}
	if need, v := g.probe(s, max(now, 0)); v == behind && !g.borrows(s, need, now, ns) {
		_, err := g.toWait(need-s.state.ahead.Load(), ns)
		h.Err = errors.Join(h.Err, err)
	}
	if s.lease == nil {
		return
	}
	lease := &spi.LeaseHealth{}
	if s.replaceable() {
		h.Lease, lease.Lost = lease, lost
	}
	if r, ok := s.lease.(spi.HealthReporter); ok {
		own := r.Health()
		h.Err = errors.Join(h.Err, own.Err)
		h.Warnings = append(h.Warnings, own.Warnings...)
		if own.Lease != nil {
			h.Lease, lease.Length, lease.Renewals = lease, own.Lease.Length, own.Lease.Renewals
		}
	}
	g.extend(s)
	if limit := s.limit.Load(); limit != g.end {
		h.Lease, lease.Limit = lease, g.clock.At(int64(limit>>g.seqBits))
		if h.Err == nil && now >= int64(limit>>g.seqBits) {
			h.Err = g.leaseError(s, errLeaseOver)
		}
	}
}

var errLeaseOver = errors.New("not renewed yet")

// Describe returns the type, layout, worker ID and settings in one line.
func (g *generator) Describe() string {
	c := g.cfg
	worker := "no worker ID yet"
	if s := g.slot.Load(); s != nil {
		worker = fmt.Sprintf("worker %d", s.id)
	} else if c.Assigner == nil {
		worker = fmt.Sprintf("worker %d", c.WorkerID)
	}
	if d, ok := c.Assigner.(spi.Describer); ok {
		worker += " from " + d.Describe()
	} else if c.Assigner == nil && !c.WorkerIDSet {
		worker += " (not set)"
	}
	ring := ""
	if c.RingSize > 1 {
		ring = fmt.Sprintf(", ring of %d", c.RingSize)
	}
	back := c.ClockBack
	if c.ClockBack == clockBackWait {
		back += " " + c.Tolerance.String()
	}
	return fmt.Sprintf("%s %s (time-worker-sequence bits), tick %v, epoch %s, %s, clock-back %s, vibration 0..%d%s",
		g.typ(), c.Layout, c.Layout.Tick, stamp(c.Epoch), worker, back, c.MaxVibrationOffset, ring)
}

// ListWorkerIDs lists the worker IDs of the generator's assigner. Without an assigner, it lists the
// configured worker ID.
func (g *generator) ListWorkerIDs(ctx context.Context) (list spi.WorkerIDs, err error) {
	defer panics.Recover(&err, "the worker-ID assigner")
	maxID := g.cfg.Layout.maxWorkerID()
	if g.cfg.Assigner == nil {
		return spi.WorkerIDs{Store: "worker-id", Max: maxID, List: []spi.WorkerID{{ID: g.cfg.WorkerID, State: "fixed"}}}, nil
	}
	lister, ok := g.cfg.Assigner.(spi.WorkerIDLister)
	if !ok {
		return spi.WorkerIDs{}, fmt.Errorf("shardkey: worker IDs of %T: %w", g.cfg.Assigner, errors.ErrUnsupported)
	}
	list, err = lister.ListWorkerIDs(ctx)
	list.Max = maxID
	return list, err
}

// Ready returns nil if a key can be generated now, or within the tolerated wait for the clock. It
// generates no key. It acquires a worker ID if there is none, or if the clock is far behind the
// keys of the current one. It renews a lease that is at its limit. A renewal that failed earlier
// doesn't matter. Its errors are those of GenerateInt64Keys.
//
// The store's answer may come after ctx ended. The next call uses it.
func (g *generator) Ready(ctx context.Context) error {
	if s := g.slot.Load(); s != nil {
		if _, v := g.probe(s, g.clock.Now()); v == taken {
			return nil
		}
	}
	p := g.startProbe(ctx)
	select {
	case <-p.done:
		return p.waiter.err
	case <-ctx.Done():
		err := g.ended(ctx.Err(), nil)
		g.mu.Lock()
		defer g.mu.Unlock()
		if p.waiter.done {
			return p.waiter.err
		}
		return err
	}
}

// readyProbe waits in the queue for a key to become available, on behalf of all calls of Ready.
type readyProbe struct {
	waiter waiter
	done   chan struct{} // closed when the waiter is done
}

// probeTimeout limits a probe, because an assigner may never answer. The callers behind it in the
// queue then ask the assigner again.
const probeTimeout = time.Minute

// startProbe returns the running probe, or starts one. The probe doesn't end with ctx. A readiness
// check with a shorter timeout than the store needs would otherwise start again each time.
func (g *generator) startProbe(ctx context.Context) *readyProbe {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.readying == nil {
		p := &readyProbe{waiter: waiter{probe: true}, done: make(chan struct{})}
		g.readying = p
		go g.runProbe(context.WithoutCancel(ctx), p)
	}
	return g.readying
}

// runProbe ends when the generator is closed.
func (g *generator) runProbe(ctx context.Context, p *readyProbe) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_ = g.join(ctx, &p.waiter) // the waiter keeps it
	g.mu.Lock()
	g.readying = nil
	g.mu.Unlock()
	close(p.done)
}

// serveProbe checks whether a key is available for a waiter. If it returns the zero outcome and the
// waiter isn't done, the lease was extended and the caller tries again.
func (g *generator) serveProbe(w *waiter, s *workerSlot, now int64) (outcome, error) {
	need, v := g.probe(s, now)
	if v == behind {
		now, ns := g.clock.Read()
		if now < 0 {
			return outcome{}, g.timeError(g.sinceEpoch(ns))
		}
		if now+s.state.ahead.Load() < need && !g.borrows(s, need, now, ns) {
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
		return g.pastLimit(s, need)
	}
	g.finish(w, nil, 0)
	return outcome{}, nil
}

// probe returns the verdict of take for one key: taken, behind, atLimit or ended. If the clock's
// tick is full, it returns the verdict for the next tick.
func (g *generator) probe(s *workerSlot, now int64) (need int64, v takeResult) {
	for {
		_, need, v = g.take(s, request{now: now, n: 1, dry: true})
		if v != full {
			return need, v
		}
		now = need - s.state.ahead.Load()
	}
}
