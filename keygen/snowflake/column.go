package snowflake

import (
	"sync"
	"sync/atomic"

	"github.com/shardkey/shardkey/spi"
)

// Keys that are alone in their tick reach all remainders modulo MaxVibrationOffset+1, in turn. Tables
// are sharded by the remainder, so each column has its own turn. If the columns of a generator
// shared one, tables that are written in turn would each get a part of the remainders only.
//
// Keys are unique without that: a column only determines how many positions above the word are
// skipped.

// column is a column that a generator generates keys for.
type column struct {
	of     spi.Column
	starts atomic.Int64 // number of times that its keys started a tick or followed another column's
	// newest is the position of the column's newest key when another column's keys followed it.
	newest atomic.Uint64
}

// columns are the columns of a generator. The zero value has none.
type columns struct {
	recent [64]atomic.Pointer[column] // by slot
	count  atomic.Int64

	mu  sync.Mutex
	all map[spi.Column]*column
}

// find returns a column, and adds it if it is new.
func (cs *columns) find(of spi.Column, period int64) *column {
	recent := &cs.recent[slot(of.Table)%uint(len(cs.recent))]
	own := recent.Load()
	if own == nil || own.of != of {
		own = cs.known(of, period)
		recent.Store(own)
	}
	return own
}

// slot returns a number that differs for most names of a rule, which tend to differ at their end.
func slot(name string) uint {
	if name == "" {
		return 0
	}
	return uint(len(name))*31 + uint(name[len(name)-1])
}

// known is find without the recent columns. The first remainders of columns differ, so that columns
// that are written in turn start at different ones without skipping positions.
func (cs *columns) known(of spi.Column, period int64) *column {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	own := cs.all[of]
	if own == nil {
		own = &column{of: of}
		own.starts.Store((cs.count.Add(1) - 1) % period)
		if cs.all == nil {
			cs.all = map[spi.Column]*column{}
		}
		cs.all[of] = own
	}
	return own
}

// remainder returns the remainder that the column's next keys start with. If there are other columns,
// each round starts one further, because columns may take turns in the same rhythm as remainders.
func (cs *columns) remainder(of *column, period int64) int64 {
	n := of.starts.Load()
	if cs.count.Load() > 1 {
		n += n / period
	}
	return n % period
}

// skip returns how many positions from pos on to skip, so that the key at the next one has the
// remainder that the column starts with next.
func (g *generator) skip(s *workerSlot, c *column, pos uint64) uint64 {
	skip := g.columns.remainder(c, g.period) - g.key(s, pos)%g.period
	if skip < 0 {
		skip += g.period
	}
	return uint64(skip)
}

// offset returns the sequence that a fresh tick starts with. It is less than the column's if the
// keys wouldn't fit after it.
func (g *generator) offset(s *workerSlot, r request, tick int64) uint64 {
	if r.waited || r.column == nil {
		return 0
	}
	return min(g.skip(s, r.column, uint64(tick)<<g.seqBits), g.seqMask+1-r.n)
}

// turn returns the start of keys at position w that follow another column's. The column's first keys
// in a tick start as in a fresh tick, if that leaves half of the tick. Otherwise, one position of
// each block is skipped: if columns take turns, each one would get every second position only, for
// example.
func (g *generator) turn(s *workerSlot, r request, w uint64) uint64 {
	end := (w | g.seqMask) + 1
	if r.column.newest.Load()>>g.seqBits != w>>g.seqBits {
		start := w + g.skip(s, r.column, w)
		if start&g.seqMask <= g.seqMask/2 && start+r.n <= end {
			return start
		}
	}
	if s.state.turned.Load()/blockSize != w/blockSize && w+1+r.n <= end {
		return w + 1
	}
	return w
}

// blockSize is a prime number, so that each block begins at another remainder of small divisors.
const blockSize = 127

// turn records that the keys of r's column begin at start, after those of last up to w.
func (st *state) turn(last *column, r request, w, start uint64) {
	if last != nil {
		last.newest.Store(w - 1)
	}
	st.last.Store(r.column)
	st.turned.Store(start)
}
