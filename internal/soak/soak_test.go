package soak

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

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
	// recovery is when a process that makes no keys after the last fault is
	// taken for stuck. What is documented is far less and is printed; a test
	// machine may be slow.
	recovery = time.Minute
)

// soak is one store's run.
type soak struct {
	t      *testing.T
	typ    string
	where  string
	rng    *rand.Rand
	slots  []*slot
	faults map[string]int
	// slowest is the longest time from the end of the last fault to a key.
	slowest time.Duration
}

func newSoak(t *testing.T, s store) *soak {
	start := *seed
	if start == 0 {
		start = rand.Uint64()
	}
	k := &soak{t: t, typ: s.typ, rng: rand.New(rand.NewPCG(start, 1)), faults: map[string]int{}, where: s.server(t)}
	t.Logf("seed %d", start)
	for range processes {
		one := &slot{errors: map[string]int{}}
		where := k.where
		if s.typ != "FILE" {
			one.proxy = startProxy(t, where)
			where = one.proxy.addr()
		}
		one.orders = s.orders(where)
		one.orders.Pause = max(2*time.Millisecond, time.Duration(float64(*duration)/keysInAll*25*processes))
		k.slots = append(k.slots, one)
	}
	return k
}

func (k *soak) run() {
	for _, s := range k.slots {
		k.must(s.start(0))
		k.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	}
	k.recover() // all make keys before the first fault
	for end := time.Now().Add(*duration); time.Now().Before(end); {
		k.fault(k.slots[k.rng.IntN(len(k.slots))])
		k.wait(rand.N(200 * time.Millisecond))
	}
	for _, s := range k.slots {
		s.step(-s.off) // a clock that stays an hour back may find no worker id
	}
	k.recover()
	for _, s := range k.slots {
		s.quit()
	}
	k.check()
}

func (k *soak) must(err error) {
	if err != nil {
		k.t.Helper()
		k.t.Fatal(err)
	}
}

// wait lets real time pass for the processes; nothing is expected to have
// happened afterwards.
func (k *soak) wait(d time.Duration) { <-time.After(d) }

// recover waits until every process has made keys again.
func (k *soak) recover() {
	healed := time.Now()
	for _, s := range k.slots {
		for !s.madeKeySince(healed) {
			if time.Since(healed) > recovery {
				k.t.Fatalf("a process made no key for %v after the last fault; its errors: %v, %q", recovery, s.errors, s.strange)
			}
			k.wait(time.Millisecond)
		}
	}
	k.slowest = max(k.slowest, time.Since(healed))
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
	k.t.Logf("%s: keys=%d processes=%d faults=%s errors=%s slowest recovery=%v duplicates=%d",
		k.typ, len(all), processes, counts(k.faults), counts(errors), k.slowest.Round(time.Millisecond), duplicates)
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

func counts(m map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s:%d", name, m[name]))
	}
	return "{" + strings.Join(all, " ") + "}"
}
