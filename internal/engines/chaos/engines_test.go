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

	"github.com/shardkey/shardkey/internal/engines"
	"github.com/shardkey/shardkey/internal/testserver"
)

var engineTime = flag.Duration("engine-duration", enginesFromEnv(), "how long each database has faults; 0: none is tried")

func enginesFromEnv() time.Duration {
	d, _ := time.ParseDuration(os.Getenv("SHARDKEY_ENGINES"))
	return d
}

// engine is a database of several servers, or a proxy before one, which fail while
// processes write to it.
type engine struct {
	name  string
	start func(t *testing.T) *cluster
	// rounds says that a long trial is of many servers, as one fault cannot be made good.
	rounds bool
}

// round is how long a trial is of an engine that is tried in rounds.
func round() time.Duration { return min(*engineTime, time.Minute) }

// cluster is an engine that has been started.
type cluster struct {
	dsns   []string // of what processes write to, in turn; with the database
	leases string   // the DSN of the database that worker IDs come from
	stores []string // the DSNs of the databases that have the tables' rows, once each
	// queries and conflicts are a writer's.
	queries, conflicts bool
	faults             []engineFault
	pause              time.Duration // between two faults
	once               bool          // there is one fault, once
	// after is called when all is over, before the rows are read.
	after func() error
}

// engineFault does something bad to a server, and makes it good again.
type engineFault struct {
	name string
	do   func(*rand.Rand) error
}

// writers are the processes that write to an engine.
const writers = 4

// TestEngines has processes write to each engine while its servers and they themselves
// fail, and holds the rows against what the writers know of them.
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

// engineRun is the trial of one engine.
type engineRun struct {
	*cluster
	t        *testing.T
	name     string
	duration time.Duration
	slots    []*slot
	started  int64 // processes

	mu     sync.Mutex
	faults map[string]int
	last   string // fault
}

func newEngineRun(t *testing.T, e engine, d time.Duration) *engineRun {
	r := &engineRun{cluster: e.start(t), t: t, name: e.name, duration: d, faults: map[string]int{}}
	for i := range writers {
		s := &slot{errors: map[string]int{}}
		s.orders.Writer = &writer{DSN: r.dsns[i%len(r.dsns)], Leases: r.leases, Queries: r.queries, Conflicts: r.conflicts}
		r.slots = append(r.slots, s)
	}
	return r
}

func (r *engineRun) try() {
	for _, s := range r.slots {
		if err := r.restart(s); err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	}
	began := time.Now()
	if err := r.awaitRows(began); err != nil {
		r.t.Fatal(err)
	}
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

// restart starts a process in the place of one that has ended.
func (r *engineRun) restart(s *slot) error {
	r.mu.Lock()
	r.started++
	s.orders.Writer.Process = r.started
	r.mu.Unlock()
	return s.start(0)
}

// failServers does each of the engine's faults in turn, in an order of its own each
// time, until the end, and waits after each until every process writes again.
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

// failProcesses kills processes and stops them past their lease.
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
		wait(7 * time.Second) // a lease has 5
		s.signal(syscall.SIGCONT)
	}
}

func (r *engineRun) note(fault string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[fault]++
	r.last = fault
}

// awaitRows returns when each process has written rows since then.
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

// showProgress says every few seconds how far a run is.
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

// figures are what came of a run.
type figures struct {
	acknowledged int // rows
	lost         int // acknowledged, and in no table
	twice        int // rows with a key that another row of the table has
	other        int // rows with another key than reported
	unfilled     int // rows with no key, or 0
	unknown      int // acknowledged without their key
	unsaid       int // rows of statements that failed, or whose process was killed
}

// judge holds the tables against what the writers know.
func (r *engineRun) judge() {
	known := map[int64]int64{}
	errorsOf := map[string]int{}
	for _, s := range r.slots {
		for _, row := range s.rows {
			if key, ok := known[row.token]; !ok || key == 0 {
				known[row.token] = row.key
			} else if row.key != 0 && row.key != key {
				r.t.Errorf("row %d was reported with key %d and with %d", row.token, key, row.key)
			}
		}
		s.rows = nil
		for kind, n := range s.errors {
			errorsOf[kind] += n
		}
		for _, strange := range s.strange {
			r.t.Errorf("not documented: %s", strange)
		}
	}
	f := figures{acknowledged: len(known)}
	shares := map[string][]int{} // rows of a table at each store
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
	r.t.Logf("%s: rows %s faults %s errors %s", r.name, counts(shares), counts(r.faults), counts(errorsOf))
	if f.lost+f.twice+f.other+f.unfilled > 0 {
		r.t.Errorf("lost=%d twice=%d other=%d unfilled=%d, of which there must be none", f.lost, f.twice, f.other, f.unfilled)
	}
	if f.acknowledged == 0 {
		r.t.Error("no row was written")
	}
}

// readTable reads the rows that a database has of a table.
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

// tables are the statements that make what writers write to.
func tables() []string {
	return []string{
		"CREATE TABLE by_token (id BIGINT NOT NULL, token BIGINT NOT NULL, a INT, PRIMARY KEY (token), KEY (id))",
		"CREATE TABLE by_key (id BIGINT NOT NULL, token BIGINT NOT NULL, a INT, PRIMARY KEY (id))",
		"CREATE TABLE numbers (n BIGINT NOT NULL PRIMARY KEY, a BIGINT)",
		"INSERT INTO numbers (n, a) VALUES (0, 0), (1, 0), (2, 0)",
	}
}

func mustRun(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	if err := engines.Run(dsn, statements...); err != nil {
		t.Fatal(err)
	}
}

// killed kills one of some servers, and starts it again after a while.
func killed(name string, away time.Duration, servers ...*testserver.Server) engineFault {
	return engineFault{name + " killed", func(rng *rand.Rand) error {
		s := oneOf(rng, servers)
		s.Kill()
		wait(away)
		s.Start()
		return nil
	}}
}

// stopped has one of some servers stand still for a while.
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
