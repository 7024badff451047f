package snowflake

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/spi"
)

// workerSlot is the right to generate the keys of one worker ID. It has the state that reserves
// positions, and the limit that they must stay below.
//
// A leased slot has its own state, which starts at the lease's floor. Its limit is a copy of the
// lease's limit, which is read again when it is reached. Before the first key of each tick, the
// generator checks whether the lease is over. The reserved interval would normally still belong to
// it. But if the store lost the lease, or this machine is a copy of another, another process may
// generate the same keys.
type workerSlot struct {
	state  *state
	worker int64  // shifted to its place in a key
	from   uint64 // first position of the state
	limit  atomic.Uint64

	id    int64
	lease spi.WorkerIDLease // nil for a fixed worker ID
	delay time.Duration     // see delayOf
	leave func()            // releases a shared state; nil for a leased slot
}

func (g *generator) fixedSlot(id int64, from uint64) (*workerSlot, error) {
	own := identity{layout: g.cfg.Layout, epoch: g.cfg.Epoch.UnixNano(), worker: id, clock: g.cfg.Clock}
	st, leave, err := join(own, g.cfg.RingSize, g.seqBits, from)
	if err != nil {
		return nil, err
	}
	s := &workerSlot{state: st, id: id, worker: id << g.seqBits, leave: leave}
	s.limit.Store(g.end)
	return s, nil
}

// takeSlot returns a slot for the configured worker ID. now is the clock's tick: the ring must not
// use ticks before this process started.
func (g *generator) takeSlot(now int64) (*workerSlot, error) {
	s, err := g.fixedSlot(g.cfg.WorkerID, uint64(now)<<g.seqBits)
	if err != nil {
		return nil, err
	}
	g.slot.Store(s)
	return s, nil
}

// leasedSlot returns a slot for a worker ID from the assigner. No key is below from.
func (g *generator) leasedSlot(ctx context.Context, from uint64) (*workerSlot, error) {
	lease, err := g.cfg.Assigner.AcquireWorkerID(ctx, g.cfg.Layout.maxWorkerID())
	if err != nil {
		return nil, fmt.Errorf("shardkey: %s got no worker ID: %w", g.typ(), err)
	}
	id, maxID := lease.WorkerID(), g.cfg.Layout.maxWorkerID()
	if id < 0 || id > maxID {
		_ = panics.Call("the lease", func() error { return lease.Release(ctx, 0) })
		return nil, fmt.Errorf("shardkey: %s: expected a worker ID in 0..%[3]d from the assigner, found %[2]d", g.typ(), id, maxID)
	}
	now, _ := g.clock.Read()
	now = max(now, 0)
	start, delay := g.ceilTick(lease.Floor()), delayOf(lease)
	latest := now + int64(delay)/g.clock.Length()
	if !g.begins(start, latest) {
		// Another worker ID may be free at the next key.
		err := errors.Join(startError(id, g.clock.At(start), g.clock.At(now)), lease.Release(ctx, 0))
		return nil, fmt.Errorf("shardkey: %s got no worker ID: %w", g.typ(), err)
	}
	if !g.begins(int64(from>>g.seqBits), latest) {
		from = 0 // keys need not ascend from a clock that was far ahead
	}
	from = max(from, uint64(start)<<g.seqBits)
	if lease.Limit() == math.MaxInt64 {
		s, err := g.fixedSlot(id, max(from, uint64(now)<<g.seqBits))
		if err == nil {
			s.lease = lease
		}
		return s, err
	}
	s := &workerSlot{id: id, worker: id << g.seqBits, from: from, lease: lease, delay: delay}
	s.state = newState(g.cfg.RingSize, from, g.seqBits)
	g.extend(s)
	// The lease's interval belongs to this generator alone, so keys may start ahead of the clock.
	// After a crash, the floor is the end of the crashed process's reservation.
	s.state.ahead.Store(max(0, int64(from>>g.seqBits)-now))
	return s, nil
}

// A lease may start ahead of the clock by floorAhead and floorTicks. Its start is rounded up to a
// tick, and so is the time that the previous owner left. In borrow mode the bound is borrowAhead,
// because leases aren't renewed further ahead.
const (
	floorAhead  = time.Minute
	floorTicks  = 4
	borrowAhead = 24 * time.Hour
)

// begins reports whether keys may start with tick start when the clock is at tick now.
func (g *generator) begins(start, now int64) bool {
	most := floorAhead
	if g.cfg.ClockBack == clockBackBorrow {
		most = borrowAhead
	}
	return start-now <= floorTicks+int64(most/g.cfg.Layout.Tick)
}

// delayOf returns how far ahead of the clock the lease may start for its own reasons, for example
// after a failover of its store.
func delayOf(lease spi.WorkerIDLease) time.Duration {
	if l, ok := lease.(interface{ Delay() time.Duration }); ok {
		return l.Delay()
	}
	return 0
}

// replaceable reports whether s is a leased worker ID. If it was used with a clock that was far
// ahead, it can be replaced by another one.
func (s *workerSlot) replaceable() bool { return s.lease != nil && s.leave == nil }

