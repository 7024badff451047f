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

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/keygen/internal/tick"
	"github.com/shardkey/shardkey/spi"
)

// slot is the right to make the keys of one worker ID: the state that they
// come from and the position that they must stay below.
//
// A leased slot has a state of its own, which begins at the lease's floor.
// limit follows the lease's: it is read again when it is met. Before the first
// key of each tick the lease is asked whether it is over. What it had reserved
// would be its own even then, but where the store has forgotten it, or this machine
// is a copy, somebody else makes the same keys.
type slot struct {
	state  *state
	worker int64  // shifted to its place in a key
	from   uint64 // where the state began
	limit  atomic.Uint64

	id    int64
	lease spi.WorkerIDLease // nil for a fixed worker ID
	delay time.Duration     // see delayOf
	leave func()            // leaves a shared state; nil for a leased slot
}

// unleasedSlot is the slot of a worker ID without limit.
func (g *generator) unleasedSlot(id int64, from uint64) (*slot, error) {
	st, leave, err := join(g.cfg.identity(id), g.cfg.RingSize, g.seqBits, from)
	if err != nil {
		return nil, err
	}
	s := &slot{state: st, id: id, worker: id << g.seqBits, leave: leave}
	s.limit.Store(g.end)
	return s, nil
}

// takeSlot takes the worker ID of the configuration. now is the clock's tick: the
// ring must not go back to ticks before this process's own.
func (g *generator) takeSlot(now int64) (*slot, error) {
	s, err := g.unleasedSlot(g.cfg.WorkerID, uint64(now)<<g.seqBits)
	if err != nil {
		return nil, err
	}
	if !g.cfg.WorkerIDSet {
		g.cfg.Logger.Warn(unsetWorker, "type", g.typ(), "layout", g.cfg.Layout.String())
	}
	g.slot.Store(s)
	return s, nil
}

// unsetWorker is the commonest cause of duplicate keys.
const unsetWorker = "shardkey: no worker ID set, using 0: a second process without one generates the same keys; " +
	"set worker-id, or worker-id-assigner"

// leasedSlot asks the assigner. now is the clock's tick; no key is below from.
func (g *generator) leasedSlot(ctx context.Context, now int64, from uint64) (*slot, error) {
	lease, err := g.cfg.Assigner.AcquireWorkerID(ctx, g.cfg.Layout.MaxWorkerID())
	if err == nil && isNil(lease) {
		err = errors.New("the assigner returned neither a lease nor an error")
	}
	if err != nil {
		return nil, fmt.Errorf("shardkey: %s got no worker ID: %w", g.typ(), err)
	}
	id, maxID := lease.WorkerID(), g.cfg.Layout.MaxWorkerID()
	if id < 0 || id > maxID {
		_ = guard.Call("the lease", func() error { return lease.Release(ctx, 0) })
		return nil, fmt.Errorf("shardkey: %s got worker ID %d, which is not in 0..%d", g.typ(), id, maxID)
	}
	start := g.ceilTick(lease.Floor())
	delay := delayOf(lease)
	latest := now + int64(delay)/g.clock.Length()
	if !g.begins(start, latest) {
		// Somebody else may have another one by the next key.
		err := errors.Join(startError(id, g.clock.At(start), g.clock.At(now)), lease.Release(ctx, 0))
		return nil, fmt.Errorf("shardkey: %s got no worker ID: %w", g.typ(), err)
	}
	if !g.begins(int64(from>>g.seqBits), latest) {
		from = 0 // keys need not ascend from those of a clock that was far ahead
	}
	from = max(from, uint64(start)<<g.seqBits)
	if lease.Limit() == math.MaxInt64 {
		s, err := g.unleasedSlot(id, max(from, uint64(now)<<g.seqBits))
		if err == nil {
			s.lease = lease
		}
		return s, err
	}
	s := &slot{id: id, worker: id << g.seqBits, from: from, lease: lease, delay: delay}
	s.state = newState(g.cfg.RingSize, from, g.seqBits)
	g.extend(s)
	// The lease's interval is this generator's alone, so that keys may begin
	// ahead of the clock: after a crash the floor is where the crashed process
	// had reserved to. More than that is a clock that stepped back.
	s.state.ahead.Store(max(0, int64(from>>g.seqBits)-now))
	return s, nil
}

// A lease's start may be ahead of the clock by floorAhead, and by floorTicks: it is
// rounded up to a tick, as is the time that an owner leaves to the next one. Where keys are
// made ahead of the clock, it is borrowAhead: leases are not renewed for more.
const (
	floorAhead  = time.Minute
	floorTicks  = 4
	borrowAhead = 24 * time.Hour
)

// begins reports whether keys may begin with tick start when the clock is in tick now.
func (g *generator) begins(start, now int64) bool {
	most := floorAhead
	if g.cfg.ClockBack == clockBackBorrow {
		most = borrowAhead
	}
	return start-now <= floorTicks+int64(most/g.cfg.Layout.Tick)
}

