package redis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/cases"
	testclock "github.com/shardkey/shardkey/internal/test/clock"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/spi"
)

func TestGenerator_keysAscendAndDecode(t *testing.T) {
	g := open(t, testserver.Redis(t), "shard-id", 4095)
	var all []int64
	for _, n := range []int{1, 2, 1000, 1024, 1025, 5000, 65536, 65537, 1} {
		keys := mustKeys(t, g, n)
		all = append(all, keys...)
		if n <= 1024 && keys[n-1]-keys[0] != int64(n-1) {
			t.Errorf("call of %d keys\nhave: %d..%d\nwant: contiguous", n, keys[0], keys[n-1])
		}
		parts, err := g.DecodeKey(keys[0])
		if err != nil || parts.WorkerID != 4095 || parts.Layout != "41-12-10" || time.Since(parts.Time).Abs() > time.Minute {
			t.Errorf("DecodeKey\nhave: %+v, %v\nwant: shard 4095, now", parts, err)
		}
	}
	wantAscending(t, all)
}

func TestGenerator_keysOfManyAreDistinct(t *testing.T) {
	addr := testserver.Redis(t)
	generators := []*generator{open(t, addr), open(t, addr), open(t, addr)}
	var mu sync.Mutex
	var all []int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for n := range 40 {
				keys := make([]int64, 1+(n*i)%50)
				if err := generators[i%3].GenerateInt64Keys(t.Context(), spi.Column{}, keys); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				all = append(all, keys...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	wantApart(t, all)
	if h := generators[0].Health(); h.Err != nil || h.Issued == 0 || h.Segment.Fetches == 0 || h.Segment.FetchTime <= 0 {
		t.Errorf("Health\nhave: %+v\nwant: issued, fetches, no error", h)
	}
}

// A call is one command. The command contains the run ID of the server's process, which shows
// that a server has restarted without its last writes.
func TestGenerator_whatIsSent(t *testing.T) {
	s := testserver.StartRedis(t)
	g, c := open(t, s.Addr()), client(t, s.Addr())
	mustKeys(t, g, 1)
	must.Do(t, c.ConfigResetStat(t.Context()).Err())
	mustKeys(t, g, 10_000)
	info := c.InfoMap(t.Context(), "commandstats", "server").Val()
	commands := info["Commandstats"]
	if !strings.HasPrefix(commands["cmdstat_evalsha"], "calls=1,") || commands["cmdstat_eval"] != "" {
		t.Errorf("commands for 10,000 keys\nhave: %v\nwant: one evalsha", commands)
	}
	have, err := c.HGet(t.Context(), g.stateKey, "run").Result()
	if err != nil || have == "" || have != info["Server"]["run_id"] {
		t.Errorf("run in the state\nhave: %q, %v\nwant: the server's run_id", have, err)
	}
}

func TestGenerator_canceledWhileItWaits(t *testing.T) {
	g := open(t, testserver.Redis(t))
	ctx, cancel := context.WithCancel(t.Context())
	g.clock = sleepCancels{spi.SystemClock, cancel}
	var err error
	for err == nil {
		err = g.GenerateInt64Keys(ctx, spi.Column{}, make([]int64, 65_536))
	}
	must.Is(t, err, context.Canceled)
}

// sleepCancels is a clock that cancels a context before it sleeps.
type sleepCancels struct {
	spi.Clock
	cancel func()
}

func (c sleepCancels) Sleep(ctx context.Context, d time.Duration) error {
	c.cancel()
	return c.Clock.Sleep(ctx, d)
}

func TestGenerator_outages(t *testing.T) {
	s := testserver.StartRedis(t)
	var all []int64
	generators := map[string]*generator{}
	testserver.Outages(t, s, func(timeout string) func(context.Context) error {
		g := open(t, s.Addr(), "timeout", timeout)
		generators[timeout] = g
		return func(ctx context.Context) error {
			keys := make([]int64, 100)
			err := g.GenerateInt64Keys(ctx, spi.Column{}, keys)
			gaveUp := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
			if h := g.Health(); (h.Err != nil) != (err != nil && !gaveUp) {
				t.Errorf("Health after %v\nhave: %+v\nwant: Err while the server is unavailable", err, h)
			}
			if err == nil {
				all = append(all, keys...)
			} else if !slices.Equal(keys, make([]int64, 100)) {
				t.Errorf("keys with an error\nhave: %v\nwant: none", keys)
			}
			return err
		}
	})
	wantAscending(t, all)
	quick, patient := generators["1s"].Health().Errors, generators["1h"].Health().Errors
	if quick["store"] < 2 || patient["canceled"] != 1 || patient["deadline"] != 1 {
		t.Errorf("errors\nhave: %v, %v\nwant: of the server, and of contexts that ended", quick, patient)
	}
}

// wantAscending checks that each key is above the previous one, so that none repeats.
func wantAscending(t testing.TB, keys []int64) {
	t.Helper()
	for i := 1; i < len(keys); i++ {
		if keys[i] <= keys[i-1] {
			t.Fatalf("key %d\nhave: %d\nwant: over %d", i, keys[i], keys[i-1])
		}
	}
}

// Without persistence, each restart loses the state, and so does FLUSHALL.
func TestGenerator_stateLostWithTheClockRight(t *testing.T) {
	s := testserver.StartRedis(t, "--appendonly", "no")
	g, idle := open(t, s.Addr()), open(t, s.Addr())
	all := mustKeys(t, idle, 10)
	for range 3 {
		all = append(all, mustKeys(t, g, 70_000)...)
		s.Kill()
		s.Start()
		all = append(all, mustKeys(t, g, 70_000)...)
		must.Do(t, client(t, s.Addr()).FlushAll(t.Context()).Err())
		all = append(all, mustKeys(t, open(t, s.Addr()), 10)...)
	}
	all = append(all, mustKeys(t, idle, 10)...)
	wantAscending(t, all)
}

// If the previous server's clock was ahead, a server with the right time looks like one whose
// clock stepped back.
func TestGenerator_stateLostAndTheClockBack(t *testing.T) {
	s := testserver.StartRedis(t)
	g := open(t, s.Addr())
	before := mustKeys(t, g, 1)[0]
	g.memory.line += time.Hour.Milliseconds()
	if parts, _ := g.DecodeKey(mustKeys(t, g, 1)[0]); time.Until(parts.Time) > time.Minute {
		t.Errorf("with its state the line is where it was\nhave: %v\nwant: now", parts.Time)
	}
	if w := g.Health().Warnings; len(w) != 0 {
		t.Errorf("Health\nhave: %v\nwant: no warnings", w)
	}
	g.memory.line += time.Hour.Milliseconds()
	client(t, s.Addr()).FlushAll(t.Context())
	for range 3 {
		key := mustKeys(t, g, 1)[0]
		parts, _ := g.DecodeKey(key)
		if d := time.Until(parts.Time); key <= before || d < 59*time.Minute || d > 61*time.Minute {
			t.Errorf("without\nhave: %d, %v ahead\nwant: over %d, an hour ahead", key, d, before)
		}
		before = key
	}
	if w := g.Health().Warnings; len(w) != 1 || !strings.Contains(w[0], "has lost the state") {
		t.Errorf("Health\nhave: %v\nwant: a warning", w)
	}
	// A new generator finds the new state.
	if key := mustKeys(t, open(t, s.Addr()), 1)[0]; key <= before {
		t.Errorf("another generator\nhave: %d\nwant: over %d", key, before)
	}
}

// If the clock steps back, the state is ahead of it.
func TestGenerator_clockBack(t *testing.T) {
	addr := testserver.Redis(t)
	g := open(t, addr)
	before := mustKeys(t, g, 1)[0]
	c := client(t, addr)
	hour := (time.Now().Add(time.Hour).UnixMilli()) << layout.SequenceBits
	c.HSet(t.Context(), g.stateKey, "last", hour)
	last := before
	for range 20 {
		keys := mustKeys(t, g, 3000)
		parts, _ := g.DecodeKey(keys[0])
		if keys[0] <= last || time.Until(parts.Time) < 59*time.Minute || time.Until(parts.Time) > 61*time.Minute {
			t.Fatalf("a key after a step back\nhave: %d of %v\nwant: above %d, an hour ahead", keys[0], parts.Time, last)
		}
		last = keys[2999]
	}
	if b := g.Health().Clock.Ahead; b < 59*time.Minute {
		t.Errorf("Health.Borrowed\nhave: %v\nwant: an hour", b)
	}
}

func TestGenerator_foreignState(t *testing.T) {
	addr := testserver.Redis(t)
	c := client(t, addr)
	for name, fields := range map[string][]any{
		"string":          nil,
		"last no number":  {"last", "yours"},
		"last huge":       {"last", "1e300"},
		"last a fraction": {"last", "1.5"},
		"last absent":     {"x", "y"},
		"lag":             {"last", "1", "lag", "-1"},
		"epoch":           {"last", "1", "epoch", "5"},
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, addr)
			if fields == nil {
				c.Set(t.Context(), g.stateKey, "mine", 0)
			} else {
				c.HSet(t.Context(), g.stateKey, fields...)
			}
			before := c.Dump(t.Context(), g.stateKey).Val()
			if _, err := makeKeys(t, g, 1); !errors.Is(err, errForeignState) || !errors.Is(err, spi.ErrStore) ||
				!strings.Contains(err.Error(), g.stateKey) {
				t.Errorf("have: %v\nwant: errForeignState that names %s", err, g.stateKey)
			}
			if after := c.Dump(t.Context(), g.stateKey).Val(); before == "" || after != before {
				t.Error("the foreign value was changed")
			}
		})
	}
}