// replace leases a worker ID to replace s, whose keys are ahead of the clock. back is the error for
// that.
func (g *generator) replace(ctx context.Context, s *workerSlot, back error) (*workerSlot, error) {
	next, err := g.leasedSlot(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("%w; %w", back, err)
	}
	g.cfg.Logger.Warn("shardkey: clock behind the keys of a worker ID, leasing another",
		"worker_id", s.id, "error", back)
	return next, nil
}

// over reports whether the lease was lost or released.
func (s *workerSlot) over() bool { return s.lease != nil && s.lease.Limit() == 0 }

// extend copies the lease's current limit, and reports whether it grew.
func (g *generator) extend(s *workerSlot) bool {
	if s.lease == nil {
		return false
	}
	limit := g.end
	if ms := s.lease.Limit(); ms != math.MaxInt64 {
		ticks := max(0, g.sinceMilli(ms)) / g.clock.Length()
		limit = uint64(min(ticks, g.lastTick+1)) << g.seqBits
	}
	for {
		old := s.limit.Load()
		if limit <= old {
			return false
		}
		if s.limit.CompareAndSwap(old, limit) {
			return true
		}
	}
}

// renew reserves the interval up to the end of tick. If the worker ID was lost, it leases another
// one.
func (g *generator) renew(ctx context.Context, s *workerSlot, tick int64) (*workerSlot, error) {
	err := s.lease.Renew(ctx, g.lastMilli(tick))
	if err == nil {
		g.extend(s)
		if uint64(tick+1)<<g.seqBits <= s.limit.Load() {
			return s, nil
		}
		err = errors.New("the lease was renewed, but not as far as requested")
	}
	if errors.Is(err, spi.ErrLeaseLost) {
		g.mu.Lock()
		g.figures.lost++
		g.mu.Unlock()
		next, acquireErr := g.leasedSlot(ctx, s.state.top())
		if acquireErr == nil {
			return next, nil
		}
		err = fmt.Errorf("%w; %w", err, acquireErr)
	}
	return s, g.leaseError(s, err)
}

// release ends a slot. A leased worker ID is released with the highest time that was used.
func (g *generator) release(s *workerSlot) error {
	var lastUsed int64
	if s.leave != nil {
		s.leave()
	} else if top := s.state.end(); top > s.from {
		lastUsed = g.lastMilli(int64((top - 1) >> g.seqBits))
	}
	if s.lease == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return panics.Call("the worker ID's lease", func() error { return s.lease.Release(ctx, lastUsed) })
}

// ceilTick returns the first tick that begins at or after a Unix time in milliseconds.
func (g *generator) ceilTick(ms int64) int64 {
	since := g.sinceMilli(ms)
	if since <= 0 {
		return 0
	}
	return min((since-1)/g.clock.Length()+1, g.lastTick+1)
}

// lastMilli returns the last Unix time in milliseconds that is part of tick at.
func (g *generator) lastMilli(at int64) int64 {
	return g.clock.At(at + 1).Add(-1).UnixMilli()
}

// sinceMilli returns the nanoseconds from the epoch to a Unix time in milliseconds, at most 292
// years.
func (g *generator) sinceMilli(ms int64) int64 {
	return int64(time.UnixMilli(ms).Sub(g.cfg.Epoch))
}

// identity identifies generators whose keys would collide: those with the same layout, epoch and
// worker ID. It includes the clock, because tests with different clocks use different times.
type identity struct {
	layout Layout
	epoch  int64
	worker int64
	clock  spi.Clock
}

type sharedState struct {
	state *state
	users int
}

// shared has the states of worker IDs that aren't leased. A state outlives its generators. A
// generator that is opened again continues after the earlier keys.
var shared = struct {
	sync.Mutex
	states map[identity]*sharedState
}{states: map[identity]*sharedState{}}

// join returns the state of an identity. If the identity is new, from is its first position. The
// caller calls leave once, when it no longer uses the state.
func join(id identity, ringSize, seqBits int, from uint64) (s *state, leave func(), err error) {
	if !reflect.ValueOf(id.clock).Comparable() {
		return newState(ringSize, from, seqBits), func() {}, nil
	}
	shared.Lock()
	defer shared.Unlock()
	entry := shared.states[id]
	switch {
	case entry == nil:
		entry = &sharedState{state: newState(ringSize, from, seqBits)}
		shared.states[id] = entry
	case entry.state.ringSize() == ringSize:
	case entry.users > 0:
		return nil, nil, fmt.Errorf("shardkey: worker ID %d is used in this process by generators with ring sizes %d and %d, "+
			"which cannot share their state; use different worker IDs or the same ring size", id.worker, entry.state.ringSize(), ringSize)
	default:
		// All positions below the top of the old state count as used. Ending the old state stops
		// callers that still use it.
		entry.state = newState(ringSize, max(from, entry.state.end()), seqBits)
	}
	entry.users++
	return entry.state, sync.OnceFunc(func() {
		shared.Lock()
		defer shared.Unlock()
		entry.users--
	}), nil
}

// closeTimeout is the maximum time that Close waits for the store to release a lease.
const closeTimeout = 3 * time.Second
