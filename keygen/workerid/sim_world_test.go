package workerid

import (
	"fmt"
	"math/rand/v2"
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
	rng    *rand.Rand
	bugs   bugs
	rules  rules
	time   int64              // true time, in milliseconds
	log    map[int64][]Record // of each worker id: the last one is what the store shows
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

// bugs are what can be taken out beside the rules.
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

func (w *world) make(l *lease, t int64) {
	key := id{l.workerID, t}
	if other, ok := w.made[key]; ok && w.repeat == nil {
		w.repeat = fmt.Errorf("worker %d, time %d was made by leases of [%d,…) and [%d,…)", key.worker, t, other.floor, l.floor)
	}
	w.made[key] = l
	w.figures.ids++
}