// A state that is in use has its epoch. A generator with another epoch gets no key, and the first one
// continues.
func TestGenerator_epochOfALiveState(t *testing.T) {
	addr := testserver.Redis(t)
	first := open(t, addr)
	before := mustKeys(t, first, 3)
	other := open(t, addr, "epoch", "2020-01-01")
	for range 2 {
		if _, err := makeKeys(t, other, 1); !errors.Is(err, errForeignState) || !errors.Is(err, spi.ErrStore) {
			t.Errorf("have: %v\nwant: errForeignState", err)
		}
		if after := mustKeys(t, first, 3); after[0] <= before[2] {
			t.Errorf("have: %d after %d\nwant: keys that ascend", after[0], before[2])
		}
	}
}

func TestGenerator_clockDecadesOff(t *testing.T) {
	addr := testserver.Redis(t)
	for _, years := range []int{-30, 30} {
		g := open(t, addr, "shard-id", 30+years)
		g.clock = testclock.New(time.Duration(years) * 365 * 24 * time.Hour)
		_, err := makeKeys(t, g, 1)
		must.Is(t, err, spi.ErrStore, "clock", years, "years off")
		must.FailWith(t, err, "clock", "clock", years, "years off")
	}
}

// Ready queries the server and reserves nothing.
func TestGenerator_ready(t *testing.T) {
	s := testserver.StartRedis(t)
	g := open(t, s.Addr())
	must.Do(t, g.Ready(t.Context()))
	mustKeys(t, g, 1)
	state := client(t, s.Addr()).HGet(t.Context(), g.stateKey, "last").Val()
	for range 3 {
		must.Do(t, g.Ready(t.Context()))
	}
	must.Equal(t, client(t, s.Addr()).HGet(t.Context(), g.stateKey, "last").Val(), state, "the last position reserved")
	s.Stop()
	must.Is(t, g.Ready(t.Context()), spi.ErrStore, "server away")
	_ = g.Close()
	must.Is(t, g.Ready(t.Context()), spi.ErrClosed, "closed")
}

