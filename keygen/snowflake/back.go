package snowflake

import "time"

// steppedBack decides what happens while the clock is behind tick need: how
// long to wait (zero: try again), or an error. mu is held.
func (g *Generator) steppedBack(s *seat, need, now, ns int64) (time.Duration, error) {
	g.countStep(s, need)
	gap := time.Duration(need*g.clock.Length() - ns)
	switch {
	case g.cfg.ClockBack == Borrow:
		s.state.ahead.Store(max(need, s.state.high.Load()) - now)
		return 0, nil
	case g.cfg.ClockBack == Wait && gap <= g.cfg.Tolerance:
		return gap, nil
	}
	e := &ClockBackError{Last: g.clock.At(need), Now: g.sinceEpoch(ns)}
	if g.cfg.ClockBack == Wait {
		e.Tolerance = g.cfg.Tolerance
	}
	return 0, e
}

// countStep counts a step of the clock once, however many callers meet it.
func (g *Generator) countStep(s *seat, need int64) {
	if len(s.state.ring) != 0 {
		if s.state.stepped.CompareAndSwap(false, true) {
			s.state.steps.Add(1)
		}
		return
	}
	if !g.stats.stepping || g.stats.stepNeed != need {
		g.stats.stepping, g.stats.stepNeed = true, need
		s.state.steps.Add(1)
	}
}

func (g *Generator) timeError(ns int64) error {
	return &TimeError{Time: g.sinceEpoch(ns), Layout: g.cfg.Layout, Epoch: g.cfg.Epoch, Last: lastTime(g.cfg.Layout, g.cfg.Epoch)}
}

func (g *Generator) sinceEpoch(ns int64) time.Time {
	return g.cfg.Epoch.Add(time.Duration(ns)).UTC()
}
