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

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/keygen/snowflake"
)

var (
	duration = flag.Duration("duration", fromEnv(), "how long each store is soaked")
	only     = flag.String("stores", "", "the stores to soak, with commas; all by default")
	seed     = flag.Uint64("seed", 0, "the choice of faults; 0: a new one")
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

// TestSoak runs every store in turn.
func TestSoak(t *testing.T) {
	for _, s := range stores {
		if *only == "" || slices.Contains(strings.Split(*only, ","), s.typ) {
			t.Run(s.typ, func(t *testing.T) { newSoak(t, s).run() })
		}
	}
}

const (
	processes = 5
	// keysInAll bounds what a long run keeps in memory.
	keysInAll = 40_000_000
	// recovery is when a process that makes no keys after a fault is taken for
	// stuck. What is documented is far less and is printed; a test machine may
	// be slow.
	recovery = time.Minute
)

// soak is one store's run.
type soak struct {
	t      *testing.T
	typ    string
	server *testserver.Server // nil for FILE
	where  string             // its address, or FILE's directory
	slots  []*slot
	agents []*agent
	// whole is read-locked while a process ends in good order: the store must
	// not be away from all processes then.
	whole sync.RWMutex
}

func newSoak(t *testing.T, s store) *soak {
	start := *seed
	if start == 0 {
		start = rand.Uint64()
	}
	k := &soak{t: t, typ: s.typ, where: t.TempDir()}
	if s.server != nil {
		k.server = s.server(t)
		k.where = k.server.Addr()
	}
	t.Logf("seed %d", start)
	for range processes {
		one := &slot{errors: map[string]int{}}
		where := k.where
		if k.server != nil {
			one.proxy = startProxy(t, where)
			where = one.proxy.addr()
		}
		one.orders = s.orders(where)
		one.orders.Pause = max(2*time.Millisecond, time.Duration(float64(*duration)/keysInAll*25*processes))
		k.slots = append(k.slots, one)
	}
	k.agents = []*agent{newAgent(k, start, k.slots[:processes/2]), newAgent(k, start+1, k.slots[processes/2:])}
	return k
}

func (k *soak) run() {
	for _, s := range k.slots {
		if err := s.start(0); err != nil {
			k.t.Fatal(err)
		}
		k.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	}
	var running sync.WaitGroup
	for _, a := range k.agents {
		running.Go(func() { a.run(*duration) })
	}
	running.Wait()
	for _, s := range k.slots {
		s.quit()
	}
	k.check()
}

// check looks for a key that came twice, and for errors that nobody documented.
func (k *soak) check() {
	var all []int64
	errors := map[string]int{}
	for _, s := range k.slots {
		all = append(all, s.keys...)
		s.keys = nil
		for kind, n := range s.errors {
			errors[kind] += n
		}
		for _, strange := range s.strange {
			k.t.Errorf("not documented: %s", strange)
		}
	}
	slices.Sort(all)
	duplicates := 0
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			if duplicates++; duplicates <= 5 {
				k.t.Errorf("key %d twice: %v", all[i], parts(all[i]))
			}
		}
	}
	faults, n, slowest := map[string]int{}, 0, map[string]time.Duration{}
	for _, a := range k.agents {
		for name, times := range a.faults {
			faults[name] += times
			n += times
			slowest[name] = max(slowest[name], a.slowest[name])
		}
		if a.stuck != nil {
			k.t.Error(a.stuck)
		}
	}
	k.t.Logf("%s: keys=%d processes=%d faults=%d %s errors=%s duplicates=%d",
		k.typ, len(all), processes, n, counts(faults), counts(errors), duplicates)
	k.t.Logf("%s: slowest time to the next key after a fault: %s", k.typ, counts(slowest))
}

func parts(key int64) any {
	g, err := snowflake.New(snowflake.Config{Layout: layout, WorkerIDSet: true})
	if err != nil {
		return err
	}
	p, err := g.DecodeKey(key)
	if err != nil {
		return err
	}
	return fmt.Sprintf("worker %d, time %v, sequence %d", p.WorkerID, p.Time.UTC(), p.Sequence)
}

func counts[V any](m map[string]V) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s: %v", name, m[name]))
	}
	return "{" + strings.Join(all, ", ") + "}"
}