func TestGenerator_closeAndBoxedKeys(t *testing.T) {
	g := open(t, testserver.Redis(t))
	keys, err := g.GenerateKeys(t.Context(), spi.Column{Table: "t_order", Name: "id"}, 3)
	if err != nil || len(keys) != 3 {
		t.Fatalf("have: %v, %v\nwant: 3 keys", keys, err)
	}
	if _, ok := keys[0].(int64); !ok {
		t.Errorf("type of a key\nhave: %T\nwant: int64", keys[0])
	}
	for range 2 {
		must.Do(t, g.Close())
	}
	must.Is(t, must.Err(makeKeys(t, g, 1)), spi.ErrClosed, "after Close")
}

func TestProperties_refused(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/refused.txt", 3) {
		name, value, want := c[0], c[1], c[2]
		_, err := spi.NewKeyGenerator("REDIS", props(t, map[string]any{"addr": "127.0.0.1:1", name: value}))
		if bad, ok := errors.AsType[*spi.PropError](err); !ok || !strings.EqualFold(bad.Name, name) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q\nhave: %v\nwant: a *spi.PropError about it with %q", name, value, err, want)
		}
	}
	must.Fail(t, checkEpoch(time.UnixMilli(0), endOf(time.UnixMilli(0))), "an epoch that leaves no key")
}

