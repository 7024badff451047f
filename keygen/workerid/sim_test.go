package workerid

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

var simSeeds = flag.Int("sim.seeds", 0, "worlds to simulate; 0: as many as take a few seconds")

// simSteps is the number of steps of a world.
const simSteps = 20_000

// raceEnabled reports whether the race detector is on, which makes the simulation slower.
func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func seeds() int {
	switch {
	case *simSeeds > 0:
		return *simSeeds
	case raceEnabled():
		return 10
	case testing.Short():
		return 30
	}
	return 300
}

// runWorlds runs a world of a kind for each seed. No ID may repeat.
func runWorlds(t *testing.T, k kind) (sum figures) {
	t.Helper()
	for seed := range seeds() {
		w := newWorld(uint64(seed), k)
		w.run(simSteps)
		if w.repeat != nil {
			t.Fatalf("seed %d, step %d: %v", seed, w.figures.steps, w.repeat)
		}
		sum.add(w.figures)
	}
	t.Logf("%d worlds: %+v", seeds(), sum)
	return sum
}

// All IDs are unique, whatever the clocks, the processes and the store do.
func TestSimulation_findsNoRepeat(t *testing.T) {
	for name, k := range map[string]kind{
		"any": {}, "store crashes": {crashes: true},
		// Taking over worker IDs at any time, even from live holders, costs leases but repeats no
		// ID. Uniqueness doesn't depend on clocks.
		"any record is free": {anyFree: true},
		// Without a record a lease starts one length ahead, so the removed record isn't missed.
		"records are removed":           {removals: true},
		"a quarantine":                  {quarantine: 30 * time.Millisecond},
		"records of SNOWFLAKE's leases": {removals: true, real: true},
	} {
		t.Run(name, func(t *testing.T) {
			sum := runWorlds(t, k)
			happened := []int{sum.ids / 1000, sum.acquired, sum.released, sum.crashes, sum.lostAnswers, sum.lateWrites}
			if !k.real {
				happened = append(happened, sum.lost, sum.forgotten)
			}
			if k.removals {
				happened = append(happened, sum.removed/10)
			}
			for _, n := range happened {
				if n < seeds() {
					t.Errorf("too little happened to prove anything: %+v", sum)
				}
			}
		})
	}
}

// The records are removed at every step of a world, once in each.
func TestSimulation_recordsRemovedAtEachStep(t *testing.T) {
	const steps = 400
	for seed := range uint64(5) {
		for at := range steps {
			w := newWorld(seed, kind{removals: true})
			w.run(at)
			for id := range w.maxID + 1 {
				w.remove(id)
			}
			w.run(at + steps)
			if w.repeat != nil {
				t.Fatalf("seed %d, removed after step %d: %v", seed, at, w.repeat)
			}
		}
	}
}

// The simulation must find duplicates when a safeguard is missing. Otherwise it proves nothing.
func TestSimulation_findsSeededBugs(t *testing.T) {
	for name, b := range map[string]bugs{
		"limit is not looked at":  {noLimit: true},
		"store does not compare":  {noCompare: true},
		"an id after giving back": {lateLimit: true},
	} {
		t.Run(name, func(t *testing.T) { findRepeat(t, kind{bugs: b}, simSteps, 300) })
	}
}

// findRepeat fails if none of the worlds finds a duplicate.
func findRepeat(t *testing.T, k kind, steps, worlds int) {
	t.Helper()
	for seed := range worlds {
		w := newWorld(uint64(seed), k)
		w.run(steps)
		if w.repeat != nil {
			t.Logf("found with seed %d at step %d: %v", seed, w.figures.steps, w.repeat)
			return
		}
	}
	t.Error("not found")
}

// These worlds use SNOWFLAKE in place of the simulation's generator.
func TestSimulation_ofSnowflake(t *testing.T) {
	sum := runWorlds(t, kind{real: true})
	if sum.ids/1000 < seeds() || sum.released < seeds() || sum.lostAnswers < seeds() {
		t.Errorf("too little happened to prove anything: %+v", sum)
	}
	for name, b := range map[string]bugs{"no limit": {farLimit: true}, "no comparison": {noCompare: true}} {
		t.Run(name, func(t *testing.T) { findRepeat(t, kind{bugs: b, real: true}, simSteps, 300) })
	}
}

// failoverSteps is the number of steps of a world with failovers. It is short, because the longest
// lease is recorded at the beginning.
const failoverSteps = simSteps / 5

// Replicas without the last writes replace servers, and processes have leases of three lengths.
// All IDs are unique.
func TestSimulation_failoversWithLeasesOfDifferentLengths(t *testing.T) {
	for _, real := range []bool{false, true} {
		var sum figures
		worlds := (seeds() + 2) / 3
		for seed := range worlds {
			w := newWorld(uint64(seed), kind{failovers: true, real: real})
			w.run(failoverSteps)
			if w.repeat != nil {
				t.Fatalf("seed %d, step %d: %v", seed, w.figures.steps, w.repeat)
			}
			sum.add(w.figures)
		}
		t.Logf("%d worlds: %+v", worlds, sum)
		for _, n := range []int{sum.ids / 50, sum.acquired, sum.failovers} {
			if n < worlds {
				t.Errorf("too little happened to prove anything: %+v", sum)
			}
		}
	}
}

