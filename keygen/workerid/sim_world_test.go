package workerid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
)

// world is a simulation in one goroutine: processes with clocks, a store that loses and delays,
// and a record of every generated ID. The processes run the package's assigner and leases. The
// clock, the store and the generator are simulated.
//
// Nothing runs in parallel, but everything can be interleaved. Each operation of the store lets
// the world continue before and after it takes effect, while the calling process waits. This
// simulates slow answers and paused processes.
type world struct {
	rng *rand.Rand
	kind
	time   int64              // true time in milliseconds
	log    map[int64][]Record // by worker ID; the store shows the last one
	kept   map[int64]int      // number of records that survive a crash of the store
	starts int                // starts of the store
	late   []func()           // writes in flight whose senders have given up
	procs  []*process
	maxID  int64
	depth  int
	server int
	at     map[int64][]int64 // time of each record of log

	made    map[id]*lease
	keys    map[int64]bool // keys of real generators
	repeat  error          // the first duplicate ID
	figures figures
}

// id is an identifier. The simulation generates at most one per millisecond.
type id struct{ worker, time int64 }

// kind is what can happen in a world.
type kind struct {
	bugs bugs
	real bool // processes have SNOWFLAKE generators

	// crashes means that the store often loses what it hasn't acknowledged.
	crashes bool
	// anyFree means that all records look free, also those of live holders.
	anyFree bool
	// failovers means that replicas without the last writes replace the server, that processes
	// have leases of different lengths, and that their clocks agree.
	failovers bool
	// removals means that the records of worker IDs are removed, and that clocks agree. Processes
	// generate fewer IDs than fit into the time.
	removals bool
	// quarantine is that of each process, shorter than a lease.
	quarantine time.Duration
}

// bugs are safeguards, in addition to the rules, that a test can disable.
type bugs struct {
	noLimit   bool // the generator ignores the limit
	noCompare bool // the store doesn't compare
	lateLimit bool // the generator uses a lease after releasing it
	farLimit  bool // leases report a wrong limit to a real generator
}

type figures struct {
	steps, ids, refused, acquired, lost, released, crashes, pauses, steppedClocks, lostAnswers, lateWrites, cutOffs, forgotten, failovers, removed int
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
	f.removed += g.removed
}

func newWorld(seed uint64, k kind) *world {
	w := &world{
		kind: k, keys: map[int64]bool{}, at: map[int64][]int64{}, rng: rand.New(rand.NewPCG(seed, 1)),
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

// run runs steps until there are enough or an ID is repeated.
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
	if w.chance(1000) || w.crashes && w.chance(100) {
		w.crashStore()
	}
	if w.removals && w.chance(50) {
		w.remove(int64(w.rng.IntN(int(w.maxID) + 1)))
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

// errAway is a process' error if it can't reach the store or gets no answer.
var errAway = errors.New("no answer")

// shown returns the record that the store shows.
func (w *world) shown(workerID int64) Record {
	if log := w.log[workerID]; len(log) > 0 {
		return log[len(log)-1]
	}
	return Record{}
}

// swap replaces prev with next. Other processes see next before it is durable, like a commit in
// InnoDB. swap returns the index of next in the log, or 0 if the record is not prev.
func (w *world) swap(workerID int64, prev, next Record) int {
	if !w.bugs.noCompare && !w.shown(workerID).Same(prev) {
		return 0
	}
	w.log[workerID] = append(w.log[workerID], next)
	w.at[workerID] = append(w.at[workerID], w.time)
	return len(w.log[workerID])
}

// keep makes the log of a worker ID durable up to an index.
func (w *world) keep(workerID int64, place int) {
	w.kept[workerID] = max(w.kept[workerID], min(place, len(w.log[workerID])))
}

// remove removes the record of a worker ID, which takes a millisecond.
func (w *world) remove(workerID int64) {
	if len(w.log[workerID]) > 0 {
		w.figures.removed++
		w.cut(workerID, 0)
	}
	w.time++
}

// crashStore removes the records that the store has shown but not acknowledged.
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

// simLag is the largest delay of a replica, at most the shortest lease.
const simLag = 20

// failOver replaces the server with a replica. The replica has the note with the name of the
// server that it replaces. Without the note, it would look like a first start, or like the
// previous server.
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
	w.late = nil // they were for the previous server
	w.figures.failovers++
}

// noteID returns the worker ID under which a world stores a note.
func noteID(id int64) int64 { return -1 - id }

// lossyStore is the store as seen by a process.
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
			if w.anyFree && r.FreeFrom == 0 {
				r.FreeFrom = r.ReservedUntil // no other start
			}
			entries = append(entries, Entry{WorkerID: i, Record: r})
		}
	}
	w.meanwhile() // the answer is outdated when it arrives
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
	case w.chance(8): // the request is delayed
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

// replicatedStore is a lossyStore whose server has a name and notes.
type replicatedStore struct{ *lossyStore }

func (s replicatedStore) info() Info {
	return Info{Name: "TEST", notes: simNotes(s), serverID: s.serverID}
}

func (s replicatedStore) serverID(context.Context) (string, error) {
	w := s.p.world
	w.meanwhile()
	if s.p.cutOff {
		return "", errAway
	}
	name := strconv.Itoa(w.server)
	w.meanwhile()
	return name, nil
}