func TestHealth_keysThatEndSoon(t *testing.T) {
	for days, warnings := range map[int]int{-1: 0, 1: 1} {
		at := endOf(snowflake.DefaultEpoch).AddDate(-10, 0, days)
		g := newOffline(t, testclock.New(time.Until(at)), map[string]any{"addr": "h:1", "shard-id": "5"})
		must.Equal(t, len(g.Health().Warnings), warnings, at, "warnings")
	}
}

func TestGenerator_decodeAndRange(t *testing.T) {
	g := newOffline(t, spi.SystemClock, map[string]any{"addr": "h:1", "shard-id": "5"})
	at := time.Date(2026, 2, 3, 4, 5, 6, 789e6, time.UTC)
	key := must.Get(g.key(position(at.UnixMilli()<<10 | 1023)))(t)
	must.Equal(t, key, (at.UnixMilli()-snowflake.DefaultEpoch.UnixMilli())<<22|5<<10|1023, "key")
	parts, err := g.DecodeKey(key)
	if want := (spi.KeyParts{Time: at, WorkerID: 5, Sequence: 1023, Layout: "41-12-10"}); err != nil || parts != want {
		t.Errorf("DecodeKey\nhave: %+v, %v\nwant: %+v", parts, err, want)
	}
	must.Fail(t, must.Err(g.DecodeKey(-1)), "DecodeKey(-1)")
	for _, c := range []struct {
		from, until time.Duration // relative to at
		in          bool
	}{{0, time.Millisecond, true}, {-time.Hour, 0, false}, {1, time.Hour, false}, {-time.Hour, 1, true}} {
		first, last, err := g.KeyRange(at.Add(c.from), at.Add(c.until))
		if err != nil || (first <= key && key <= last) != c.in {
			t.Errorf("KeyRange(%v, %v)\nhave: %d..%d, %v\nwant: %d in it: %v", c.from, c.until, first, last, err, key, c.in)
		}
	}
	if first, last, err := g.KeyRange(at, at); err == nil {
		t.Errorf("KeyRange of no time\nhave: %d..%d\nwant: an error", first, last)
	}
}

func TestGenerator_timeOutsideTheLayout(t *testing.T) {
	g := newOffline(t, spi.SystemClock, map[string]any{"addr": "h:1"})
	epoch := snowflake.DefaultEpoch
	for _, at := range []time.Time{epoch.Add(-time.Millisecond), epoch.AddDate(70, 0, 0)} {
		must.Is(t, must.Err(g.key(position(at.UnixMilli()<<10))), spi.ErrTimeOverflow, at)
	}
}

// A call for more keys than the script returns at once doesn't run further ahead of the clock
// than a call that the script can serve. The beginning after a loss of state depends on that.
func TestGenerator_largeCallStaysWithinTheMargin(t *testing.T) {
	g := open(t, testserver.Redis(t))
	mustKeys(t, g, 8*maxBatch)
	if h := g.Health(); *h.Waits == 0 || h.Waited == 0 {
		t.Errorf("Health\nhave: %+v\nwant: waits, as there are 1024 keys a millisecond", h)
	}
	const margin = (64 + 65) * time.Millisecond // MARGIN in reserve.lua
	if have := g.Health().Clock.Ahead; have > margin {
		t.Errorf("\nhave: keys %v ahead of the clock\nwant: %v at most", have, margin)
	}
}
