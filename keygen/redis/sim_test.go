package redis

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// The simulation runs the real script and the generators' real memory. Its server steps its clock
// back and forth, restarts without its last writes, and loses everything. Generators come and go.

// world is one run of the simulation.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	redis  *goredis.Client
	key    string
	source string // the script, which gets its time as an argument

	now    int64 // true time in milliseconds since 1970
	offset int64 // the server's clock minus now
	run    int   // number of the server's process
	gens   []*generator
	met    map[*generator]int  // the server process that each generator is connected to
	before []map[string]string // old states, the newest last
	top    position            // the highest position that was returned: later ones must be above it
	repeat error
}

// Now and Sleep make the world the generators' clock.
func (w *world) Now() time.Time { return time.UnixMilli(w.now) }
func (w *world) Sleep(_ context.Context, d time.Duration) error {
	w.now += d.Milliseconds()
	return nil
}

// scripter runs the world's script in place of the requested one.
type scripter struct {
	goredis.Scripter
	w *world
}

func (s scripter) EvalSha(ctx context.Context, _ string, keys []string, args ...any) *goredis.Cmd {
	return s.w.redis.Eval(ctx, s.w.source, keys, append(args, s.w.now+s.w.offset)...)
}

func newWorld(t *testing.T, addr, source string, seed uint64) *world {
	source = strings.Replace(source, "redis.call('TIME')", "{math.floor(ARGV[7] / 1000), (ARGV[7] % 1000) * 1000}", 1)
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 0)), redis: client(t, addr), source: source,
		key: fmt.Sprint(namespace(t), time.Now().UnixNano()), now: 1_790_000_000_000, run: 1, met: map[*generator]int{}}
	for range 3 {
		w.newGenerator()
	}
	w.askAll()
	return w
}

func (w *world) newGenerator() {
	g := newOffline(w.t, w, map[string]any{"addr": "sim:1"})
	g.stateKey = w.key
	w.gens = append(w.gens, g)
}

// ask performs one request of a generator, like a call of the generator with a connection.
func (w *world) ask(g *generator, n int) {
	ctx := w.t.Context()
	if w.met[g] != w.run {
		if _, err := g.ask(ctx, scripter{w: w}, 0, fmt.Sprint(w.run)); err != nil {
			w.t.Fatal(err)
		}
		w.met[g] = w.run
	}
	r, err := g.ask(ctx, scripter{w: w}, n, "")
	for err == nil && r.kind == "wait" {
		w.now += r.wait.Milliseconds()
		r, err = g.ask(ctx, scripter{w: w}, n, "")
	}
	if err != nil || r.kind != "ok" {
		w.t.Fatalf("the script says %+v, %v", r, err)
	}
	if r.first <= w.top && w.repeat == nil {
		w.repeat = fmt.Errorf("position %d was given after %d", r.first, w.top)
	}
	w.top = r.first + position(n) - 1
}

func (w *world) step() {
	state := w.redis.HGetAll(w.t.Context(), w.key).Val()
	w.before = append(w.before, state)
	if len(w.before) > 8 {
		w.before = w.before[1:]
	}
	w.now += w.rng.Int64N(30)
	switch w.rng.IntN(40) {
	case 0: // a step back
		w.offset -= w.rng.Int64N([]int64{50, 2000, 3_600_000}[w.rng.IntN(3)])
	case 1: // a step forward, at most to the true time; every generator sees it
		w.offset = min(0, w.offset+w.rng.Int64N(3_600_000))
		w.askAll()
	case 2: // a crash that loses the last writes
		w.run++
		w.restore(w.before[w.rng.IntN(len(w.before))])
		w.askAll() // a generator can't distinguish a second loss before that
	case 3: // a crash or FLUSHALL that loses everything
		w.run += w.rng.IntN(2)
		w.restore(nil)
		w.askAll()
	case 4: // an old state is restored while the server runs
		w.restore(w.before[w.rng.IntN(len(w.before))])
		w.ask(slices.MaxFunc(w.gens, func(a, b *generator) int { return cmp.Compare(a.memory.floor, b.memory.floor) }), 1)
		w.askAll()
	case 5: // a process starts, another ends
		w.newGenerator()
		w.gens = slices.Delete(w.gens, 0, 1)
		w.askAll() // a process that ended knows nothing that the others don't
	default:
		w.ask(w.gens[w.rng.IntN(len(w.gens))], 1+w.rng.IntN([]int{1, 20, 1024, 3000, 65536}[w.rng.IntN(5)]))
	}
}

// askAll performs a request of each generator in any order. The first one restores a lost state.
func (w *world) askAll() {
	for _, i := range w.rng.Perm(len(w.gens)) {
		w.ask(w.gens[i], 1)
	}
}