// delayOf is how far ahead of the clock a lease may start for reasons of its own, as after a
// failover of its store.
func delayOf(lease spi.WorkerIDLease) time.Duration {
	if l, ok := lease.(interface{ Delay() time.Duration }); ok {
		return l.Delay()
	}
	return 0
}

// replaceable reports whether s is a leased worker ID, in whose place another one can be had
// when it was used with a clock that was far ahead.
func (s *slot) replaceable() bool { return s.lease != nil && s.leave == nil }

// replace takes a worker ID in place of s, whose keys are ahead of the clock as back says.
func (g *generator) replace(ctx context.Context, s *slot, now int64, back error) (*slot, error) {
	next, err := g.leasedSlot(ctx, now, 0)
	if err != nil {
		return nil, fmt.Errorf("%w; %w", back, err)
	}
	g.cfg.Logger.Warn("shardkey: clock behind the keys of a worker ID, leasing another",
		"worker_id", s.id, "error", back)
	return next, nil
}

// over reports whether the lease was lost, or released.
func (s *slot) over() bool { return s.lease != nil && s.lease.Limit() == 0 }

// extend takes over the lease's limit as it is now, and reports whether it grew.
func (g *generator) extend(s *slot) bool {
	if s.lease == nil {
		return false
	}
	limit := g.end
	if ms := s.lease.Limit(); ms != math.MaxInt64 {
		ticks := tick.FloorDiv(tick.SatSub(satMillis(ms), g.clock.Epoch()), g.clock.Length())
		limit = min(limit, uint64(max(ticks, 0))<<g.seqBits)
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

// renew reserves the interval up to the end of tick, or takes another worker
// id when this one is lost.
func (g *generator) renew(ctx context.Context, s *slot, tick, now int64) (*slot, error) {
	err := s.lease.Renew(ctx, g.lastMilli(tick))
	if err == nil {
		g.extend(s)
		if uint64(tick+1)<<g.seqBits <= s.limit.Load() {
			return s, nil
		}
		err = errors.New("the lease was renewed, but not as far as was asked for")
	}
	if errors.Is(err, spi.ErrLeaseLost) {
		g.mu.Lock()
		g.figures.lost++
		g.mu.Unlock()
		next, acquireErr := g.leasedSlot(ctx, now, s.state.top())
		if acquireErr == nil {
			return next, nil
		}
		err = fmt.Errorf("%w; %w", err, acquireErr)
	}
	return s, g.leaseError(s, err)
}

// release ends a slot. A leased worker ID is released with the highest time
// that it was used for.
func (g *generator) release(s *slot) error {
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
	return guard.Call("the worker ID's lease", func() error { return s.lease.Release(ctx, lastUsed) })
}

// isNil reports whether a lease is nil, or a nil pointer in the interface.
func isNil(lease spi.WorkerIDLease) bool {
	v := reflect.ValueOf(lease)
	return lease == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// ceilTick is the first tick that begins at or after a millisecond since 1970.
func (g *generator) ceilTick(ms int64) int64 {
	since := tick.SatSub(satMillis(ms), g.clock.Epoch())
	if since <= 0 {
		return 0
	}
	return min((since-1)/g.clock.Length()+1, g.lastTick+1)
}

// lastMilli is the last millisecond since 1970 that has a part in tick at.
func (g *generator) lastMilli(at int64) int64 {
	return tick.CeilDiv(g.clock.Epoch()+(at+1)*g.clock.Length(), int64(time.Millisecond)) - 1
}

// satMillis is milliseconds in nanoseconds, at the ends where they do not fit.
func satMillis(ms int64) int64 {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return max(-most, min(ms, most)) * int64(time.Millisecond)
}

// identity is what makes the keys of two generators collide: the same bits,
// the same zero of time and the same worker. The clock belongs to it, since
// generators in different times of different tests have nothing in common.
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

// shared holds the states of worker IDs that are not leased. A state outlives its
// generators, so that one that is opened again continues after the keys that were
// made before.
var shared = struct {
	sync.Mutex
	states map[identity]*sharedState
}{states: map[identity]*sharedState{}}

// join returns the state of an identity; from is its first position when the
// identity is new. leave ends its use, once.
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
		return nil, nil, fmt.Errorf("shardkey: worker ID %d is used in this process by a generator with ring size %d, "+
			"and this one has %d, so that they cannot share their state: give them different worker IDs or the same ring size", id.worker, entry.state.ringSize(), ringSize)
	default:
		// Everything below the old state's top counts as used. Ending it stops
		// a caller that still holds it.
		entry.state = newState(ringSize, max(from, entry.state.end()), seqBits)
	}
	entry.users++
	return entry.state, sync.OnceFunc(func() {
		shared.Lock()
		defer shared.Unlock()
		entry.users--
	}), nil
}

func (c config) identity(worker int64) identity {
	return identity{layout: c.Layout, epoch: c.Epoch.UnixNano(), worker: worker, clock: c.Clock}
}

// closeTimeout bounds how long Close waits for the store to take a lease back.
const closeTimeout = 3 * time.Second
