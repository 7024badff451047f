package snowflake

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

// The lease's end is checked before the first key of each tick. With ticks longer than 10 ms it
// is checked before each key.
func TestLease_lostWithinATick(t *testing.T) {
	for _, ring := range []int{1, 200} {
		for tick, worker := range map[time.Duration]int64{ms: 0, 10 * ms: 0, 11 * ms: 1} {
			g, _, store := leased(t, config{RingSize: ring, Layout: Layout{TimeBits: 41, WorkerBits: 4, SequenceBits: 18, Tick: tick}})
			mustKeys(t, g, 1)
			store.lose(0)
			must.Equal(t, partsOf(t, g, mustKeys(t, g, 1)[0]).WorkerID, worker, "ring", ring, "ticks of", tick, "worker")
		}
	}
}

// A lease may begin at most a minute, four ticks and its own delay ahead of the clock. With
// borrowed keys, it is a day instead of a minute. A worker ID that begins later was used with a
// wrong clock. It is released as it was, and the next key has another one.
func TestLease_floorAtTheBound(t *testing.T) {
	for _, tt := range []struct {
		policy string
		delay  time.Duration
		most   time.Duration
	}{
		{clockBackWait, 0, time.Minute + 4*ms},
		{clockBackFail, 0, time.Minute + 4*ms},
		{clockBackBorrow, 0, 24*time.Hour + 4*ms},
		{clockBackWait, 90 * time.Second, 150*time.Second + 4*ms},
		{clockBackWait, 90*time.Second + ms - 1, 150*time.Second + 4*ms},
	} {
		for _, beyond := range []time.Duration{0, ms} {
			g, clock, store := leased(t, config{ClockBack: tt.policy})
			floor := clock.Now().Add(tt.most + beyond)
			store.reserved[0], store.delay = floor.UnixMilli(), tt.delay
			key, err := g.Next(t.Context())
			if beyond == 0 {
				if err != nil || !partsOf(t, g, key).Time.Equal(floor) {
					t.Errorf("%s, a delay of %v\nhave: %d, %v\nwant: a key of the floor", tt.policy, tt.delay, key, err)
				}
				continue
			}
			if !errors.Is(err, spi.ErrNoWorkerID) || errors.Is(err, spi.ErrClockBack) ||
				!strings.Contains(err.Error(), "worker ID 0 is free, but its keys begin at "+stamp(floor)) {
				t.Errorf("%s, a delay of %v, a tick too far\nhave: %v\nwant: ErrNoWorkerID that names worker ID 0", tt.policy, tt.delay, err)
			}
			if store.owner[0] != nil || store.reserved[0] != floor.UnixMilli() {
				t.Errorf("%s\nhave: worker ID 0 is kept\nwant: it is released as it was", tt.policy)
			}
			store.first = 1
			must.Equal(t, partsOf(t, g, mustKeys(t, g, 1)[0]).WorkerID, 1, "worker ID of the next key")
		}
	}
}

// ahead returns a generator whose lease begins 10 s ahead of the clock because of its floor.
func ahead(t *testing.T, cfg config) (*generator, *handClock, *fakeStore) {
	t.Helper()
	g, clock, store := leased(t, cfg)
	store.reserved[0] = clock.Now().Add(10 * time.Second).UnixMilli()
	return g, clock, store
}

