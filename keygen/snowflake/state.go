package snowflake

import "sync/atomic"

// A position is a key without its worker: tick<<SequenceBits | sequence. It
// counts up through the sequence and on into the next tick.
//
// The state of a worker is one word: the first position that was never handed
// out. A reservation of n keys reads the clock, loads the word, computes where
// its n positions begin (at or above the word), and swaps the word for the
// position behind them; when the swap fails it looks again. Since every swap
// raises the word and every reservation lies between the old value and the
// new one, no position is handed out twice, whatever the clock said.
//
// The ring has one such word for each of the past len(ring) ticks; tick t
// uses word t mod len(ring) and no other. Positions of a word only rise, by
// the same argument, and a position belongs to one tick and so to one word:
// again none is handed out twice. A word that belongs to a later tick has
// forgotten the earlier one, and refuses it.
type state struct {
	_    [64]byte // the word has a cache line of its own; it is written for each reservation
	word atomic.Uint64
	_    [56]byte

	ring []atomic.Uint64 // instead of word, when not empty
	// skipped counts the positions that were passed over, modulo 2^64: what
	// the words rose by, less these, is the number of keys. A jump to another
	// tick is rare, a key is not.
	skipped atomic.Uint64
	from    uint64 // where the words began
	// high is the newest tick that the ring handed out, floor its first.
	high, floor atomic.Int64
	// ahead is how many ticks beyond the clock may be used: the step back that
	// is being made up for, or the way from the clock to a lease's first tick.
	ahead atomic.Int64
	// busy is the tick of the clock up to which the layout counts as saturated.
	busy atomic.Int64
	// stepped is set while the ring's clock is behind high.
	stepped atomic.Bool
	steps   atomic.Int64
}

// closedBit in a word ends its state: positions have 63 bits.
const closedBit = 1 << 63

// newState makes the state of a worker whose first position is from. A ring
// of one tick is the plain word.
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

func (s *state) ringSize() int { return max(1, len(s.ring)) }

// top is the first position above all that were handed out.
func (s *state) top() uint64 {
	if len(s.ring) == 0 {
		return s.word.Load() &^ closedBit
	}
	var top uint64
	for i := range s.ring {
		top = max(top, s.ring[i].Load()&^closedBit)
	}
	return top
}

// issued is the number of keys handed out.
func (s *state) issued() int64 {
	skipped := s.skipped.Load()
	if len(s.ring) == 0 {
		return int64(s.word.Load()&^closedBit - s.from - skipped)
	}
	var risen uint64
	for i := range s.ring {
		risen += s.ring[i].Load()&^closedBit - s.from
	}
	return int64(risen - skipped)
}

// end closes the state: no position is handed out afterwards. It returns top.
func (s *state) end() uint64 {
	s.word.Or(closedBit)
	for i := range s.ring {
		s.ring[i].Or(closedBit)
	}
	return s.top()
}

func (s *state) raiseHigh(tick int64) {
	for {
		high := s.high.Load()
		if high >= tick || s.high.CompareAndSwap(high, tick) {
			return
		}
	}
}
