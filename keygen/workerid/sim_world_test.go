package workerid

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

// world is a simulation in one goroutine: processes with clocks of their own,
// a store that loses and delays, and a record of every id that was made. The
// processes run the package's own assigner and leases; only the clock, the
// store and the generator are the simulation's.
//
// Nothing is parallel, yet everything can be interleaved: a store's operation
// lets the world go on before and after it takes effect, with the calling
// process stuck in it, as if its answer were slow or it had been paused.
type world struct {
	rng     *rand.Rand
	bugs    bugs
	rules   rules
	time    int64 // true time, in milliseconds
	records map[int64]Record
	late    []func() // writes on their way, whose senders have given up
	procs   []*process
	maxID   int64
	depth   int

	made    map[id]*Lease
	repeat  error // the first repeated id
	figures figures
}

// id is an identifier: the simulation makes at most one a millisecond.
type id struct{ worker, time int64 }

// bugs are what can be taken out beside the rules.
type bugs struct {
	noLimit   bool // the generator does not look at the limit
	noCompare bool // the store does not compare
	lateLimit bool // the generator makes ids of a lease after giving it back
}

type figures struct {
	steps, ids, refused, acquired, lost, released, crashes, pauses, steppedClocks, lostAnswers, lateWrites, cutOffs int
}

func (f *figures) add(g figures) {
	f.steps += g.steps
	f.ids += g.ids
	f.refused += g.refused
	f.acquired += g.acquired
	f.lost += g.lost
	f.released += g.released
	f.crashes += g.crashes
	f.pauses += g.pauses
	f.steppedClocks += g.steppedClocks
	f.lostAnswers += g.lostAnswers
	f.lateWrites += g.lateWrites
	f.cutOffs += g.cutOffs
}

func newWorld(seed uint64, r rules, b bugs) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 1)), bugs: b, rules: r,
		time: 1_790_000_000_000, records: map[int64]Record{}, made: map[id]*Lease{},
	}
	w.maxID = int64(w.rng.IntN(5))
	for range 2 + w.rng.IntN(4) {
		p := &process{world: w}
		p.start()
		w.procs = append(w.procs, p)
	}
	return w
}

func (w *world) chance(oneIn int) bool { return w.rng.IntN(oneIn) == 0 }

// run makes steps until there were enough or an id was repeated.
func (w *world) run(steps int) {
	for w.figures.steps < steps && w.repeat == nil {
		w.step()
	}
}

func (w *world) step() {
	w.figures.steps++
	w.time += int64(w.rng.IntN(4))
	if w.chance(400) {
		w.time += int64(w.rng.IntN(300)) // nothing happens for a while
	}
	if len(w.late) > 0 && w.chance(10) {
		i := w.rng.IntN(len(w.late))
		w.late[i]()
		w.late[i] = w.late[len(w.late)-1]
		w.late = w.late[:len(w.late)-1]
	}
	w.procs[w.rng.IntN(len(w.procs))].act()
}

