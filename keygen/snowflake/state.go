package snowflake

import (
	"context"
	"sync/atomic"
	"time"
)

// state reserves the positions of a worker ID. A position is a key without its worker ID:
// tick<<SequenceBits | sequence. Positions count up through the sequence and continue in the next
// tick.
//
// The state is one word: the first position that was never handed out. To reserve n keys, take
// reads the clock and loads the word. It computes the first of n positions, which is at or above
// the word, and swaps the word for the position after the last. If the swap fails, it tries again.
// Every swap raises the word, and every reservation lies between the old value and the new one. So
// no position is handed out twice, whatever the clock shows.
//
// The ring has one such word for each of the past len(ring) ticks. Tick t uses word t mod len(ring)
// and no other. The positions of a word only rise, by the same argument. A position belongs to one
// tick and therefore to one word, so again none is handed out twice. A word that belongs to a later
// tick no longer has the positions of the earlier tick, and refuses it.
type state struct {
	_    [64]byte // the word has its own cache line, because each reservation writes it
	word atomic.Uint64
	// last is the column of the newest reservation, or nil before the first.
	last atomic.Pointer[column]
	// turned is the position at which its keys began.
	turned atomic.Uint64
	_      [40]byte

	ring []atomic.Uint64 // used instead of word if it isn't empty
	// skipped is the number of skipped positions, modulo 2^64. The number of keys is the rise of
	// the words minus skipped. Skipped positions are counted because they are rarer than keys.
	skipped atomic.Uint64
	from    uint64 // initial value of the words
	// high is the newest tick that the ring used, and floor is its first.
	high, floor atomic.Int64
	// ahead is the number of ticks ahead of the clock that may be used. It is the size of the last
	// step back of the clock, or the distance from the clock to a lease's first tick.
	ahead atomic.Int64
	// busy is the tick of the clock until which the layout counts as saturated.
	busy atomic.Int64
	// stepped is set while the ring's clock is behind high.
	stepped atomic.Bool
	steps   atomic.Int64
}

// closedBit in a word means that its state is closed. Positions only use 63 bits.
const closedBit = 1 << 63

// newState returns the state of a worker ID whose first position is from. With a ring size of 1 it
// uses the single word.
func newState(ringSize int, from uint64, seqBits int) *state {
	s := &state{from: from}
	s.word.Store(from)
	s.floor.Store(int64(from >> seqBits))
	if ringSize > 1 {
		s.ring = make([]atomic.Uint64, ringSize)
		for i := range s.ring {
			s.ring[i].Store(from)
		}
	}
	return s
}

func (st *state) ringSize() int { return max(1, len(st.ring)) }

// top returns the first position above all that were handed out.
func (st *state) top() uint64 {
	if len(st.ring) == 0 {
		return st.word.Load() &^ closedBit
	}
	var top uint64
	for i := range st.ring {
		top = max(top, st.ring[i].Load()&^closedBit)
	}
	return top
}

// issued returns the number of keys handed out.
func (st *state) issued() int64 {
	skipped := st.skipped.Load()
	if len(st.ring) == 0 {
		return int64(st.word.Load()&^closedBit - st.from - skipped)
	}
	var risen uint64
	for i := range st.ring {
		risen += st.ring[i].Load()&^closedBit - st.from
	}
	return int64(risen - skipped)
}

// end closes the state, so that it hands out no more positions. It returns top.
func (st *state) end() uint64 {
	st.word.Or(closedBit)
	for i := range st.ring {
		st.ring[i].Or(closedBit)
	}
	return st.top()
}

func (st *state) raiseHigh(tick int64) {
	for {
		high := st.high.Load()
		if high >= tick || st.high.CompareAndSwap(high, tick) {
			return
		}
	}
}

// takeResult is the result of one attempt to reserve positions.
type takeResult int

const (
	taken   takeResult = iota
	full               // the tick's sequence is used up; wait for tick need
	behind             // the clock is behind tick need, which was used
	atLimit            // tick need is not below the slot's limit, or the lease is over
	ended              // the state was closed
)

// request is a request for n positions in one tick. n is at most the number of sequences in a tick.
type request struct {
	now int64 // the clock's tick, read before take
	n   uint64
	// column is the column that the keys are for. It is nil if dry is set.
	column *column
	// waited means that the caller has waited for a full tick. As in ShardingSphere, the next tick
	// then starts at sequence 0 and not at the vibration's offset.
	waited bool
	// after is the newest position of the same call, or 0. Keys of a call ascend, also with a ring.
	after uint64
	// dry means that take returns only the verdict and reserves nothing.
	dry bool
}

