package workerid

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// fleet is a simulation of many processes that lease worker IDs from one store. They run the
// assigner's code with a simulated store and clock. docs/understand/scale.md has the results
// for ten thousand processes:
//
//	go test ./keygen/workerid -run TestFleet -v -fleet.processes 10000
type fleet struct {
	processes int
	bits      int // bits of a worker ID
	replace   int // number of processes that a rolling update replaces at once
}

const (
	fleetRetry   = 200 * time.Millisecond // delay before a process without a worker ID tries again
	fleetWorkers = 8                      // number of parallel operations of the store
	fleetOp      = time.Millisecond       // duration of an operation
	fleetRow     = time.Microsecond       // additional duration for each record of a list
	fleetLine    = 250 * time.Microsecond // delay of the network in each direction
	fleetAway    = 30 * time.Second       // duration of the store's outage
	fleetSteady  = time.Minute            // duration of the phase in which nothing happens
)

var fleetProcesses = flag.Int("fleet.processes", 300, "number of processes that lease a worker ID of one store")

func newFleet(processes int) *fleet {
	f := &fleet{processes: processes, replace: max(1, processes/20)}
	for 1<<f.bits < 2*processes {
		f.bits++
	}
	return f
}

// load is the store's work in one stage.
type load struct {
	lists, rows, gets, writes, refused int // refused: writes with a conflicting record
	failed                             int // operations without an answer
	peak                               int // operations in the busiest 100 ms
	waited                             time.Duration
}

func (l load) operations() int { return l.lists + l.gets + l.writes }

var errRefused = errors.New("connection refused")

// fleetStore is the store of all processes. Its operations wait for one of its workers, like
// clients of a database.
type fleetStore struct {
	workers chan struct{}

	mu      sync.Mutex
	records map[int64]Record
	listed  []Entry       // recent records
	at      time.Time     // time of listed
	gone    chan struct{} // closed when the outage ends; nil without an outage
	load    load
	slice   time.Time // beginning of the current 100 ms
	inSlice int
}

func newFleetStore() *fleetStore {
	return &fleetStore{workers: make(chan struct{}, fleetWorkers), records: map[int64]Record{}}
}

// do performs an operation: the way to the store, the operation, and the way back. at runs when
// it takes effect.
func (s *fleetStore) do(ctx context.Context, rows func() int, at func()) error {
	err := s.try(ctx, rows, at)
	if err != nil {
		s.mu.Lock()
		s.load.failed++
		s.mu.Unlock()
	}
	return err
}

func (s *fleetStore) try(ctx context.Context, rows func() int, at func()) error {
	begin := time.Now()
	if err := spi.SystemClock.Sleep(ctx, fleetLine); err != nil {
		return err
	}
	s.mu.Lock()
	s.arrived()
	gone := s.gone
	s.mu.Unlock()
	if gone != nil {
		return errRefused
	}
	select {
	case s.workers <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	takes := fleetOp + time.Duration(rows())*fleetRow
	s.load.waited = max(s.load.waited, time.Since(begin)-fleetLine)
	s.mu.Unlock()
	time.Sleep(takes) // a server completes operations that it has begun
	s.mu.Lock()
	at()
	s.mu.Unlock()
	<-s.workers
	return spi.SystemClock.Sleep(ctx, fleetLine)
}

// arrived counts an operation for the peak. The caller holds mu.
func (s *fleetStore) arrived() {
	if now := time.Now().Truncate(100 * time.Millisecond); !now.Equal(s.slice) {
		s.slice, s.inSlice = now, 0
	}
	s.inSlice++
	s.load.peak = max(s.load.peak, s.inSlice)
}

// took returns the load since its last call.
func (s *fleetStore) took() load {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.load
	s.load = load{}
	return l
}

// leave begins an outage of the store, and comeBack ends it.
func (s *fleetStore) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = make(chan struct{})
}

func (s *fleetStore) comeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.gone)
	s.gone = nil
}

func none() int { return 0 }

func (s *fleetStore) List(ctx context.Context) (entries []Entry, err error) {
	err = s.do(ctx, func() int { return len(s.records) }, func() {
		s.load.lists++
		s.load.rows += len(s.records)
		entries = s.list()
	})
	return entries, err
}

