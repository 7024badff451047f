package snowflake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

// figures are the figures for Health that the state doesn't have. The generator's mu guards them.
type figures struct {
	stats.Figures       // Issued is the sum of former slots
	steps         int64 // clock steps of former slots
	stepNeed      int64 // the tick of the last clock step that was counted
	lost          int64 // number of lost leases
}

// retire adds the figures of a slot that is replaced or closed. mu is held.
func (g *generator) retire(s *slot) {
	if s != nil {
		g.figures.Issued += s.state.issued()
		g.figures.steps += s.state.steps.Load()
	}
}

// Health returns the figures and the current error. Issued and ClockSteps include all generators
// that share the worker ID in this process.
func (g *generator) Health() spi.Health {
	g.mu.Lock()
	h := g.figures.Snapshot()
	h.ClockSteps = new(g.figures.steps)
	lost, closed := g.figures.lost, g.closed
	g.mu.Unlock()
	if closed {
		h.Err = spi.ErrClosed
	}
	h.Borrowed = new(time.Duration)
	if g.cfg.Assigner == nil && !g.cfg.WorkerIDSet {
		h.Warnings = append(h.Warnings, unsetWorker)
	}
	if s := g.slot.Load(); s != nil {
		g.slotHealth(&h, s, lost)
	} else if r, ok := g.cfg.Assigner.(spi.HealthReporter); ok && !closed {
		h.Err = errors.Join(h.Err, r.Health().Err) // the reason for a missing worker ID
	}
	return h
}

func (g *generator) slotHealth(h *spi.Health, s *slot, lost int64) {
	h.WorkerID = new(s.id)
	h.Issued += s.state.issued()
	*h.ClockSteps += s.state.steps.Load()
	now, ns := g.clock.Read()
	if top := s.state.top(); top > s.from {
		*h.Borrowed = max(0, time.Duration(int64((top-1)>>g.seqBits)*g.clock.Length()-ns))
	}
	switch usual := max(g.cfg.Tolerance, time.Second); {
	case *h.Borrowed > usual+s.delay:
		h.Warnings = append(h.Warnings, aheadOfClock(*h.Borrowed, "which stepped back or is wrong"))
	case *h.Borrowed > usual:
		h.Warnings = append(h.Warnings,
			aheadOfClock(*h.Borrowed, "because leases start later after a failover of their store, or with a quarantine"))
	}
	if need, v := g.probe(s, max(now, 0)); v == behind && !g.borrows(s, need, now) {
		_, err := g.toWait(need-s.state.ahead.Load(), ns)
		h.Err = errors.Join(h.Err, err)
	}
	if s.lease == nil {
		return
	}
	if s.replaceable() {
		h.LeaseRenewals, h.LeasesLost = new(int64), &lost
	}
	if r, ok := s.lease.(spi.HealthReporter); ok {
		lease := r.Health()
		h.Err = errors.Join(h.Err, lease.Err)
		h.Warnings = append(h.Warnings, lease.Warnings...)
		h.LeaseLength = lease.LeaseLength
		h.LeaseRenewals = cmp.Or(lease.LeaseRenewals, h.LeaseRenewals)
	}
	g.extend(s)
	if limit := s.limit.Load(); limit != g.end {
		h.LeaseLimit = g.clock.At(int64(limit >> g.seqBits))
		if h.Err == nil && now >= int64(limit>>g.seqBits) {
			h.Err = g.leaseError(s, errLeaseOver)
		}
	}
}

func aheadOfClock(by time.Duration, why string) string {
	return fmt.Sprintf("shardkey: keys are %v ahead of the clock, %s", by, why)
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
	switch d, ok := c.Assigner.(spi.Describer); {
	case ok:
		worker += " from " + d.Describe()
	case c.Assigner != nil:
		worker += " from an assigner"
	case !c.WorkerIDSet:
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
	defer guard.Recover(&err, "the worker-ID assigner")
	maxID := g.cfg.Layout.MaxWorkerID()
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
