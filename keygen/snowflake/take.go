package snowflake

// verdict is the outcome of one attempt to reserve positions.
type verdict int

const (
	taken   verdict = iota
	full            // the tick's sequence is used up: wait for tick need
	behind          // the clock is behind tick need, which was used
	atLimit         // tick need is not below the seat's limit
	ended           // the state was closed
)

// request is n positions of one tick, n ≤ the sequence's size.
type request struct {
	now int64 // the clock's tick, read before
	n   uint64
	// waited says that the caller has waited for a full tick: ShardingSphere
	// then begins the next tick at sequence 0, not at the vibration's offset.
	waited bool
	// after is the newest position of the same call, or 0: its keys ascend,
	// in a ring too.
	after uint64
}

// take reserves r.n positions in one tick. start is the first of them; need is
// the tick that the verdict speaks of.
func (g *Generator) take(s *seat, r request) (start uint64, need int64, v verdict) {
	switch {
	case r.now < 0:
		return 0, 0, behind
	case len(s.state.ring) != 0:
		return g.takeRing(s, r)
	}
	st := s.state
	for {
		w := st.word.Load()
		if w&closedBit != 0 {
			return 0, r.now, ended
		}
		start, tick, fresh := w, int64(w>>g.seqBits), false
		if (tick < r.now || tick == r.now && w&g.seqMask == 0 && !r.waited) && !g.lags(st, tick, r.now) {
			tick, fresh = r.now, true
			start = uint64(tick)<<g.seqBits | g.offset(r)
		}
		if start&g.seqMask+r.n > g.seqMask+1 {
			tick++
			start, fresh = uint64(tick)<<g.seqBits, false
		}
		if tick > r.now {
			if ahead := st.ahead.Load(); tick > r.now+ahead {
				if last := int64(w-1) >> g.seqBits; w != 0 && last > r.now+ahead {
					return 0, last, behind
				}
				return 0, tick, full
			}
		}
		if start+r.n > s.limit.Load() {
			return 0, tick, atLimit
		}
		if st.word.CompareAndSwap(w, start+r.n) {
			if fresh || start != w {
				st.skipped.Add(start - w)
				g.moved(st, r, fresh)
			}
			return start, tick, taken
		}
	}
}

// takeRing is take for a ring: the tick's own word decides, so that a tick
// that lies behind the newest one goes on where it stopped.
func (g *Generator) takeRing(s *seat, r request) (start uint64, need int64, v verdict) {
	st := s.state
	high, ahead := st.high.Load(), st.ahead.Load()
	tick := r.now
	if high > tick && high <= tick+ahead || high < tick && g.lags(st, high, tick) {
		tick = high
	}
	tick = max(tick, min(st.floor.Load(), r.now+ahead))
	if r.after != 0 {
		last := int64(r.after >> g.seqBits)
		if last > r.now+ahead {
			return 0, last, behind
		}
		if tick = max(tick, last+1); tick > r.now+ahead {
			return 0, tick, full
		}
	}
	for next := false; ; {
		slot := &st.ring[tick%int64(len(st.ring))]
		w := slot.Load()
		if w&closedBit != 0 {
			return 0, r.now, ended
		}
		first, end := uint64(tick)<<g.seqBits, uint64(tick+1)<<g.seqBits
		fresh := w <= first
		switch {
		case w > end:
			return 0, max(high-int64(len(st.ring))+1, st.floor.Load(), r.now+1), behind
		case !fresh:
			start = w
		case next || r.waited:
			start = first
		default:
			start = first | g.offset(r)
		}
		if start+r.n > end {
			if tick, next = tick+1, true; tick > r.now+ahead {
				return 0, tick, full
			}
			continue
		}
		if start+r.n > s.limit.Load() {
			return 0, tick, atLimit
		}
		if slot.CompareAndSwap(w, start+r.n) {
			if fresh || tick != high {
				st.skipped.Add(start - w)
				g.movedRing(st, r, tick, high, fresh && !next)
			}
			if next {
				g.crossed(st, r.now)
			}
			return start, tick, taken
		}
	}
}

// offset is the sequence that a fresh tick begins with: the vibration's next
// offset, or less when the keys would not fit behind it.
func (g *Generator) offset(r request) uint64 {
	if r.waited {
		return 0
	}
	return min(uint64(g.vibration.Load()), g.seqMask+1-r.n)
}

// moved follows a reservation in another tick: the next one, because the old
// one was full, or the clock's (fresh). That steps the vibration on, and ends
// what a clock ahead had allowed.
func (g *Generator) moved(st *state, r request, fresh bool) {
	if !fresh {
		g.crossed(st, r.now)
		return
	}
	if !r.waited && g.maxVibration > 0 {
		v := g.vibration.Load()
		next := v + 1
		if next > g.maxVibration {
			next = 0
		}
		g.vibration.CompareAndSwap(v, next)
	}
	if st.ahead.Load() != 0 {
		st.ahead.Store(0)
	}
}

func (g *Generator) movedRing(st *state, r request, tick, high int64, fresh bool) {
	switch {
	case tick > high:
		st.raiseHigh(tick)
		if st.stepped.Load() {
			st.stepped.Store(false)
		}
	case r.now+1 < high && !g.lags(st, tick, r.now) && st.stepped.CompareAndSwap(false, true):
		st.steps.Add(1)
	}
	if fresh && tick == r.now {
		g.moved(st, r, true)
	}
}

// crossed notes that a tick was filled to its end.
func (g *Generator) crossed(st *state, now int64) {
	if g.catchUp > 0 {
		st.busy.Store(now + g.catchUp)
	}
}

// lags tells whether keys go on in tick, which the clock has left, rather than
// jump to the clock's tick. They do while the layout is saturated: a sleeping
// goroutine wakes late, and the ticks that passed meanwhile would be lost.
func (g *Generator) lags(st *state, tick, now int64) bool {
	return g.catchUp > 0 && now-tick <= g.catchUp && now <= st.busy.Load()
}