// list copies the records once in 5 ms, to save the memory of ten thousand lists. A list is
// outdated on arrival in any case.
func (s *fleetStore) list() []Entry {
	if time.Since(s.at) >= 5*time.Millisecond {
		s.at, s.listed = time.Now(), make([]Entry, 0, len(s.records))
		for id, r := range s.records {
			s.listed = append(s.listed, Entry{WorkerID: id, Record: r})
		}
	}
	return s.listed
}

func (s *fleetStore) Get(ctx context.Context, workerID int64) (r Record, err error) {
	err = s.do(ctx, none, func() {
		s.load.gets++
		r = s.records[workerID]
	})
	return r, err
}

func (s *fleetStore) CompareAndSet(ctx context.Context, workerID int64, prev, next Record) (swapped bool, err error) {
	err = s.do(ctx, none, func() {
		s.load.writes++
		if swapped = s.records[workerID].Same(prev); swapped {
			s.records[workerID] = next
		} else {
			s.load.refused++
		}
	})
	return swapped, err
}

func (s *fleetStore) Close() error { return nil }

// fleetProcess is a process. It leases a worker ID, and another one when it loses its lease.
type fleetProcess struct {
	fleet    *fleet
	assigner *assigner
	end      context.CancelFunc
	done     chan struct{}

	mu     sync.Mutex
	lease  *lease
	failed int // failed attempts to get a worker ID
}

func (f *fleet) start(store *fleetStore, seed uint64) *fleetProcess {
	a := assign(store, config{})
	random := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	a.intN = func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	a.identity = func() string { return "" }
	ctx, end := context.WithCancel(context.Background())
	p := &fleetProcess{fleet: f, assigner: a, end: end, done: make(chan struct{})}
	go p.run(ctx)
	return p
}

// run checks twice a second whether it has a worker ID, like a generator that is rarely used.
func (p *fleetProcess) run(ctx context.Context) {
	defer close(p.done)
	for wait := time.Duration(0); spi.SystemClock.Sleep(ctx, wait) == nil; {
		wait = 500 * time.Millisecond
		p.mu.Lock()
		has := p.lease != nil && p.lease.endedBy() == nil
		p.mu.Unlock()
		if has {
			continue
		}
		l, err := p.assigner.acquire(ctx, 1<<p.fleet.bits-1)
		p.mu.Lock()
		if p.lease = l; err != nil {
			p.lease, wait = nil, fleetRetry
			p.failed++
		}
		p.mu.Unlock()
	}
}

// makes reports whether the process can generate keys now.
func (p *fleetProcess) makes() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lease != nil && p.lease.limit.Load() > p.assigner.now()
}

func (p *fleetProcess) failures() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// close closes the process, which releases its worker ID.
func (p *fleetProcess) close() {
	p.end()
	<-p.done
	_ = p.assigner.Close()
}

// kill ends the process without a release.
func (p *fleetProcess) kill() {
	p.end()
	<-p.done
	p.assigner.stop()
	p.assigner.running.Wait()
}

func each(all []*fleetProcess, f func(*fleetProcess)) {
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() { f(p) })
	}
	wg.Wait()
}

// steadyStage is the stage in which there are only renewals.
const steadyStage = "nothing happens"

// stage is a line of the report.
type stage struct {
	name  string
	took  time.Duration // time until all processes could generate keys
	fewer time.Duration // time during which some could not
	least int           // smallest number of processes that could
	load  load
}