// take reserves r.n positions in one tick. start is the first of them. need is the tick that the
// verdict refers to.
func (g *generator) take(s *workerSlot, r request) (start uint64, need int64, v takeResult) {
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
		start, tick, by, last := w, int64(w>>g.seqBits), atWord, st.last.Load()
		switch {
		case (tick < r.now || tick == r.now && w&g.seqMask == 0 && !r.waited) && !g.lags(st, tick, r.now):
			tick, by = r.now, freshTick
			start = uint64(tick)<<g.seqBits | g.offset(s, r, tick)
		case last != r.column && last != nil && !r.dry:
			start, by = g.turn(s, r, w), otherColumn
		}
		if start&g.seqMask+r.n > g.seqMask+1 {
			tick++
			start, by = uint64(tick)<<g.seqBits, nextTick
		}
		if tick > r.now {
			if ahead := st.ahead.Load(); tick > r.now+ahead {
				if last := int64(w-1) >> g.seqBits; w != 0 && last > r.now+ahead {
					return 0, last, behind
				}
				return 0, tick, full
			}
		}
		if start+r.n > s.limit.Load() || (start != w || w&g.seqMask == 0 || g.longTick) && s.over() {
			return 0, tick, atLimit
		}
		if r.dry {
			return start, tick, taken
		}
		if st.word.CompareAndSwap(w, start+r.n) {
			if start != w {
				st.skipped.Add(start - w)
			}
			if by != atWord {
				g.moved(st, r, by)
			}
			if last != r.column {
				st.turn(last, r, w, start)
			}
			return start, tick, taken
		}
	}
}

// takeRing is take for a ring. Each tick has its own word, so an earlier tick continues where it
// stopped.
func (g *generator) takeRing(s *workerSlot, r request) (start uint64, need int64, v takeResult) {
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
		word := &st.ring[tick%int64(len(st.ring))]
		w := word.Load()
		if w&closedBit != 0 {
			return 0, r.now, ended
		}
		first, end := uint64(tick)<<g.seqBits, uint64(tick+1)<<g.seqBits
		fresh := w <= first
		by, last := atWord, st.last.Load()
		switch {
		case w > end:
			return 0, max(high-int64(len(st.ring))+1, st.floor.Load(), r.now+ahead+1), behind
		case !fresh && (last == r.column || last == nil || r.dry):
			start = w
		case !fresh:
			start, by = g.turn(s, r, w), otherColumn
		case next || r.waited:
			start = first
		default:
			start = first | g.offset(s, r, tick)
		}
		if start+r.n > end {
			if tick, next = tick+1, true; tick > r.now+ahead {
				return 0, tick, full
			}
			continue
		}
		if start+r.n > s.limit.Load() || (fresh || g.longTick) && s.over() {
			return 0, tick, atLimit
		}
		if r.dry {
			return start, tick, taken
		}
		if word.CompareAndSwap(w, start+r.n) {
			if start != w {
				st.skipped.Add(start - w)
			}
			if fresh || tick != high {
				g.movedRing(st, r, tick, high, fresh && !next)
			}
			if by != atWord {
				g.moved(st, r, by)
			}
			if last != r.column {
				st.turn(last, r, w, start)
			}
			if next {
				g.crossed(st, r.now)
			}
			return start, tick, taken
		}
	}
}

// move is the reason why a reservation starts at a position.
type move int

const (
	atWord      move = iota // no position is skipped
	freshTick               // the clock is in a new tick
	nextTick                // the old tick was full
	otherColumn             // the keys follow those of another column
)

// moved records a reservation that doesn't start at the word. A fresh tick ends borrowing.
func (g *generator) moved(st *state, r request, by move) {
	switch {
	case by == nextTick:
		g.crossed(st, r.now)
	case by == otherColumn || by == freshTick && !r.waited:
		r.column.starts.Add(1)
	}
	if by == freshTick && st.ahead.Load() != 0 {
		st.ahead.Store(0)
	}
}

func (g *generator) movedRing(st *state, r request, tick, high int64, fresh bool) {
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
		g.moved(st, r, freshTick)
	}
}

// crossed records that a tick was filled to its end.
func (g *generator) crossed(st *state, now int64) {
	st.busy.Store(now + g.catchUp)
}

