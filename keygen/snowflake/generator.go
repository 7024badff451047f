package snowflake

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/keygen/internal/tick"
	"github.com/shardkey/shardkey/spi"
)

var (
	_ spi.Int64KeyGenerator = (*generator)(nil)
	_ spi.KeyDecoder        = (*generator)(nil)
	_ spi.KeyRanger         = (*generator)(nil)
	_ spi.Describer         = (*generator)(nil)
	_ spi.HealthReporter    = (*generator)(nil)
	_ spi.ReadyReporter     = (*generator)(nil)
	_ spi.WorkerIDLister    = (*generator)(nil)
)

// generator makes keys of time, worker and sequence. It is made by newGenerator, is
// used by any number of goroutines at once, and needs no goroutine of its own.
type generator struct {
	cfg      config
	clock    tick.Clock
	seqBits  int
	seqMask  uint64
	lastTick int64  // of the time field
	end      uint64 // first position after the time field
	catchUp  int64  // ticks that keys may lag behind the clock when saturated
	longTick bool   // too long to look at the lease once a tick

	slot    atomic.Pointer[slot] // nil before the first key and after Close
	waiting atomic.Int32         // callers in the queue

	vibration atomic.Int64 // the offset that the next fresh tick begins with

	mu      sync.Mutex // never held while anybody waits
	queue   list.List  // of *waiter
	closed  bool
	figures figures
}

// catchUpTime is how far keys may lag behind the clock while the layout is
// saturated: as long as a goroutine of a busy process may sleep too long.
const catchUpTime = 40 * time.Millisecond

// newGenerator makes a generator. It does no input or output and does not take a worker
// id yet: the first key does.
func newGenerator(cfg config) *generator {
	g := &generator{
		cfg:      cfg,
		seqBits:  cfg.Layout.SequenceBits,
		seqMask:  uint64(cfg.Layout.MaxSequence()),
		lastTick: lastTick(cfg.Layout, cfg.Epoch),
	}
	g.figures.Waits = new(int64)
	g.clock.Init(cfg.Clock, cfg.Epoch, cfg.Layout.Tick, g.lastTick+1)
	g.longTick = cfg.Layout.Tick > 10*time.Millisecond
	g.end = uint64(g.lastTick+1) << g.seqBits
	if g.clock.System() {
		g.catchUp = int64(catchUpTime / cfg.Layout.Tick)
	}
	if cfg.RingSize > 1 {
		g.catchUp = min(g.catchUp, int64(cfg.RingSize)-1)
	}
	return g
}

// GenerateInt64Keys fills keys with new keys in ascending order. They are
// contiguous when they fit into one tick: up to the layout's sequence size,
// 4,096 for [Classic]. More keys come in blocks of that size, each of a later
// tick.
//
// It waits while the layout's keys of the present tick are used up, while the
// clock is behind within the tolerance, and while a worker ID is leased. Its
// errors are [spi.ErrClockBack], [spi.ErrTimeOverflow], [spi.ErrLeaseLimit],
// [spi.ErrNoWorkerID], the assigner's, [spi.ErrClosed], and ctx's when it ends during a
// wait.
func (g *generator) GenerateInt64Keys(ctx context.Context, _ spi.Column, keys []int64) error {
	if len(keys) == 0 {
		return nil
	}
	waited := false
	if s := g.slot.Load(); s != nil && uint64(len(keys)) <= g.seqMask+1 && g.waiting.Load() == 0 {
		start, _, v := g.take(s, request{now: g.clock.Now(), n: uint64(len(keys))})
		if v == taken {
			g.fill(s, keys, start)
			return nil
		}
		waited = v == full
	}
	return g.join(ctx, &waiter{rest: keys, waited: waited})
}

// GenerateKeys is GenerateInt64Keys with each key as an int64 in an any.
func (g *generator) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	return spi.BoxedKeys(ctx, g, column, n)
}

// key puts the worker between a position's tick and sequence.
func (g *generator) key(s *slot, pos uint64) int64 {
	return int64(pos>>g.seqBits<<(g.seqBits+g.cfg.Layout.WorkerBits)|pos&g.seqMask) | s.worker
}

// fill writes the keys of positions of one tick.
func (g *generator) fill(s *slot, keys []int64, start uint64) {
	key := g.key(s, start)
	for ; len(keys) >= 4; keys = keys[4:] { // a fifth faster than one by one
		keys[0], keys[1], keys[2], keys[3] = key, key+1, key+2, key+3
		key += 4
	}
	for i := range keys {
		keys[i] = key + int64(i)
	}
}

// Close releases the worker ID and fails the callers that wait. Keys of a
// leased worker ID end with it. It waits 3 s at most for the lease's store,
// whose error it returns. Further calls do nothing.
func (g *generator) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil
	}
	g.closed = true
	s := g.slot.Swap(nil)
	g.failAll(spi.ErrClosed)
	g.mu.Unlock()
	if s == nil {
		return nil
	}
	err := g.release(s)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.retire(s)
	return err
}

func (g *generator) typ() string {
	if g.cfg.RingSize > 1 {
		return "SNOWFLAKE_RING"
	}
	return "SNOWFLAKE"
}