// A floor ahead of the clock counts as the clock's time. After a step back of the clock, callers
// wait, borrow or get an error, as without the floor.
func TestLease_stepBackFromAFloor(t *testing.T) {
	for _, ring := range []int{1, 4} {
		for _, tt := range []struct {
			policy string
			step   time.Duration
			slept  time.Duration
			fails  bool
		}{
			{clockBackWait, 0, 0, false},
			{clockBackWait, 5 * ms, 5 * ms, false},
			{clockBackWait, 10 * ms, 10 * ms, false},
			{clockBackWait, 14 * ms, 0, false},
			{clockBackWait, 40 * time.Second, 0, false},
			{clockBackFail, 5 * ms, 0, true},
			{clockBackFail, time.Second, 0, true},
			{clockBackFail, time.Second + ms, 0, false},
			{clockBackBorrow, 5 * ms, 0, false},
			{clockBackBorrow, time.Minute, 0, false},
		} {
			name := fmt.Sprintf("ring %d, %s, %v", ring, tt.policy, tt.step)
			g, clock, _ := ahead(t, config{RingSize: ring, ClockBack: tt.policy, MaxVibrationOffset: -1})
			before := mustKeys(t, g, 1)[0]
			clock.step(-tt.step)
			start := clock.Now()
			health, ready := g.Health().Err, g.Ready(t.Context())
			key, err := g.Next(t.Context())
			slept := clock.Now().Sub(start)
			for what, err := range map[string]error{"health": health, "ready": ready, "key": err} {
				if tt.fails != errors.Is(err, spi.ErrClockBack) || !tt.fails && err != nil {
					t.Errorf("%s, %s\nhave: %v\nwant: ErrClockBack: %v", name, what, err, tt.fails)
				}
			}
			if !tt.fails && (key <= before || slept != tt.slept) {
				t.Errorf("%s\nhave: %d after %d, waited %v\nwant: an ascending key after %v", name, key, before, slept, tt.slept)
			}
			clock.step(tt.step)
		}
	}
}

// A caller that is delayed between reading the clock and loading the word finds a newer word.
// This is not a step of the clock. The caller reads the clock again, with borrowed keys or
// without, for a key or for Ready.
func TestClockBack_lateReadingIsServed(t *testing.T) {
	for _, floor := range []bool{false, true} {
		for _, probe := range []bool{false, true} {
			g, clock, _ := leased(t, config{ClockBack: clockBackFail})
			if floor {
				g, clock, _ = ahead(t, config{ClockBack: clockBackFail})
			}
			mustKeys(t, g, 1)
			now, ns := g.clock.Read()
			g.slot.Load().state.word.Add(4096) // by another caller, in the next tick
			clock.step(ms)
			g.mu.Lock()
			g.enter(&waiter{rest: make([]int64, 1), probe: probe, column: g.columns.find(spi.Column{}, g.period)})
			o, err := g.serveAt(now, ns)
			if err != nil || o.waits() || g.queue.Len() > 0 || g.slot.Load().state.steps.Load() != 0 {
				t.Errorf("a floor: %v, a probe: %v\nhave: %+v, %v, %d steps\nwant: served, no step of the clock",
					floor, probe, o, err, g.slot.Load().state.steps.Load())
			}
			g.mu.Unlock()
		}
	}
}

// The clock steps back to the epoch, which is a valid time.
func TestClockBack_toTheEpoch(t *testing.T) {
	for _, ready := range []bool{false, true} {
		g, clock := fixed(t, config{})
		clock.now = DefaultEpoch.Add(5 * ms)
		before := mustKeys(t, g, 1)[0]
		clock.now = DefaultEpoch
		if ready {
			must.Do(t, g.Ready(t.Context()), "ready")
		}
		if key := mustKeys(t, g, 1)[0]; key <= before || !clock.now.Equal(DefaultEpoch.Add(5*ms)) {
			t.Errorf("have: %d at %v\nwant: a key above %d when the clock has caught up", key, clock.now, before)
		}
	}
}

// A ring's keys ahead of the clock continue at the clock's rate.
func TestClockBack_ringBorrowsAtTheClocksRate(t *testing.T) {
	g, clock := fixed(t, config{ClockBack: clockBackBorrow, RingSize: 4, MaxVibrationOffset: -1})
	mustKeys(t, g, 1)
	clock.step(3 * ms)
	newest := partsOf(t, g, mustKeys(t, g, 1)[0]).Time
	clock.step(-time.Second)
	start := clock.Now()
	first := partsOf(t, g, mustKeys(t, g, 4095)[0])
	must.Equal(t, first.Time, newest, "the tick that is continued")
	must.Equal(t, clock.Now().Sub(start), 0, "waited for the rest of it")
	must.Equal(t, g.Health().Clock.Ahead, time.Second, "borrowed for it")
	mustKeys(t, g, 100*4096)
	must.Equal(t, clock.Now().Sub(start), 100*ms, "100 ticks of keys")
	must.Equal(t, g.Health().Clock.Ahead, time.Second, "borrowed")
	must.Equal(t, *g.Health().Clock.Steps, 1, "steps of the clock")
}

