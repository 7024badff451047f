//go:build linux

package chaos

import (
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/engines"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

var engineTime = flag.Duration("engine-duration", enginesFromEnv(),
	"duration of the faults for each database; 0 skips the test")

func enginesFromEnv() time.Duration {
	d, _ := time.ParseDuration(os.Getenv("SHARDKEY_ENGINES"))
	return d
}

// engine is a database of several servers, or a server behind a proxy, which fail while processes
// write to it.
type engine struct {
	name  string
	start func(t *testing.T) *cluster
	// rounds means that a long test starts several clusters in turn, because a cluster survives
	// only one fault.
	rounds bool
}

// round returns the duration of the test of one cluster.
func round() time.Duration { return min(*engineTime, time.Minute) }

// cluster is an engine that is running.
type cluster struct {
	dsns      []string // databases for writers, in turn
	leases    string   // database with the worker IDs
	stores    []string // databases with the tables' rows, without duplicates
	conflicts bool     // see writer
	faults    []engineFault
	pause     time.Duration // between two faults
	once      bool          // there is only one fault, once
	// after is called at the end, before the rows are read.
	after func() error
}

// engineFault disturbs a server and then repairs it.
type engineFault struct {
	name string
	do   func(*rand.Rand) error
}

// writers is the number of processes that write to an engine.
const writers = 4

// TestEngines writes to each engine with several processes while its servers and the processes
// fail. Then it compares the rows with the records of the writers.
func TestEngines(t *testing.T) {
	known := []string{""}
	for _, e := range engineList {
		known = append(known, e.name)
	}
	for _, s := range subjects {
		known = append(known, s.name)
	}
	for _, name := range strings.Split(*only, ",") {
		if !slices.Contains(known, name) {
			t.Errorf("-subjects: there is no %s; there are%s", name, strings.Join(known, " "))
		}
	}
	if *engineTime == 0 {
		t.Skip("make test-engines tries them")
	}
	for _, e := range engineList {
		if *only == "" || slices.Contains(strings.Split(*only, ","), e.name) {
			t.Run(e.name, func(t *testing.T) {
				if !e.rounds {
					newEngineRun(t, e, *engineTime).try()
					return
				}
				for i := range max(1, int(*engineTime/round())) {
					t.Run(fmt.Sprint(i), func(t *testing.T) { newEngineRun(t, e, round()).try() })
				}
			})
		}
	}
}

// engineRun is the test of one engine.
type engineRun struct {
	*cluster
	t        *testing.T
	name     string
	duration time.Duration
	slots    []*slot
	started  int64 // number of processes

	mu     sync.Mutex
	faults map[string]int
	last   string // last fault
}

func newEngineRun(t *testing.T, e engine, d time.Duration) *engineRun {
	r := &engineRun{cluster: e.start(t), t: t, name: e.name, duration: d, faults: map[string]int{}}
	for i := range writers {
		s := &slot{errors: map[string]int{}}
		s.orders.Writer = &writer{DSN: r.dsns[i%len(r.dsns)], Leases: r.leases, Conflicts: r.conflicts}
		r.slots = append(r.slots, s)
	}
	return r
}

func (r *engineRun) try() {
	for _, s := range r.slots {
		must.Do(r.t, r.restart(s))
		r.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	}
	began := time.Now()
	must.Do(r.t, r.awaitRows(began))
	end := began.Add(r.duration)
	var running sync.WaitGroup
	stop := make(chan struct{})
	running.Go(func() { r.failServers(end) })
	running.Go(func() { r.failProcesses(end) })
	go r.showProgress(began, stop)
	running.Wait()
	close(stop)
	if err := r.awaitRows(time.Now()); err != nil {
		r.t.Error(err)
	}
	for _, s := range r.slots {
		s.quit()
	}
	if r.after != nil {
		if err := r.after(); err != nil {
			r.t.Error(err)
		}
	}
	r.judge()
}

// restart starts a process in place of one that has ended.
func (r *engineRun) restart(s *slot) error {
	r.mu.Lock()
	r.started++
	s.orders.Writer.Process = r.started
	r.mu.Unlock()
	return s.start(0)
}

// failServers applies each of the engine's faults, in a new order each time, until the end. After
// each fault it waits until every process writes again.
func (r *engineRun) failServers(end time.Time) {
	rng := rand.New(rand.NewPCG(*seed, 2))
	for time.Now().Before(end) {
		for _, i := range rng.Perm(len(r.cluster.faults)) {
			f := r.cluster.faults[i]
			r.note(f.name)
			if err := f.do(rng); err != nil {
				r.t.Errorf("%s: %v", f.name, err)
				return
			}
			if r.pause > time.Second {
				if err := r.awaitRows(time.Now()); err != nil {
					r.t.Errorf("after %q: %v", f.name, err)
					return
				}
			}
			if r.once || !time.Now().Before(end) {
				return
			}
			wait(r.pause)
		}
	}
}

// failProcesses kills processes, and stops them for longer than their lease.
func (r *engineRun) failProcesses(end time.Time) {
	rng := rand.New(rand.NewPCG(*seed, 3))
	for {
		wait(4 * time.Second)
		if !time.Now().Before(end) {
			return
		}
		s := r.slots[rng.IntN(len(r.slots))]
		if rng.IntN(2) == 0 {
			r.note("process killed")
			s.kill()
			if err := r.restart(s); err != nil {
				r.t.Error(err)
				return
			}
			continue
		}
		r.note("process stopped")
		s.signal(syscall.SIGSTOP)
		wait(7 * time.Second) // a lease lasts 5 s
		s.signal(syscall.SIGCONT)
	}
}

func (r *engineRun) note(fault string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[fault]++
	r.last = fault
}

// awaitRows returns when each process has written rows since a time.
func (r *engineRun) awaitRows(since time.Time) error {
	for _, s := range r.slots {
		for !s.madeKeySince(since) {
			if time.Since(since) > recovery {
				return fmt.Errorf("a process has written nothing for %v: %s", recovery, s.seenErrors())
			}
			wait(10 * time.Millisecond)
		}
	}
	return nil
}

// showProgress logs the progress of a run every few seconds.
func (r *engineRun) showProgress(began time.Time, stop chan struct{}) {
	every := max(5*time.Second, min(time.Minute, r.duration/12))
	for tick := time.NewTicker(every); ; {
		select {
		case <-stop:
			tick.Stop()
			return
		case <-tick.C:
		}
		rows := 0
		for _, s := range r.slots {
			s.mu.Lock()
			rows += len(s.rows)
			s.mu.Unlock()
		}
		r.mu.Lock()
		faults := 0
		for _, n := range r.faults {
			faults += n
		}
		fmt.Fprintf(os.Stderr, "%s: %v of %v, %d rows acknowledged, %d faults, the last one: %s\n",
			r.name, time.Since(began).Round(time.Second), r.duration, rows, faults, r.last)
		r.mu.Unlock()
	}
}

// figures are the results of a run.
type figures struct {
	acknowledged int // number of rows
	lost         int // acknowledged rows that are in no table
	twice        int // rows with the same key as another row of the table
	other        int // rows with a key other than the reported one
	unfilled     int // rows without a key, or with key 0
	unknown      int // acknowledged rows whose key wasn't reported
	unsaid       int // rows of statements that failed, or of killed processes
}

// judge compares the tables with the records of the writers.
func (r *engineRun) judge() {
	known := map[int64]int64{}
	for _, s := range r.slots {
		for _, row := range s.rows {
			if key, ok := known[row.token]; !ok || key == 0 {
				known[row.token] = row.key
			} else if row.key != 0 && row.key != key {
				r.t.Errorf("row %d was reported with key %d and with %d", row.token, key, row.key)
			}
		}
		s.rows = nil
	}
	f := figures{acknowledged: len(known)}
	shares := map[string][]int{} // rows of a table in each store
	for _, table := range writtenTables {
		keys := map[int64]bool{}
		for _, store := range r.stores {
			stored, err := readTable(store, table)
			if err != nil {
				r.t.Fatal(err)
			}
			shares[table] = append(shares[table], len(stored))
			for _, row := range stored {
				if row.key == 0 {
					f.unfilled++
				} else if keys[row.key] {
					f.twice++
				}
				keys[row.key] = true
				key, ok := known[row.token]
				switch {
				case !ok:
					f.unsaid++
				case key == 0:
					f.unknown++
				case key != row.key:
					f.other++
				}
				delete(known, row.token)
			}
		}
	}
	f.lost = len(known)
	r.t.Logf("%s, %v: acknowledged=%d lost=%d twice=%d other=%d unfilled=%d unknown=%d unsaid=%d processes=%d",
		r.name, r.duration, f.acknowledged, f.lost, f.twice, f.other, f.unfilled, f.unknown, f.unsaid, r.started)
	errors := countErrors(r.t, r.slots)
	r.t.Logf("%s: rows %s faults %s errors %s", r.name, counts(shares), counts(r.faults), counts(errors))
	if f.lost+f.twice+f.other+f.unfilled > 0 {
		r.t.Errorf("lost=%d twice=%d other=%d unfilled=%d, of which there must be none", f.lost, f.twice, f.other, f.unfilled)
	}
	if f.acknowledged == 0 {
		r.t.Error("no row was written")
	}
}

// readTable reads a table's rows in one database.
func readTable(dsn, table string) ([]record, error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Query("SELECT token, id FROM " + table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []record
	for rows.Next() {
		var token, key sql.NullInt64
		if err := rows.Scan(&token, &key); err != nil {
			return nil, err
		}
		all = append(all, record{token.Int64, key.Int64})
	}
	return all, rows.Err()
}

// tables returns the statements that create the tables of the writers.
func tables() []string {
	return []string{
		"CREATE TABLE by_token (id BIGINT NOT NULL, token BIGINT NOT NULL, a INT, PRIMARY KEY (token), KEY (id))",
		"CREATE TABLE by_key (id BIGINT NOT NULL, token BIGINT NOT NULL, a INT, PRIMARY KEY (id))",
		"CREATE TABLE numbers (n BIGINT NOT NULL PRIMARY KEY, a BIGINT)",
		"INSERT INTO numbers (n, a) VALUES (0, 0), (1, 0), (2, 0)",
	}
}

func mustRun(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	must.Do(t, engines.Run(dsn, statements...))
}

// killed returns a fault that kills one of the servers and starts it again after a while.
func killed(name string, away time.Duration, servers ...*testserver.Server) engineFault {
	return engineFault{name + " killed", func(rng *rand.Rand) error {
		s := oneOf(rng, servers)
		s.Kill()
		wait(away)
		s.Start()
		return nil
	}}
}

// stopped returns a fault that stops the process of one of the servers for a while.
func stopped(name string, d time.Duration, servers ...*testserver.Server) engineFault {
	return engineFault{name + " stopped", func(rng *rand.Rand) error {
		s := oneOf(rng, servers)
		s.Pause()
		wait(d)
		s.Resume()
		return nil
	}}
}

func oneOf(rng *rand.Rand, servers []*testserver.Server) *testserver.Server {
	return servers[rng.IntN(len(servers))]
}
