package workerid

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// world is a simulation in one goroutine: processes with clocks of their own,
// a store that loses and delays, and a record of every id that was made. The
// processes run the package's own assigner and leases; only the clock, the
// store and the generator are the simulation's.
//
// Nothing is parallel, yet everything can be interleaved: a store's operation
// lets the world continue before and after it takes effect, with the calling
// process stuck in it, as if its answer were slow or it had been paused.
type world struct {
	rng    *rand.Rand
	bugs   bugs
	rules  rules
	time   int64              // true time, in milliseconds
	log    map[int64][]Record // of each worker ID: the last one is what the store shows
	kept   map[int64]int      // how many of them outlive the store's crash
	starts int                // of the store
	late   []func()           // writes on their way, whose senders have given up
	procs  []*process
	maxID  int64
	depth  int
	real   bool // processes have SNOWFLAKE generators, not the simulation's

	// In a world of failovers the server is replaced by replicas that lack its last writes,
	// processes have leases of different lengths, and their clocks agree.
	failovers bool
	server    int
	at        map[int64][]int64 // when each record of log was written

	made    map[id]*lease
	keys    map[int64]bool // of real generators
	repeat  error          // the first repeated id
	figures figures
}

// id is an identifier: the simulation makes at most one a millisecond.
type id struct{ worker, time int64 }

// bugs are what can be taken out next to the rules.
type bugs struct {
	noLimit   bool // the generator does not look at the limit
	noCompare bool // the store does not compare
	lateLimit bool // the generator makes ids of a lease after giving it back
	farLimit  bool // leases tell a real generator a limit that they do not have
}

type figures struct {
	steps, ids, refused, acquired, lost, released, crashes, pauses, steppedClocks, lostAnswers, lateWrites, cutOffs, forgotten, failovers int
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
	f.forgotten += g.forgotten
	f.failovers += g.failovers
}

func newWorld(seed uint64, r rules, b bugs) *world { return makeWorld(seed, r, b, false) }

func makeWorld(seed uint64, r rules, b bugs, real bool) *world {
	return (&world{real: real}).populate(seed, r, b)
}

func (w *world) populate(seed uint64, r rules, b bugs) *world {
	*w = world{
		real: w.real, failovers: w.failovers, keys: map[int64]bool{}, at: map[int64][]int64{},
		rng: rand.New(rand.NewPCG(seed, 1)), bugs: b, rules: r,
		time: 1_790_000_000_000, log: map[int64][]Record{}, kept: map[int64]int{}, made: map[id]*lease{},
	}
	w.maxID = int64(w.rng.IntN(5))
	if w.failovers {
		w.maxID = int64(w.rng.IntN(2))
	}
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
	if w.chance(1000) {
		w.crashStore()
	}
	if w.failovers && w.chance(100) {
		w.failOver()
	}
	w.procs[w.rng.IntN(len(w.procs))].act()
}

// meanwhile lets the others continue while one process is in a call.
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

func (w *world) make(l *lease, t int64) {
	key := id{l.workerID, t}
	if other, ok := w.made[key]; ok && w.repeat == nil {
		w.repeat = fmt.Errorf("worker %d, time %d was made by leases of [%d,…) and [%d,…)", key.worker, t, other.floor, l.floor)
	}
	w.made[key] = l
	w.figures.ids++
}

// errAway is what a process sees of a store that it cannot reach, or that does
// not answer.
var errAway = errors.New("no answer")

// shown is the record that the store shows.
func (w *world) shown(workerID int64) Record {
	if log := w.log[workerID]; len(log) > 0 {
		return log[len(log)-1]
	}
	return Record{}
}

// swap shows next in place of prev, as InnoDB shows a commit before it is on disk.
// It returns next's place in the log, 0 when the record is not prev.
func (w *world) swap(workerID int64, prev, next Record) int {
	if !w.bugs.noCompare && !w.shown(workerID).Same(prev) {
		return 0
	}
	w.log[workerID] = append(w.log[workerID], next)
	w.at[workerID] = append(w.at[workerID], w.time)
	return len(w.log[workerID])
}

// keep has the log of a worker ID last up to a place.
func (w *world) keep(workerID int64, place int) { w.kept[workerID] = max(w.kept[workerID], place) }

// crashStore makes the store forget what it has shown and not confirmed.
func (w *world) crashStore() {
	w.starts++
	for id, log := range w.log {
		w.figures.forgotten += len(log) - w.kept[id]
		w.cut(id, w.kept[id])
	}
}

func (w *world) cut(workerID int64, n int) {
	w.log[workerID] = w.log[workerID][:n:n]
	w.at[workerID] = w.at[workerID][:n:n]
	w.kept[workerID] = n
}

// simLag is how much a replica lacks at most: no more than the shortest lease.
const simLag = 20

// failOver puts a replica in the server's place, one that has the note of which server it
// replaces: without it, it would look like a first start, or like the server before that.
func (w *world) failOver() {
	since, lost := w.time-simLag, 0
	has := func(id int64) int {
		n := len(w.at[id])
		for n > 0 && w.at[id][n-1] > since {
			n--
		}
		return n
	}
	if n := len(w.log[noteID(serverNote)]); n == 0 || has(noteID(serverNote)) < n {
		return
	}
	for id, log := range w.log {
		lost += len(log) - has(id)
	}
	if lost == 0 {
		return
	}
	for id := range w.log {
		w.cut(id, has(id))
	}
	w.server++
	w.starts++
	w.late = nil // they were for the server before
	w.figures.failovers++
}

// noteID is where a world keeps a note.
func noteID(id int64) int64 { return -1 - id }

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
		if r := w.shown(i); !r.IsZero() {
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
	r := w.shown(workerID)
	w.meanwhile()
	return r, nil
}

func (s *lossyStore) CompareAndSet(_ context.Context, workerID int64, prev, next Record) (bool, error) {
	w := s.p.world
	w.meanwhile()
	switch {
	case s.p.cutOff:
		return false, errAway
	case w.chance(8): // the answer is lost
		w.figures.lostAnswers++
		place := w.swap(workerID, prev, next)
		if w.chance(2) {
			w.keep(workerID, place)
		}
		w.meanwhile()
		return false, errAway
	case w.chance(8): // the question comes late
		w.figures.lateWrites++
		w.late = append(w.late, func() { w.keep(workerID, w.swap(workerID, prev, next)) })
		w.meanwhile()
		return false, errAway
	}
	starts := w.starts
	place := w.swap(workerID, prev, next)
	w.meanwhile()
	if w.starts != starts {
		return false, errAway // it crashed before it could answer
	}
	w.keep(workerID, place)
	w.meanwhile()
	return place > 0, nil
}

// replicatedStore is a lossyStore whose server has a name, and notes.
type replicatedStore struct{ *lossyStore }

func (s replicatedStore) ServerID(context.Context) (string, error) {
	w := s.p.world
	w.meanwhile()
	if s.p.cutOff {
		return "", errAway
	}
	name := strconv.Itoa(w.server)
	w.meanwhile()
	return name, nil
}

func (s replicatedStore) Notes() Store { return simNotes(s) }

type simNotes struct{ *lossyStore }

func (s simNotes) Get(ctx context.Context, id int64) (Record, error) {
	return s.lossyStore.Get(ctx, noteID(id))
}

func (s simNotes) CompareAndSet(ctx context.Context, id int64, prev, next Record) (bool, error) {
	return s.lossyStore.CompareAndSet(ctx, noteID(id), prev, next)
}

func (s *lossyStore) Close() error { return nil }