// A ring continues in past ticks without a wait. A clock one tick behind the newest is only the
// order of two readings. More than that is a step, which counts once until the clock has caught
// up.
func TestRing_countsSteps(t *testing.T) {
	for back, want := range map[time.Duration]int64{0: 0, ms: 0, 2 * ms: 1, 50 * ms: 1} {
		g, clock := fixed(t, config{RingSize: 200})
		for range 100 {
			mustKeys(t, g, 1)
			clock.step(ms)
		}
		mustKeys(t, g, 1)
		clock.step(-back)
		for range 3 {
			mustKeys(t, g, 1)
		}
		must.Equal(t, *g.Health().Clock.Steps, want, fmt.Sprintf("steps after one of %v", back))
		clock.step(back + ms)
		mustKeys(t, g, 1)
		clock.step(-back)
		mustKeys(t, g, 1)
		if back != ms { // now two ticks behind
			must.Equal(t, *g.Health().Clock.Steps, 2*want, fmt.Sprintf("steps after two of %v", back))
		}
	}
}

// A ring counts each key once, of any tick, before and after Close.
func TestRing_issued(t *testing.T) {
	g, clock := fixed(t, config{RingSize: 4, MaxVibrationOffset: 3})
	want := 0
	for i := range 50 {
		n := 1 + i%7
		mustKeys(t, g, n)
		want += n
		must.Equal(t, g.Health().Issued, int64(want), "issued")
		clock.step([]time.Duration{0, ms, -ms, 3 * ms, 2 * ms}[i%5])
	}
	must.Do(t, g.Close(), "close")
	must.Equal(t, g.Health().Issued, int64(want), "issued after Close")
}

// The tick after a full one begins at sequence 0, as with ShardingSphere, even without a wait
// before it. The next offset doesn't change.
func TestQueue_ticksThatAreCaughtUpBeginAtZero(t *testing.T) {
	for _, ring := range []int{1, 200} {
		for _, behind := range []time.Duration{ms, 10 * ms} {
			inBubble(t, config{RingSize: ring, MaxVibrationOffset: 63}, func(t *testing.T, g *generator) {
				mustKeys(t, g, 2*4096) // saturated
				g.columns.find(spi.Column{}, g.period).starts.Store(5)
				time.Sleep(behind)
				start := time.Now()
				for range behind / ms {
					parts := partsOf(t, g, mustKeys(t, g, 3000)[0])
					if parts.Sequence != 0 || time.Since(start) != 0 || g.columns.find(spi.Column{}, g.period).starts.Load() != 5 {
						t.Errorf("ring %d, %v behind\nhave: %+v after %v, then offset %d\nwant: sequence 0 at once, 5",
							ring, behind, parts, time.Since(start), g.columns.find(spi.Column{}, g.period).starts.Load())
					}
				}
			})
		}
	}
}

// Keys lag behind the clock by at most the ticks that may be caught up, as long as the layout
// counts as saturated.
func TestState_lags(t *testing.T) {
	g := mustNew(t, config{WorkerIDSet: true})
	st := newState(1, 0, g.seqBits)
	g.crossed(st, 1000)
	for _, tt := range []struct {
		tick, now int64
		want      bool
	}{
		{1000, 1000, true}, {960, 1000, true}, {959, 1000, false}, {1000, 1040, true}, {1001, 1041, false}, {1041, 1041, false},
	} {
		must.Equal(t, g.lags(st, tt.tick, tt.now), tt.want, "tick", tt.tick, "at", tt.now)
	}
	byHand, _ := fixed(t, config{})
	byHand.crossed(st, 1000)
	must.Equal(t, byHand.lags(st, 1000, 1000), false, "keys lag behind a clock that is not the system's")
}

// With many callers waiting, the first one sleeps longer: a millisecond for every 64 callers, at
// most 5.
func TestQueue_crowdDelay(t *testing.T) {
	for _, system := range []bool{true, false} {
		cfg := config{WorkerIDSet: true}
		if !system {
			cfg.Clock = newHandClock()
		}
		g := mustNew(t, cfg)
		for waiting, want := range map[int32]time.Duration{0: 0, 63: 0, 64: ms, 191: 2 * ms, 320: 5 * ms, 10_000: 5 * ms} {
			if !system {
				want = 0
			}
			g.waiting.Store(waiting)
			must.Equal(t, g.crowdDelay(), want, fmt.Sprintf("%d wait", waiting))
		}
		g.waiting.Store(0)
	}
}