// lags reports whether keys continue in tick, although the clock is past it. They do while the
// layout is saturated. Otherwise the ticks that passed while a goroutine overslept would be lost.
func (g *generator) lags(st *state, tick, now int64) bool {
	return g.catchUp > 0 && now-tick <= g.catchUp && now <= st.busy.Load()
}

// steppedBack handles a clock that is behind tick need. It returns how long to wait, another worker
// ID to lease, or an error. A wait of zero means to try again. mu is held.
func (g *generator) steppedBack(s *workerSlot, need, now, ns int64) (outcome, error) {
	g.countStep(s, need)
	gap := g.gap(s, need, ns)
	if g.borrows(s, need, now, ns) {
		s.state.ahead.Store(max(need, s.state.high.Load()) - now)
		g.logStep(s, gap, "continue ahead of the clock")
		return outcome{}, nil
	}
	o, err := g.waitOrReplace(s, need, now, ns)
	if o.ask != nil {
		g.logStep(s, gap, "continue with another worker ID")
	} else if err != nil {
		g.logStep(s, gap, "fail until the clock has caught up")
	}
	return o, err
}

// gap returns the time until the clock reaches tick need, or a tick that is as far ahead of the
// clock as s may be.
func (g *generator) gap(s *workerSlot, need, ns int64) time.Duration {
	return time.Duration((need-s.state.ahead.Load())*g.clock.Length() - ns)
}

// failMost is how long the keys of a leased worker ID may fail with [clockBackFail].
const failMost = time.Second

// borrows reports whether keys may be generated in tick need, ahead of the clock. The interval of a
// lease belongs to this generator alone, so its keys continue where they would otherwise fail.
func (g *generator) borrows(s *workerSlot, need, now, ns int64) bool {
	policy := g.cfg.ClockBack
	switch {
	case !s.replaceable():
		return policy == clockBackBorrow
	case policy == clockBackWait && g.gap(s, need, ns) <= g.cfg.Tolerance, policy == clockBackFail && g.gap(s, need, ns) <= failMost:
		return false
	}
	return g.isNear(s, need, now)
}

// isNear reports whether the keys of a lease may continue in tick need. Further ahead of the clock,
// another worker ID is leased.
func (g *generator) isNear(s *workerSlot, need, now int64) bool {
	return g.begins(need, now+int64(s.delay)/g.clock.Length())
}

// waitOrReplace returns the wait for tick need. If that is too long, it returns an error. If the
// clock is far behind the keys of a leased worker ID, it leases another one instead.
func (g *generator) waitOrReplace(s *workerSlot, need, now, ns int64) (outcome, error) {
	nap, back := g.toWait(need-s.state.ahead.Load(), ns)
	if back != nil && s.replaceable() && !g.isNear(s, need, now) {
		return g.inBackground(s, func(ctx context.Context) (*workerSlot, error) { return g.replace(ctx, s, back) }), nil
	}
	return outcome{nap: nap}, back
}

// toWait returns how long to wait until the clock reaches tick need, or an error if that is too
// long.
func (g *generator) toWait(need, ns int64) (time.Duration, error) {
	gap := time.Duration(need*g.clock.Length() - ns)
	if g.cfg.ClockBack == clockBackWait && gap <= g.cfg.Tolerance {
		return gap, nil
	}
	return 0, g.backError(g.clock.At(need), g.sinceEpoch(ns))
}

// countStep counts a step of the clock once, even if several callers notice it.
func (g *generator) countStep(s *workerSlot, need int64) {
	if len(s.state.ring) != 0 {
		if s.state.stepped.CompareAndSwap(false, true) {
			s.state.steps.Add(1)
		}
		return
	}
	if g.figures.stepNeed != need {
		g.figures.stepNeed = need
		s.state.steps.Add(1)
	}
}

// logStep logs a step back of the clock by more than the tolerance, at most once a second. keys is
// what happens to keys. mu is held.
func (g *generator) logStep(s *workerSlot, by time.Duration, keys string) {
	if now := time.Now(); by > g.cfg.Tolerance && now.Sub(g.figures.stepLogged) >= time.Second {
		g.figures.stepLogged = now
		g.cfg.Logger.Warn("shardkey: clock stepped back", "worker_id", s.id, "by", by, "keys", keys)
	}
}

func (g *generator) sinceEpoch(ns int64) time.Time {
	return g.cfg.Epoch.Add(time.Duration(ns)).UTC()
}
