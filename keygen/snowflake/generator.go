package snowflake

import (
	"container/list"
	"context"
	"fmt"
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

// generator generates keys of time, worker ID and sequence. Its methods may be called by multiple
// goroutines at once. Its only goroutine is that of a probe; see Ready.
type generator struct {
	// These fields are read for each key, so they are next to each other.
	slot     atomic.Pointer[workerSlot] // nil before the first key and after Close
	seqBits  int
	seqMask  uint64
	timeBits int          // place of the time field in a key
	catchUp  int64        // number of ticks that keys may lag behind the clock while saturated
	waiting  atomic.Int32 // number of callers in the queue
	longTick bool         // ticks are too long to check the lease once for each tick
	clock    tick.Clock

	cfg      config
	lastTick int64  // last value of the time field
	end      uint64 // first position that doesn't fit the time field

	columns columns
	period  int64 // MaxVibrationOffset+1

	mu       sync.Mutex // never held while a caller waits
	queue    list.List  // of *waiter
	closed   bool
	pending  bool        // the queue waits for the store of worker IDs
	readying *readyProbe // nil if no call of Ready waits in the queue
	figures  figures
}

// catchUpTime is how far keys may lag behind the clock while the layout is saturated. It is as long
// as a goroutine of a busy process may oversleep.
const catchUpTime = 40 * time.Millisecond

// newGenerator returns a generator. It does no I/O. The first key acquires the worker ID.
func newGenerator(cfg config) *generator {
	g := &generator{
		cfg:      cfg,
		seqBits:  cfg.Layout.SequenceBits,
		seqMask:  uint64(cfg.Layout.maxSequence()),
		timeBits: cfg.Layout.SequenceBits + cfg.Layout.WorkerBits,
		lastTick: maxTick(cfg.Layout),
		period:   cfg.MaxVibrationOffset + 1,
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
	if a, ok := cfg.Assigner.(interface{ UsedWith(layout string) }); ok {
		a.UsedWith(fmt.Sprintf("layout %s, tick %v, epoch %s", cfg.Layout, cfg.Layout.Tick, stamp(cfg.Epoch)))
	}
	return g
}

// GenerateInt64Keys sets keys to new keys in ascending order. They are consecutive if they fit into
// one tick, which has 2^SequenceBits keys: 4,096 for [Classic]. More keys come in blocks of that
// size, each in a later tick.
//
// It waits while the keys of the current tick are used up, and while the clock is behind by at most
// the tolerance. It also waits while it leases a worker ID. The error wraps [spi.ErrClockBack],
// [spi.ErrTimeOverflow], [spi.ErrLeaseLimit], [spi.ErrNoWorkerID], [spi.ErrClosed], the assigner's
// error, or ctx's error if ctx ends during a wait.
func (g *generator) GenerateInt64Keys(ctx context.Context, of spi.Column, keys []int64) error {
	if len(keys) == 0 {
		return nil
	}
	waited, column := false, g.columns.find(of, g.period)
	if s := g.slot.Load(); s != nil && uint64(len(keys)) <= g.seqMask+1 && g.waiting.Load() == 0 {
		start, _, v := g.take(s, request{now: g.clock.Now(), n: uint64(len(keys)), column: column})
		if v == taken {
			g.fill(s, keys, start)
			return nil
		}
		waited = v == full
	}
	return g.join(ctx, &waiter{rest: keys, column: column, waited: waited})
}

// GenerateKeys is like GenerateInt64Keys. Each key is an int64.
func (g *generator) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	return spi.KeysFromInts(ctx, g, column, n)
}

// fill sets keys to the keys of consecutive positions in one tick.
func (g *generator) fill(s *workerSlot, keys []int64, start uint64) {
	key := g.key(s, start)
	for i := range keys {
		keys[i] = key + int64(i)
	}
}

// key returns the key of a position. It has the worker ID between tick and sequence.
func (g *generator) key(s *workerSlot, position uint64) int64 {
	return int64(position>>g.seqBits<<g.timeBits|position&g.seqMask) | s.worker
}

// Close releases the worker ID and fails the waiting callers. After it, a leased worker ID
// generates no more keys. Close waits at most 3 s for the lease's store, and returns its error.
// Further calls do nothing.
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