// Health adds up keys, steps of the clock and lost leases of all worker IDs, also after Close.
func TestHealth_workerIDsAddUp(t *testing.T) {
	g, clock, store := leased(t, config{})
	for id := range int64(3) {
		mustKeys(t, g, 2)
		clock.step(-5 * ms)
		mustKeys(t, g, 1)
		if h := g.Health(); h.Issued != 3*(id+1) || *h.Clock.Steps != id+1 || h.Lease.Lost != id || *h.WorkerID != id {
			t.Errorf("worker ID %d\nhave: %+v\nwant: 3 keys, a step and the loss of each before", id, h)
		}
		if id < 2 {
			store.lose(id)
			clock.step(time.Second)
		}
	}
	store.fail(errAway)
	must.Is(t, g.Close(), errAway, "close")
	h := g.Health()
	if h.Issued != 9 || *h.Clock.Steps != 3 || !errors.Is(h.Err, spi.ErrClosed) || errors.Is(h.Err, errAway) {
		t.Errorf("closed\nhave: %+v\nwant: 9 keys, 3 steps, ErrClosed alone", h)
	}
	if h := mustNew(t, config{Clock: clock, WorkerID: 5}).Health(); h.Err != nil || h.WorkerID != nil {
		t.Errorf("before the first key\nhave: %+v\nwant: no error, no worker ID", h)
	}
}

// Health reports the time by which the newest key is ahead of the clock, if there is a key. It
// warns if that is more than a second, the tolerance and the lease's delay explain.
func TestHealth_borrowed(t *testing.T) {
	g, _ := fixed(t, config{MaxVibrationOffset: -1})
	mustKeys(t, g, 4096)
	must.Equal(t, g.Health().Clock.Ahead, 0, "a full tick")

	late, _, _ := ahead(t, config{})
	must.Do(t, late.Ready(t.Context()), "ready")
	must.Equal(t, late.Health().Clock.Ahead, 0, "without a key")
	must.Do(t, late.Close(), "close")

	for _, tt := range []struct{ tolerance, delay, most time.Duration }{{0, 0, time.Second}, {2 * time.Second, 0, 2 * time.Second}, {0, time.Minute, time.Minute + time.Second}} {
		for _, back := range []time.Duration{tt.most, tt.most + ms} {
			g, clock, store := leased(t, config{ClockBack: clockBackBorrow, Tolerance: tt.tolerance})
			store.delay = tt.delay
			mustKeys(t, g, 1)
			clock.step(-back)
			mustKeys(t, g, 1)
			h := g.Health()
			must.Equal(t, h.Clock.Ahead, back, "borrowed")
			warned := strings.Contains(strings.Join(h.Warnings, "\n"), back.String()+" ahead of the clock")
			must.Equal(t, warned, back > tt.most, back, "ahead,", tt)
		}
	}
}

// A worker ID without keys is released unchanged.
func TestLease_isReleasedUnused(t *testing.T) {
	for _, ring := range []int{1, 4} {
		g, _, store := ahead(t, config{RingSize: ring})
		must.Do(t, g.Ready(t.Context()), "ready")
		lease := store.owner[0]
		must.Do(t, g.Close(), "close")
		if lease.lastUsed != 0 || store.owner[0] != nil {
			t.Errorf("ring %d\nhave: released with %d\nwant: 0, as it was never used", ring, lease.lastUsed)
		}
	}
}

// The last tick of the layout has keys, and the lease is renewed for it.
func TestLease_isRenewedForTheLastTick(t *testing.T) {
	g, clock, store := leased(t, config{Layout: Layout{TimeBits: 30, WorkerBits: 3, SequenceBits: 10, Tick: time.Second}})
	clock.now = g.clock.At(g.lastTick).Add(-time.Minute)
	mustKeys(t, g, 1)
	clock.now = g.clock.At(g.lastTick)
	if parts := partsOf(t, g, mustKeys(t, g, 1)[0]); !parts.Time.Equal(clock.now) || store.owner[0].renewals != 1 {
		t.Errorf("have: %+v, %d renewals\nwant: a key of the last tick, renewed once", parts, store.owner[0].renewals)
	}
}