// A seed determines a world, so that failures can be reproduced.
func TestSimulation_isReproducible(t *testing.T) {
	var have []figures
	for range 2 {
		w := newWorld(7, kind{})
		w.run(simSteps)
		have = append(have, w.figures)
	}
	must.Equal(t, have[1], have[0])
}

// process is a process of the world, with an unreliable clock.
type process struct {
	world    *world
	offset   int64   // difference of its clock from true time
	rate     float64 // rate of its clock
	started  int64
	frozen   int64 // time of its clock while it stands still, otherwise 0
	cutOff   bool
	paused   bool
	busy     bool // in a call of the store
	nextKeep int64
	assigner *assigner
	real     Snowflake // generates the keys in worlds of SNOWFLAKE
	lease    *lease
	ahead    int64 // how far ahead of its clock the lease started
	last     int64 // time of the last ID
	former   []*lease
}

// Now returns the time of the process' clock.
func (p *process) Now() time.Time {
	if p.frozen != 0 {
		return time.UnixMilli(p.frozen)
	}
	run := float64(p.world.time-p.started) * p.rate
	return time.UnixMilli(p.started + p.offset + int64(run))
}

// Sleep is never called, because the simulation renews explicitly.
func (p *process) Sleep(context.Context, time.Duration) error { return errors.New("no sleep here") }

// start starts the process with any clock.
func (p *process) start() {
	p.started, p.rate, p.frozen, p.offset = p.world.time, 1, 0, 0
	p.lease, p.former = nil, nil
	p.setClock()
	store, lease := Store(&lossyStore{p}), 100*time.Millisecond
	if w := p.world; w.failovers {
		store = replicatedStore{&lossyStore{p}}
		lease = []time.Duration{simLag, simLag, simLag, 100, 100, 400}[w.rng.IntN(6)] * time.Millisecond
	}
	a := assign(store, config{
		Lease: lease, Renew: lease * 3 / 10, Quarantine: p.world.quarantine, Clock: p, Logger: slog.New(slog.DiscardHandler),
		MaxClockAhead: horizon, // uniqueness doesn't depend on it
	})
	a.renew, a.intN = nil, p.world.rng.IntN
	a.identity = func() string { return "" }
	a.uptime = func() (time.Duration, bool) { return 0, false }
	p.assigner = a
	if p.world.real {
		p.startReal()
	}
}

func (p *process) setClock() {
	rng := p.world.rng
	if p.world.removals {
		return
	}
	if p.world.failovers {
		p.offset = int64(rng.IntN(simLag) - simLag/2)
		return
	}
	switch rng.IntN(12) {
	case 0:
		p.offset = int64(rng.IntN(400) - 200)
	case 1:
		p.offset = int64(rng.IntN(7_200_000) - 3_600_000)
	case 2:
		p.rate = 0.5 + rng.Float64()
	case 3:
		p.frozen = p.Now().UnixMilli()
	default:
		p.offset, p.rate, p.frozen, p.started = 0, 1, 0, p.world.time
	}
}

// act performs one action.
func (p *process) act() {
	w := p.world
	if p.paused {
		p.paused = !w.chance(60)
		return
	}
	if w.real {
		p.lease = p.realLease()
	}
	switch n := w.rng.IntN(400); {
	case n < 250 && w.real:
		p.makeKeys()
	case n < 250:
		p.makeID()
	case n < 340:
		p.keep()
	case n < 350 && (p.cutOff || w.chance(5)):
		p.cutOff = !p.cutOff
		w.figures.cutOffs++
	case n < 354:
		p.paused = true
		w.figures.pauses++
	case n < 360:
		p.setClock()
		w.figures.steppedClocks++
	case n < 366 && !p.busy && w.real:
		p.closeReal()
	case n < 366 && !p.busy:
		p.release()
	case n < 368 && !p.busy:
		p.crash()
	case n < 369 && !p.busy:
		p.close()
	default:
		p.makeIDOfFormer()
	}
}

func (p *process) crash() {
	p.world.figures.crashes++
	p.start()
}

// close closes the process. Its generator may continue until the limit is gone.
func (p *process) close() {
	p.busy = true
	defer func() { p.busy = false }()
	_ = p.assigner.Close()
	p.start()
}

func (p *process) keep() {
	if p.lease == nil || p.busy || p.world.failovers && p.world.time < p.nextKeep {
		return
	}
	p.busy = true
	defer func() { p.busy = false }()
	p.nextKeep = p.world.time + p.assigner.every().Milliseconds()
	_ = p.lease.keep(context.Background())
}