// meanwhile lets the others go on while one process is in a call.
func (w *world) meanwhile() {
	if w.depth >= 3 || !w.chance(4) {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	n := w.rng.IntN(8)
	if w.chance(10) {
		n = w.rng.IntN(300) // longer than a lease
	}
	for range n {
		w.step()
	}
}

func (w *world) make(l *Lease, t int64) {
	key := id{l.workerID, t}
	if other, ok := w.made[key]; ok && w.repeat == nil {
		w.repeat = fmt.Errorf("worker %d, time %d was made by leases of [%d,…) and [%d,…)", key.worker, t, other.floor, l.floor)
	}
	w.made[key] = l
	w.figures.ids++
}

// process is one process of the world, with a clock that nobody can trust.
type process struct {
	world    *world
	offset   int64   // of its clock from true time
	rate     float64 // of its clock
	started  int64
	frozen   int64 // its clock's time while it stands still, else 0
	cutOff   bool
	paused   bool
	busy     bool // in a call to the store
	assigner *Assigner
	lease    *Lease
	last     int64 // the last id's time
	former   []*Lease
}

// Now is the process's own idea of the time.
func (p *process) Now() time.Time {
	if p.frozen != 0 {
		return time.UnixMilli(p.frozen)
	}
	run := float64(p.world.time-p.started) * p.rate
	return time.UnixMilli(p.started + p.offset + int64(run))
}

// Sleep is never called: the simulation renews by hand.
func (p *process) Sleep(context.Context, time.Duration) error { return errors.New("no sleep here") }

// start is the process's beginning, with a clock that may be anywhere.
func (p *process) start() {
	p.started, p.rate, p.frozen, p.offset = p.world.time, 1, 0, 0
	p.lease, p.former = nil, nil
	p.setClock()
	a, err := NewAssigner(&lossyStore{p}, Config{
		Lease: 100 * time.Millisecond, Renew: 30 * time.Millisecond, Clock: p, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	a.rules, a.manual, a.intN = p.world.rules, true, p.world.rng.IntN
	p.assigner = a
}

func (p *process) setClock() {
	rng := p.world.rng
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

// act does one thing.
func (p *process) act() {
	w := p.world
	if p.paused {
		p.paused = !w.chance(60)
		return
	}
	switch n := w.rng.IntN(400); {
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

// close ends the process in good order. Its generator may go on until the limit
// is gone.
func (p *process) close() {
	p.busy = true
	defer func() { p.busy = false }()
	_ = p.assigner.Close()
	p.start()
}

func (p *process) keep() {
	if p.lease == nil || p.busy {
		return
	}
	p.busy = true
	defer func() { p.busy = false }()
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
	p.lease, p.last = l, l.floor-1
	return true
}

// makeID is the generator: an id's time is never below the floor or the last
// one's, is the clock's where that allows it, and is below the limit.
func (p *process) makeID() {
	if p.lease == nil && (p.busy || !p.acquire()) {
		return
	}
	l := p.lease
	t := max(p.Now().UnixMilli(), p.last+1, l.floor)
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
	var lost *LeaseLostError
	if errors.As(err, &lost) {
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
		last = 0 // none was made
	}
	p.former = append(p.former, l)
	p.lease = nil
	p.world.figures.released++
	if p.world.bugs.lateLimit {
		p.world.make(l, max(last+1, l.floor))
	}
	_ = l.Release(context.Background(), last)
}

// makeIDOfFormer is a goroutine that has not noticed that its lease has ended:
// the limit must tell it.
func (p *process) makeIDOfFormer() {
	if len(p.former) == 0 {
		return
	}
	l := p.former[p.world.rng.IntN(len(p.former))]
	if t := max(p.Now().UnixMilli(), l.floor); t < l.Limit() {
		p.world.make(l, t)
	}
}

// errAway is what a process sees of a store that it cannot reach, or that does
// not answer.
var errAway = errors.New("no answer")

// lossyStore is a process's view of the store.
type lossyStore struct{ p *process }

func (s *lossyStore) List(context.Context) ([]Entry, error) {
	w := s.p.world
	w.meanwhile()
	if s.p.cutOff {
		return nil, errAway
	}
	var entries []Entry
	for i := range w.maxID + 1 {
		if r := w.records[i]; !r.IsZero() {
			entries = append(entries, Entry{WorkerID: i, Record: r})
		}
	}
	w.meanwhile() // the answer is old when it comes
	return entries, nil
}

func (s *lossyStore) Get(_ context.Context, workerID int64) (Record, error) {
	w := s.p.world
	w.meanwhile()
	if s.p.cutOff {
		return Record{}, errAway
	}
	r := w.records[workerID]
	w.meanwhile()
	return r, nil
}

func (s *lossyStore) CompareAndSet(_ context.Context, workerID int64, prev, next Record) (bool, error) {
	w := s.p.world
	w.meanwhile()
	swap := func() bool {
		if !w.bugs.noCompare && !w.records[workerID].Same(prev) {
			return false
		}
		w.records[workerID] = next
		return true
	}
	switch {
	case s.p.cutOff:
		return false, errAway
	case w.chance(8): // the answer is lost
		w.figures.lostAnswers++
		swap()
		w.meanwhile()
		return false, errAway
	case w.chance(8): // the question comes late
		w.figures.lateWrites++
		w.late = append(w.late, func() { swap() })
		w.meanwhile()
		return false, errAway
	}
	swapped := swap()
	w.meanwhile()
	return swapped, nil
}

func (s *lossyStore) Describe() string { return "SIMULATED" }
func (s *lossyStore) Close() error     { return nil }