// If the clock's tick is full, Ready doesn't renew a lease that has keys left.
func TestReady_renewsNothingEarly(t *testing.T) {
	g, _, store := ahead(t, config{MaxVibrationOffset: -1})
	mustKeys(t, g, 4096)
	must.Do(t, g.Ready(t.Context()), "ready")
	must.Equal(t, store.owner[0].renewals, 0, "renewals")
}

// ceilTick returns the first tick that begins at or after a floor, within the layout.
func TestGenerator_ceilTick(t *testing.T) {
	g := mustNew(t, config{WorkerIDSet: true, Layout: Layout{TimeBits: 30, WorkerBits: 1, SequenceBits: 1, Tick: 10 * ms}})
	epoch := DefaultEpoch.UnixMilli()
	for floor, want := range map[int64]int64{
		epoch: 0, epoch - 1: 0, 0: 0, math.MinInt64: 0, epoch + 1: 1, epoch + 10: 1, epoch + 11: 2,
		epoch + 10*(1<<30-1): 1<<30 - 1, epoch + 10*(1<<30): 1 << 30, epoch + 10*(1<<31): 1 << 30, math.MaxInt64: 1 << 30,
	} {
		must.Equal(t, g.ceilTick(floor), want, fmt.Sprintf("the first tick from %d", floor))
	}
}

// unlimited is a lease without a limit that records its release.
type unlimited struct {
	givenID
	released *int
}

func (u unlimited) AcquireWorkerID(context.Context, int64) (spi.WorkerIDLease, error) { return u, nil }
func (u unlimited) Release(context.Context, int64) error                              { *u.released++; return nil }

// A worker ID without a limit is released once, by Close.
func TestLease_unlimitedWorkerIDIsReleased(t *testing.T) {
	released := 0
	g := mustNew(t, config{Clock: newHandClock(), Assigner: unlimited{3, &released}})
	mustKeys(t, g, 1)
	must.Equal(t, released, 0, "released before Close")
	for range 2 {
		must.Do(t, g.Close(), "close")
	}
	must.Equal(t, released, 1, "released by Close")
}

// endsCaller leases a worker ID, and cancels its caller's context in the meantime.
type endsCaller struct {
	*fakeStore
	end context.CancelFunc
}

func (e endsCaller) AcquireWorkerID(ctx context.Context, most int64) (spi.WorkerIDLease, error) {
	defer e.end()
	return e.fakeStore.AcquireWorkerID(ctx, most)
}

// A lease that arrives when the caller's context ends is used, because its key needs no wait.
func TestLease_comesAsTheContextEnds(t *testing.T) {
	clock := newHandClock()
	ctx, cancel := context.WithCancel(t.Context())
	g := mustNew(t, config{Clock: clock, Assigner: endsCaller{newFakeStore(clock), cancel}})
	if key, err := g.Next(ctx); err != nil || key == 0 {
		t.Errorf("have: %d, %v\nwant: a key", key, err)
	}
}

// Ready's error contains the cause once.
func TestReady_namesTheCauseOnce(t *testing.T) {
	g, _, store := leased(t, config{})
	store.fail(errAway)
	if err := g.Ready(t.Context()); err == nil || strings.Count(err.Error(), "connection refused") != 1 {
		t.Errorf("have: %v\nwant: the store's error once", err)
	}
}

// described is an assigner with a description.
type described struct{ spi.WorkerIDAssigner }

func (described) Describe() string { return "a table" }

func TestGenerator_describesTheWorkerID(t *testing.T) {
	clock := newHandClock()
	g := mustNew(t, config{Clock: clock, Assigner: described{newFakeStore(clock)}, RingSize: 2})
	for _, worker := range []string{"no worker ID yet", "worker 0"} {
		want := "SNOWFLAKE_RING 41-10-12 (time-worker-sequence bits), tick 1ms, epoch 2016-11-01T00:00:00Z, " +
			worker + " from a table, clock-back wait 10ms, vibration 0..1, ring of 2"
		must.Equal(t, g.Describe(), want, "description")
		mustKeys(t, g, 1)
	}
}