func (p *process) acquire() bool {
	p.busy = true
	defer func() { p.busy = false }()
	l, err := p.assigner.acquire(context.Background(), p.world.maxID)
	if err != nil {
		p.world.figures.refused++
		return false
	}
	p.world.figures.acquired++
	p.lease, p.last, p.ahead = l, l.floor-1, max(0, l.floor-p.Now().UnixMilli())
	return true
}

// makeID is the generator. An ID's time is the clock's, but never below the floor or the last
// ID's time, and always below the limit.
func (p *process) makeID() {
	if p.lease == nil && (p.busy || !p.acquire()) {
		return
	}
	l := p.lease
	t := max(p.Now().UnixMilli(), p.last+1, l.floor)
	if p.world.removals && t > p.Now().UnixMilli()+p.ahead {
		return
	}
	if !p.world.bugs.noLimit && t >= l.Limit() {
		if p.busy || !p.renew(t) {
			return
		}
		t = max(t, p.last+1)
	}
	if p.lease == l && (p.world.bugs.noLimit || t < l.Limit()) {
		p.last = t
		p.world.make(l, t)
	}
}

func (p *process) renew(t int64) bool {
	p.busy = true
	defer func() { p.busy = false }()
	err := p.lease.Renew(context.Background(), t)
	if errors.Is(err, spi.ErrLeaseLost) {
		p.world.figures.lost++
		p.former = append(p.former, p.lease)
		p.lease = nil
	}
	return err == nil
}

func (p *process) release() {
	if p.lease == nil {
		return
	}
	p.busy = true
	defer func() { p.busy = false }()
	l, last := p.lease, p.last
	if last < l.floor {
		last = 0 // no ID was generated
	}
	p.former = append(p.former, l)
	p.lease = nil
	p.world.figures.released++
	if p.world.bugs.lateLimit {
		p.world.make(l, max(last+1, l.floor))
	}
	_ = l.Release(context.Background(), last)
}

// makeIDOfFormer is a goroutine that hasn't noticed the end of its lease. The limit must stop it.
func (p *process) makeIDOfFormer() {
	if len(p.former) == 0 {
		return
	}
	l := p.former[p.world.rng.IntN(len(p.former))]
	if t := max(p.Now().UnixMilli(), l.floor); t < l.Limit() {
		p.world.make(l, t)
	}
}

// startReal gives a process a SNOWFLAKE generator with one of the clock-back policies. It never
// waits: a wait is an error of the process' clock.
func (p *process) startReal() {
	rng := p.world.rng
	props := map[string]any{
		"max-tolerate-time-difference-milliseconds": "0",
		"clock-back": []string{"borrow", "error", "wait"}[rng.IntN(3)],
	}
	ring := []int{1, 50}[rng.IntN(2)]
	g, err := NewSnowflake(&seenAssigner{p}, spi.Host{Clock: p}, ring, props)
	if err != nil {
		panic(err)
	}
	p.real = g
}

// realLease returns the generator's lease, for explicit renewals.
func (p *process) realLease() *lease {
	for l := range p.assigner.leases {
		return l // there is at most one
	}
	return nil
}

// ended is the context of a caller that doesn't wait. While another caller queries the store, it
// gets keys immediately or an error.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (p *process) makeKeys() {
	ctx := context.Background()
	if p.busy {
		ctx = ended
	}
	defer func(busy bool) { p.busy = busy }(p.busy)
	p.busy = true
	keys := make([]int64, 1+p.world.rng.IntN(3))
	if err := p.real.GenerateInt64Keys(ctx, spi.Column{}, keys); err != nil {
		p.world.figures.refused++
		return
	}
	for _, k := range keys {
		if p.world.keys[k] && p.world.repeat == nil {
			p.world.repeat = fmt.Errorf("key %d twice", k)
		}
		p.world.keys[k] = true
		p.world.figures.ids++
	}
}

// closeReal closes the generator and opens another one.
func (p *process) closeReal() {
	p.busy = true
	defer func() { p.busy = false }()
	p.world.figures.released++
	_ = p.real.Close()
	p.startReal()
}

// seenAssigner counts the generator's use of its leases.
type seenAssigner struct{ p *process }

func (s *seenAssigner) AcquireWorkerID(ctx context.Context, maxWorkerID int64) (spi.WorkerIDLease, error) {
	w := s.p.world
	l, err := s.p.assigner.AcquireWorkerID(ctx, min(maxWorkerID, w.maxID))
	if err != nil {
		return nil, err
	}
	w.figures.acquired++
	if w.bugs.farLimit {
		return farLimit{l}, nil
	}
	return l, nil
}

// farLimit is a lease that reports a wrong limit.
type farLimit struct{ spi.WorkerIDLease }

func (farLimit) Limit() int64 { return 1 << 42 }