type simNotes struct{ *lossyStore }

func (s simNotes) Get(ctx context.Context, id int64) (Record, error) {
	return s.lossyStore.Get(ctx, noteID(id))
}

func (s simNotes) CompareAndSet(ctx context.Context, id int64, prev, next Record) (bool, error) {
	return s.lossyStore.CompareAndSet(ctx, noteID(id), prev, next)
}

func (s *lossyStore) Close() error { return nil }

// seededRule is a bug in one of the rules. The package is built with the code of all bugs, each
// behind a test of its name.
type seededRule struct {
	name string
	file string
	at   string // the code is inserted after this line of the file
	code string
	kind kind
}

var seededRules = []seededRule{
	{"reserved_until may fall", "rules.go", "func raised(prev Record, want int64) int64 {", "return want", kind{}},
	{"successor starts at its clock", "rules.go", "func floorAfter(prev Record, now int64, length time.Duration) int64 {",
		"return now", kind{}},
	{"successor starts one too early", "rules.go", "func floorAfter(prev Record, now int64, length time.Duration) int64 {",
		"if prev.FreeFrom != neverHeld { return prev.start() - 1 }", kind{}},
	{"no record means never used", "rules.go", "func floorAfter(prev Record, now int64, length time.Duration) int64 {",
		"if prev.FreeFrom == neverHeld { return now }", kind{removals: true}},
	{"no record, one lease ahead and one too early", "rules.go", "func floorAfter(prev Record, now int64, length time.Duration) int64 {",
		"if prev.FreeFrom == neverHeld { return now + length.Milliseconds() - 2 }", kind{removals: true}},
	{"the first record is a lease", "acquire.go",
		"		c.Record = Record{Owner: newToken(), ReservedUntil: a.now(), FreeFrom: neverHeld, Holder: a.holder, Since: a.now()}",
		"c.Record.FreeFrom += a.now() + a.length().Milliseconds()", kind{removals: true}},
	{"a lease that starts ahead reserves from there", "lease.go", "	now, length := l.assigner.now(), l.assigner.length().Milliseconds()",
		"return max(until, now) + length", kind{removals: true}},
	{"lost answer counts as written", "rules.go", "func confirmed(swapped bool, err error) bool {", "return swapped || err != nil", kind{}},
	{"what the store shows counts as kept", "lease.go", "		l.newest, l.attempts = found, nil", "l.grow(found.ReservedUntil)", kind{crashes: true}},
	{"any record is mine", "rules.go", "func isOwn(found, newest Record, attempts []string) bool {", "return true", kind{}},
	{"last used is free", "rules.go", "func freeFrom(floor, limit, lastUsed int64) int64 {", "return max(floor, lastUsed)", kind{}},
	{"unused lease frees what came before it", "rules.go", "func freeFrom(floor, limit, lastUsed int64) int64 {",
		"return max(lastUsed+1, floor-50)", kind{}},
	{"close frees what may be used", "rules.go", "func freeFrom(floor, limit, lastUsed int64) int64 {", "lastUsed = max(0, lastUsed)", kind{}},

	{"only the own lease counts", "failover.go", "func (a *assigner) longest() time.Duration {", "return a.config.Lease", kind{failovers: true}},
	{"a longer lease is used as soon as it is noted", "rules.go", "func (n leaseLengths) settled(now int64) time.Duration {",
		"return n.longest", kind{failovers: true}},
	{"a lease that ran out is renewed on any server", "failover.go", "func (l *lease) mayBeOthers() bool {", "return false", kind{failovers: true}},
}

// The simulation must find duplicates when a rule is broken. Otherwise it proves nothing. The rules
// are plain code, so the bugs are added to copies of its files, and this package is built with
// those.
func TestSimulation_findsSeededRules(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	dir := t.TempDir()
	replaced := map[string]string{}
	for name, end := range map[string]string{"rules.go": "\nvar seeded string\n", "lease.go": "", "failover.go": "", "acquire.go": ""} {
		path := must.Get(filepath.Abs(name))(t)
		text := must.Get(os.ReadFile(path))(t)
		replaced[path] = filepath.Join(dir, name)
		writeText(t, replaced[path], seed(t, name, string(text))+end)
	}
	overlay := must.Get(json.Marshal(map[string]any{"Replace": replaced}))(t)
	writeText(t, filepath.Join(dir, "overlay.json"), string(overlay))
	args := []string{"test", "-tags", "seeded", "-overlay", filepath.Join(dir, "overlay.json"), "-v", "-run", "^TestSimulation_seededRules$"}
	if raceEnabled() || testing.Short() {
		args = append(args, "-short")
	}
	out, err := exec.Command("go", args...).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

func writeText(t *testing.T, name, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(name, []byte(text), 0o600))
}

// seed returns the text of a file with the code of its bugs.
func seed(t *testing.T, file, text string) string {
	t.Helper()
	for _, b := range seededRules {
		if b.file != file {
			continue
		}
		if strings.Count(text, b.at+"\n") != 1 {
			t.Fatalf("%s has no single line %q for %q", b.file, b.at, b.name)
		}
		text = strings.Replace(text, b.at+"\n", fmt.Sprintf("%s\nif seeded == %q {\n%s\n}\n", b.at, b.name, b.code), 1)
	}
	return text
}