func (w *world) restore(state map[string]string) {
	ctx := w.t.Context()
	w.redis.Del(ctx, w.key)
	if len(state) > 0 {
		if err := w.redis.HSet(ctx, w.key, slices.Collect(func(yield func(any) bool) {
			for _, k := range slices.Sorted(maps.Keys(state)) {
				_ = yield(k) && yield(state[k])
			}
		})...).Err(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// run runs a world and returns the first duplicate.
func run(t *testing.T, addr, source string, seed uint64, steps int) error {
	w := newWorld(t, addr, source, seed)
	for i := range steps {
		if w.step(); w.repeat != nil {
			return fmt.Errorf("seed %d, step %d: %w", seed, i, w.repeat)
		}
	}
	return nil
}

func TestSimulation_findsNoRepeat(t *testing.T) {
	addr := testserver.Redis(t)
	seed := uint64(1)
	if os.Getenv("SHARDKEY_SOAK") != "" {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	const worlds, steps = 20, 600
	for i := range uint64(worlds) {
		if err := run(t, addr, reserveSource, seed+i, steps); err != nil {
			t.Error(err)
		}
	}
}

// The simulation must find duplicates if a safeguard is removed.
func TestSimulation_findsSeededBugs(t *testing.T) {
	addr := testserver.Redis(t)
	for safeguard, change := range map[string][]string{
		"never back":            {"math.max(known + 1, time * 1024)", "time * 1024"},
		"margin of a new state": {"(time + MARGIN) * 1024 - 1)\nend", "time * 1024 - 1)\nend"},
		"another process":       {" or (run ~= '' and run ~= (state[3] or ''))", ""},
		"the callers' floor": {
			"local lost = floor > (last or 0)", "local lost = false", "math.max(last or 0, floor)", "last or 0",
		},
		"the callers' stopwatch": {"behind = math.max(behind, reach - now)", ""},
		"all n are reserved":     {"known = first + n - 1", "known = first + math.floor(n / 2)"},
	} {
		t.Run(safeguard, func(t *testing.T) {
			broken := reserveSource
			for i := 0; i < len(change); i += 2 {
				if !strings.Contains(broken, change[i]) {
					t.Fatalf("the script has no %q", change[i])
				}
				broken = strings.Replace(broken, change[i], change[i+1], 1)
			}
			for seed := range uint64(40) {
				if err := run(t, addr, broken, seed, 600); err != nil {
					return
				}
			}
			t.Errorf("repeats without it\nhave: none found\nwant: one")
		})
	}
}

// The server restarts without its last writes while its clock is behind. The time line stays as
// far ahead of the clock as before, also for processes that don't know it.
func TestSimulation_restartWhileTheClockIsBehind(t *testing.T) {
	addr := testserver.Redis(t)
	for name, c := range map[string]struct {
		source string
		repeat bool
	}{
		"as it is":        {reserveSource, false},
		"without the lag": {strings.Replace(reserveSource, "fresh and lag or", "fresh and 0 or", 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.repeat && c.source == reserveSource {
				t.Fatal("the script is as it was")
			}
			w := newWorld(t, addr, c.source, 1)
			w.offset -= 10_000
			w.askAll()
			state := w.redis.HGetAll(t.Context(), w.key).Val()
			w.now += 5000
			w.askAll()
			w.run++
			w.restore(state)
			w.newGenerator()
			w.ask(w.gens[len(w.gens)-1], 1)
			must.Equal(t, w.repeat != nil, c.repeat, w.repeat)
		})
	}
}

// A generator remembers the newest answer's time line, and the last position of all.
func TestMemory_isOfTheNewestAnswer(t *testing.T) {
	w := &world{t: t, now: 1_790_000_000_000}
	g := newOffline(t, w, map[string]any{"addr": "sim:1"})
	first := position(w.now << layout.SequenceBits)
	older := w.Now()
	w.now += 10
	newer := w.Now()
	w.now += 10
	g.answered(newer, 5, reply{kind: "ok", first: first + 100, now: 2000, time: 2100})
	g.answered(older, 300, reply{kind: "ok", first: first, now: 1000, time: 1100})
	want := memory{floor: first + 299, server: 2000, line: 2100, local: time.UnixMilli(w.now)}
	must.Equal(t, g.memory, want)
	w.now += 700
	if have := g.args(w.Now(), 1, ""); have[1] != int64(want.floor) || have[2] != int64(2800) {
		t.Errorf("\nhave: floor %d, reach %d\nwant: %d, 2800", have[1], have[2], want.floor)
	}
}

// The keys of a call that fit into one millisecond are in one, wherever the last call ended.
func TestScript_callStaysInAMillisecond(t *testing.T) {
	w := newWorld(t, testserver.Redis(t), reserveSource, 1)
	w.now += 60_000 // a new state begins as far ahead of the clock as allowed

	for i, n := range []int{1, 1023, 1000, 30, 1000, 1024, 2, 1024} { // all at one time
		r, err := w.gens[0].ask(t.Context(), scripter{w: w}, n, "")
		if used := int(r.first % 1024); err != nil || r.kind != "ok" || used+n > 1024 {
			t.Errorf("call %d, of %d keys\nhave: %s, the first at %d of 1024 (%v)\nwant: one millisecond",
				i, n, r.kind, used, err)
		}
	}
}