// run runs all stages of a fleet. It reports each stage, and each worker ID that two processes
// have at the same time.
func (f *fleet) run(t *testing.T, report func(stage)) {
	store := newFleetStore()
	all := make([]*fleetProcess, f.processes)
	seed := uint64(0)
	begin := func(i int) { seed++; all[i] = f.start(store, seed) }

	// until waits until all processes can generate keys, and reports a stage.
	until := func(name string, atLeast time.Duration) {
		start, s := time.Now(), stage{name: name, least: f.processes}
		for {
			synctest.Wait()
			able, ids := 0, map[int64]int{}
			for i, p := range all {
				if !p.makes() {
					continue
				}
				able++
				id := p.lease.workerID
				if other, ok := ids[id]; ok {
					t.Fatalf("%s: processes %d and %d both have worker ID %d", name, i, other, id)
				}
				ids[id] = i
			}
			s.least = min(s.least, able)
			if able < f.processes {
				s.fewer, s.took = s.fewer+100*time.Millisecond, 0
			} else if s.took == 0 {
				s.took = time.Since(start)
			}
			if able == f.processes && time.Since(start) >= atLeast {
				break
			}
			if time.Since(start) > time.Hour {
				t.Fatalf("%s: after an hour %d of %d processes can make keys", name, able, f.processes)
			}
			time.Sleep(100 * time.Millisecond)
		}
		s.load = store.took()
		report(s)
	}

	for i := range all {
		begin(i)
	}
	until("all start at once", 0)
	time.Sleep(defaultLease) // separates the start from the next stage
	store.took()
	until(steadyStage, fleetSteady)

	for i := range f.replace {
		all[i].close()
		begin(i)
	}
	until(fmt.Sprintf("%d closed and started again", f.replace), 0)

	store.leave()
	time.AfterFunc(fleetAway, store.comeBack)
	until(fmt.Sprintf("the store is unavailable for %v", fleetAway), fleetAway)
	time.Sleep(defaultLease)
	store.took()

	each(all, (*fleetProcess).kill)
	store.took()
	for i := range all {
		begin(i)
	}
	until("all killed, and started at once", 0)
	each(all, (*fleetProcess).close)
	store.took()
	for i := range all {
		begin(i)
	}
	until("all closed, and started at once", 0)
	failures := 0
	for _, p := range all {
		failures += p.failures()
	}
	each(all, (*fleetProcess).close)
	held := 0
	for _, r := range store.records {
		if r.FreeFrom == 0 {
			held++
		}
	}
	t.Logf("attempts to get a worker ID that failed at the last start: %d; worker IDs with a record at the end: %d, of them not released: %d",
		failures, len(store.records), held)
}

// The store's work for each process doesn't depend on the size of the fleet. Processes that start
// together must not try the same worker IDs one after another, nor renew at the same time from
// then on.
func TestFleet(t *testing.T) {
	if raceEnabled() {
		t.Skip("more than ThreadSanitizer's epochs can count: make test runs it without -race")
	}
	f := newFleet(*fleetProcesses)
	synctest.Test(t, func(t *testing.T) {
		t.Logf("%d processes, %d worker IDs, lease %v, renew %v; the store does %d operations at once, each %v and %v a record of a list; %v on the line each way",
			f.processes, 1<<f.bits, defaultLease, defaultRenew, fleetWorkers, fleetOp, fleetRow, fleetLine)
		t.Log("| | all can make keys after | some cannot for | can, at least | operations (a second) | in the busiest 100 ms | lists (records) | writes (refused) | without answer | longest wait |")
		f.run(t, func(s stage) {
			took, steady := s.took, s.name == steadyStage
			if steady {
				took = fleetSteady
			}
			perSecond := float64(s.load.operations()) / max(took.Seconds(), 0.1)
			t.Logf("| %s | %.1f s | %.1f s | %d | %d (%.0f) | %d | %d (%d) | %d (%d) | %d | %.1f s |", s.name, s.took.Seconds(), s.fewer.Seconds(), s.least,
				s.load.operations(), perSecond, s.load.peak, s.load.lists, s.load.rows, s.load.writes, s.load.refused, s.load.failed, s.load.waited.Seconds())
			if tries := float64(s.load.writes) / float64(f.processes); !steady && s.load.lists > 0 && tries > 16 {
				t.Errorf("%s: %.1f writes a process\nwant: at most 16", s.name, tries)
			}
			if most := 4*perSecond/10 + 20; steady && float64(s.load.peak) > most {
				t.Errorf("%s: %d operations in 100 ms\nwant: at most %.0f", s.name, s.load.peak, most)
			}
		})
	})
}
