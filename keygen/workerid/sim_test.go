package workerid

import (
	"flag"
	"testing"
	"time"
)

var simSeeds = flag.Int("sim.seeds", 0, "worlds to simulate; 0: as many as take a few seconds")

// simSteps is the length of one world.
const simSteps = 20_000

func seeds() int {
	switch {
	case *simSeeds > 0:
		return *simSeeds
	case raceEnabled:
		return 10
	case testing.Short():
		return 30
	}
	return 300
}

// Whatever clocks, processes and the store do, no id is made twice.
func TestSimulation_findsNoRepeat(t *testing.T) {
	for name, r := range map[string]rules{
		"rules": theRules,
		// Taking over whenever one likes, live holders included, costs leases
		// but repeats nothing: uniqueness asks no clock.
		"any record is free": withRule(func(r *rules) { r.free = func(Record, int64) bool { return true } }),
	} {
		t.Run(name, func(t *testing.T) {
			var sum figures
			for seed := range seeds() {
				w := newWorld(uint64(seed), r, bugs{})
				w.run(simSteps)
				if w.repeat != nil {
					t.Fatalf("seed %d, step %d: %v", seed, w.figures.steps, w.repeat)
				}
				sum.add(w.figures)
			}
			t.Logf("%d worlds: %+v", seeds(), sum)
			for _, n := range []int{sum.ids / 1000, sum.acquired, sum.lost, sum.released, sum.crashes, sum.lostAnswers, sum.lateWrites, sum.forgotten} {
				if n < seeds() {
					t.Errorf("too little happened to prove anything: %+v", sum)
				}
			}
		})
	}
}

// The simulation finds each rule missing: otherwise it would prove nothing.
func TestSimulation_findsSeededBugs(t *testing.T) {
	for name, c := range map[string]struct {
		rules rules
		bugs  bugs
	}{
		"limit is not looked at":  {theRules, bugs{noLimit: true}},
		"store does not compare":  {theRules, bugs{noCompare: true}},
		"an id after giving back": {theRules, bugs{lateLimit: true}},
		"reserved_until may fall": {rules: withRule(func(r *rules) {
			r.raise = func(_ Record, want int64) int64 { return want }
		})},
		"successor starts at its clock": {rules: withRule(func(r *rules) {
			r.floor = func(_ Record, now int64) int64 { return now }
		})},
		"successor starts one too early": {rules: withRule(func(r *rules) {
			floor := r.floor
			r.floor = func(prev Record, now int64) int64 { return floor(prev, now) - 1 }
		})},
		"lost answer counts as written": {rules: withRule(func(r *rules) {
			r.confirmed = func(swapped bool, err error) bool { return swapped || err != nil }
		})},
		"what the store shows counts as kept": {rules: withRule(func(r *rules) {
			r.shown = func(_ int64, found Record) int64 { return found.ReservedUntil }
		})},
		"any record is mine": {rules: withRule(func(r *rules) {
			r.mine = func(Record, Record, []string) bool { return true }
		})},
		"last used is free": {rules: withRule(func(r *rules) {
			r.freeFrom = func(floor, limit, lastUsed int64) int64 { return max(floor, lastUsed) }
		})},
		"unused lease frees what came before it": {rules: withRule(func(r *rules) {
			r.freeFrom = func(floor, limit, lastUsed int64) int64 { return max(lastUsed+1, floor-50) }
		})},
		"close frees what may be used": {rules: withRule(func(r *rules) {
			freeFrom := r.freeFrom
			r.freeFrom = func(floor, limit, lastUsed int64) int64 { return freeFrom(floor, limit, max(0, lastUsed)) }
		})},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range 300 {
				w := newWorld(uint64(seed), c.rules, c.bugs)
				w.run(simSteps)
				if w.repeat != nil {
					t.Logf("found with seed %d at step %d: %v", seed, w.figures.steps, w.repeat)
					return
				}
			}
			t.Error("not found")
		})
	}
}

// The same worlds with SNOWFLAKE itself in place of the simulation's generator.
func TestSimulation_ofSnowflake(t *testing.T) {
	var sum figures
	for seed := range seeds() {
		w := makeWorld(uint64(seed), theRules, bugs{}, true)
		w.run(simSteps)
		if w.repeat != nil {
			t.Fatalf("seed %d, step %d: %v", seed, w.figures.steps, w.repeat)
		}
		sum.add(w.figures)
	}
	t.Logf("%d worlds: %+v", seeds(), sum)
	if sum.ids/1000 < seeds() || sum.released < seeds() || sum.lostAnswers < seeds() {
		t.Errorf("too little happened to prove anything: %+v", sum)
	}
	for name, b := range map[string]bugs{"no limit": {farLimit: true}, "no comparison": {noCompare: true}} {
		found := false
		for seed := 0; seed < 300 && !found; seed++ {
			w := makeWorld(uint64(seed), theRules, b, true)
			w.run(simSteps)
			found = w.repeat != nil
		}
		if !found {
			t.Errorf("%s: not found", name)
		}
	}
}

// Servers are replaced by replicas that lack their last writes, and processes have leases of
// three lengths: no id is made twice.
func TestSimulation_failoversWithLeasesOfDifferentLengths(t *testing.T) {
	run := func(seed int, r rules, real bool) *world {
		w := (&world{real: real, failovers: true}).populate(uint64(seed), r, bugs{})
		w.run(simSteps / 5) // short, as the longest lease is noted at the beginning
		return w
	}
	for _, real := range []bool{false, true} {
		var sum figures
		worlds := (seeds() + 2) / 3
		for seed := range worlds {
			w := run(seed, theRules, real)
			if w.repeat != nil {
				t.Fatalf("seed %d, step %d: %v", seed, w.figures.steps, w.repeat)
			}
			sum.add(w.figures)
		}
		t.Logf("%d worlds: %+v", worlds, sum)
		for _, n := range []int{sum.ids / 50, sum.acquired, sum.failovers} {
			if n < worlds {
				t.Errorf("too little happened to prove anything: %+v", sum)
			}
		}
	}
	if raceEnabled || testing.Short() {
		return // it takes some thousand worlds
	}
	for name, r := range map[string]rules{
		"only the own lease counts": withRule(func(r *rules) {
			r.longest = func(own, _ time.Duration) time.Duration { return own }
		}),
		"a longer lease is used as soon as it is noted": withRule(func(r *rules) {
			r.settled = func(n leaseLengths, _ int64) time.Duration { return n.longest }
		}),
		"a lease that ran out is renewed on any server": withRule(func(r *rules) {
			r.others = func(Record, int64, int64) bool { return false }
		}),
	} {
		found := false
		for seed := 0; seed < 3000 && !found; seed++ {
			w := run(seed, r, false)
			if found = w.repeat != nil; found {
				t.Logf("%s: found with seed %d at step %d: %v", name, seed, w.figures.steps, w.repeat)
			}
		}
		if !found {
			t.Errorf("%s: not found", name)
		}
	}
}

// A seed is a world: what it found can be looked at again.
func TestSimulation_isReproducible(t *testing.T) {
	var have []figures
	for range 2 {
		w := newWorld(7, theRules, bugs{})
		w.run(simSteps)
		have = append(have, w.figures)
	}
	if have[0] != have[1] {
		t.Errorf("have: %+v\nwant: %+v", have[1], have[0])
	}
}

func withRule(change func(*rules)) rules {
	r := theRules
	change(&r)
	return r
}
