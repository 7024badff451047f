//go:build linux

package chaos

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/snowflake"
)

var (
	duration = flag.Duration("duration", fromEnv(), "duration of the faults for each subject")
	only     = flag.String("subjects", "", "subjects to test, separated by commas (default all)")
	seed     = flag.Uint64("seed", 0, "seed for the choice of faults; with SHARDKEY_SOAK, 0 means a random one")
)

func fromEnv() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("SHARDKEY_SOAK")); err == nil && d > 0 {
		return d
	}
	return 4 * time.Second
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		if err := child(text); err != nil {
			report(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// TestChaos tests all subjects, one after another.
func TestChaos(t *testing.T) {
	for _, s := range subjects {
		if *only == "" || slices.Contains(strings.Split(*only, ","), s.name) {
			t.Run(s.name, func(t *testing.T) { newRun(t, s).try() })
		}
	}
}

const (
	processes = 5
	// keysInAll limits the memory of a long run.
	keysInAll = 40_000_000
	// recovery is the time after which a process that generates no keys after a fault counts as
	// stuck. The documented time is far shorter, and is printed. A test machine may be slow.
	recovery = time.Minute
)

// run is the test of one subject.
type run struct {
	subject
	t      *testing.T
	server *testserver.Server // nil without a server
	where  string             // address of the server, or directory of FILE
	slots  []*slot
	agents []*agent
	// whole is read-locked while a process closes, because the store must then be available to
	// some process.
	whole sync.RWMutex
}

func newRun(t *testing.T, s subject) *run {
	start := *seed
	if start == 0 && os.Getenv("SHARDKEY_SOAK") != "" {
		start = rand.Uint64()
	}
	r := &run{subject: s, t: t, where: t.TempDir()}
	if s.server != nil {
		r.server = s.server(t)
		r.where = r.server.Addr()
	}
	t.Logf("seed %d", start)
	for i := range processes {
		one := &slot{errors: map[string]int{}}
		where := r.where
		if r.server != nil {
			one.proxy = startProxy(t, where)
			where = one.proxy.addr()
		}
		one.orders = s.orders(where, i)
		one.orders.Pause = max(2*time.Millisecond, time.Duration(float64(*duration)/keysInAll*25*processes))
		r.slots = append(r.slots, one)
	}
	r.agents = []*agent{newAgent(r, start, r.slots[:processes/2]), newAgent(r, start+1, r.slots[processes/2:])}
	return r
}

func (r *run) try() {
	for _, s := range r.slots {
		if err := s.start(0); err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	}
	var running sync.WaitGroup
	for _, a := range r.agents {
		running.Go(func() { a.work(*duration) })
	}
	running.Wait()
	for _, s := range r.slots {
		s.quit()
	}
	r.check()
}

// check searches for duplicate keys and for undocumented errors.
func (r *run) check() {
	var all []int64
	errors := map[string]int{}
	for _, s := range r.slots {
		all = append(all, s.keys...)
		s.keys = nil
		for kind, n := range s.errors {
			errors[kind] += n
		}
		for _, strange := range s.strange {
			r.t.Errorf("not documented: %s", strange)
		}
	}
	slices.Sort(all)
	duplicates := 0
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			if duplicates++; duplicates <= 5 {
				r.t.Errorf("key %d twice: %s", all[i], r.parts(all[i]))
			}
		}
	}
	faults, n, slowest := map[string]int{}, 0, map[string]time.Duration{}
	for _, a := range r.agents {
		for name, times := range a.faults {
			faults[name] += times
			n += times
			slowest[name] = max(slowest[name], a.slowest[name])
		}
		if a.stuck != nil {
			r.t.Error(a.stuck)
		}
	}
	r.t.Logf("%s: keys=%d processes=%d faults=%d %s errors=%s duplicates=%d",
		r.name, len(all), processes, n, counts(faults), counts(errors), duplicates)
	r.t.Logf("%s: slowest time to the next key after a fault: %s", r.name, counts(slowest))
}

// parts describes the worker ID and sequence of a key, with any epoch.
func (r *run) parts(key int64) string {
	p, err := snowflake.Decode(r.layout, snowflake.DefaultEpoch, key)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("worker %d, sequence %d", p.WorkerID, p.Sequence)
}

func counts[V any](m map[string]V) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s: %v", name, m[name]))
	}
	return "{" + strings.Join(all, ", ") + "}"
}
