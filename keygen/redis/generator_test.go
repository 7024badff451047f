package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/spi"
)

// started sets the state of this run of the tests apart from that of the last.
var started = time.Now().UnixNano()

// open makes a generator by its properties, with a namespace of the test's own.
func open(t testing.TB, addr string, more ...any) *generator {
	t.Helper()
	values := map[string]any{"addr": addr, "namespace": fmt.Sprintf("shardkey-test-%s-%d", t.Name(), started)}
	for i := 0; i+1 < len(more); i += 2 {
		values[more[i].(string)] = fmt.Sprint(more[i+1])
	}
	g, err := spi.NewKeyGenerator("redis", props(t, values))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.(*generator).Close() })
	return g.(*generator)
}

func mustKeys(t testing.TB, g *generator, n int) []int64 {
	t.Helper()
	keys := make([]int64, n)
	if err := g.GenerateInt64Keys(t.Context(), spi.Column{}, keys); err != nil {
		t.Fatal(err)
	}
	return keys
}

func client(t testing.TB, addr string) *goredis.Client {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestGenerator_keysAscendAndDecode(t *testing.T) {
	g := open(t, testserver.Redis(t), "shard-id", 4095)
	last := int64(0)
	for _, n := range []int{1, 2, 1000, 1024, 1025, 5000, 65536, 65537, 1} {
		keys := mustKeys(t, g, n)
		for i, k := range keys {
			if k <= last {
				t.Fatalf("key %d of a call of %d\nhave: %d\nwant: over %d", i, n, k, last)
			}
			last = k
		}
		if n <= 1024 && keys[n-1]-keys[0] != int64(n-1) {
			t.Errorf("call of %d keys\nhave: %d..%d\nwant: contiguous", n, keys[0], keys[n-1])
		}
		parts, err := g.DecodeKey(keys[0])
		if err != nil || parts.WorkerID != 4095 || parts.Layout != "41-12-10" || time.Since(parts.Time).Abs() > time.Minute {
			t.Errorf("DecodeKey\nhave: %+v, %v\nwant: shard 4095, now", parts, err)
		}
	}
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
	if h := generators[0].Health(); h.Err != nil || h.Issued == 0 || *h.Fetches == 0 || h.FetchTime <= 0 {
		t.Errorf("Health\nhave: %+v\nwant: issued, fetches, no error", h)
	}
}

func wantApart(t testing.TB, keys []int64) {
	t.Helper()
	slices.Sort(keys)
	if n := len(slices.Compact(slices.Clone(keys))); n != len(keys) {
		t.Errorf("different keys\nhave: %d\nwant: %d", n, len(keys))
	}
}

func TestGenerator_oneCallIsOneCommand(t *testing.T) {
	s := start(t)
	g := open(t, s.Addr())
	mustKeys(t, g, 1)
	c := client(t, s.Addr())
	if err := c.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	mustKeys(t, g, 10_000)
	stats, err := c.Info(t.Context(), "commandstats").Result()
	if err != nil || !strings.Contains(stats, "cmdstat_evalsha:calls=1,") || strings.Contains(stats, "cmdstat_eval:") {
		t.Errorf("commands for 10,000 keys\nhave: %v %s\nwant: one evalsha", err, stats)
	}
}

// The layout gives 1024 keys a millisecond: more must wait for their time.
func TestGenerator_rateIsTheLayouts(t *testing.T) {
	g := open(t, testserver.Redis(t))
	mustKeys(t, g, 1)
	begin := time.Now()
	for range 8 {
		mustKeys(t, g, 65_536)
	}
	first := mustKeys(t, g, 1)[0]
	parts, _ := g.DecodeKey(first)
	if ahead := time.Until(parts.Time); ahead > 150*time.Millisecond {
		t.Errorf("time of a key after %v of saturation is ahead of the clock by\nhave: %v\nwant: at most 129ms", time.Since(begin), ahead)
	}
	if h := g.Health(); *h.Waits == 0 || h.Waited == 0 {
		t.Errorf("Health\nhave: %+v\nwant: waits", h)
	}
}

func TestGenerator_canceledWhileItWaits(t *testing.T) {
	g := open(t, testserver.Redis(t))
	ctx, cancel := context.WithCancel(t.Context())
	clock := &sleeper{asleep: make(chan struct{}, 1)}
	g.clock = clock
	go func() { <-clock.asleep; cancel() }()
	for {
		err := g.GenerateInt64Keys(ctx, spi.Column{}, make([]int64, 65_536))
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("have: %v\nwant: context.Canceled", err)
			}
			return
		}
	}
}

// sleeper is the system's clock, and tells when somebody sleeps by it; it then
// sleeps until the context ends.
type sleeper struct{ asleep chan struct{} }

func (s *sleeper) Now() time.Time { return time.Now() }
func (s *sleeper) Sleep(ctx context.Context, _ time.Duration) error {
	s.asleep <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func TestGenerator_serverPausedKilledAndBack(t *testing.T) {
	s := start(t)
	g := open(t, s.Addr(), "timeout", "5s")
	all := mustKeys(t, g, 100)

	s.Pause()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- g.GenerateInt64Keys(ctx, spi.Column{}, make([]int64, 1)) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled call of a paused server\nhave: %v\nwant: context.Canceled", err)
	}
	s.Resume()
	all = append(all, mustKeys(t, g, 100)...)

	s.Kill()
	keys := make([]int64, 3)
	err := g.GenerateInt64Keys(t.Context(), spi.Column{}, keys)
	if !errors.Is(err, spi.ErrStore) || !slices.Equal(keys, []int64{0, 0, 0}) || !strings.Contains(err.Error(), s.Addr()) {
		t.Errorf("server away\nhave: %v, %v\nwant: spi.ErrStore with the address, no keys", keys, err)
	}
	if h := g.Health(); h.Err == nil || h.Errors["store"] == 0 {
		t.Errorf("Health with the server away\nhave: %+v\nwant: Err", h)
	}
	s.Start()
	all = append(all, mustKeys(t, g, 100)...)
	if h := g.Health(); h.Err != nil {
		t.Errorf("Health with the server back\nhave: %v\nwant: no Err", h.Err)
	}
	wantApart(t, all)
	if !slices.IsSorted(all) {
		t.Error("keys over a restart do not ascend")
	}
}

// Without any persistence each restart loses the state; so does FLUSHALL.
func TestGenerator_stateLostWithTheClockRight(t *testing.T) {
	s := start(t, "--appendonly", "no")
	g, idle := open(t, s.Addr()), open(t, s.Addr())
	all := mustKeys(t, idle, 10)
	for range 3 {
		all = append(all, mustKeys(t, g, 70_000)...)
		s.Kill()
		s.Start()
		all = append(all, mustKeys(t, g, 70_000)...)
		if err := client(t, s.Addr()).FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		all = append(all, mustKeys(t, open(t, s.Addr()), 10)...)
	}
	all = append(all, mustKeys(t, idle, 10)...)
	if !slices.IsSorted(all) {
		t.Error("keys over lost states do not ascend")
	}
	wantApart(t, all)
}

// To a generator whose server was ahead, a server with the right time is one
// whose clock went back.
func TestGenerator_stateLostAndTheClockBack(t *testing.T) {
	s := start(t)
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
	if w := g.Health().Warnings; len(w) != 1 || !strings.Contains(w[0], "forgot") {
		t.Errorf("Health\nhave: %v\nwant: a warning", w)
	}
	// A generator that never knew finds the new state.
	if key := mustKeys(t, open(t, s.Addr()), 1)[0]; key <= before {
		t.Errorf("another generator\nhave: %d\nwant: over %d", key, before)
	}
}

// A state that is ahead of the clock is what a step back of the clock leaves.
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
			t.Fatalf("a key after the clock stepped back\nhave: %d of %v\nwant: above %d, an hour ahead", keys[0], parts.Time, last)
		}
		last = keys[2999]
	}
	if b := *g.Health().Borrowed; b < 59*time.Minute {
		t.Errorf("Health.Borrowed\nhave: %v\nwant: an hour", b)
	}
}

func TestGenerator_foreignState(t *testing.T) {
	addr := testserver.Redis(t)
	c := client(t, addr)
	for name, spoil := range map[string]func(key string) error{
		"string":          func(key string) error { return c.Set(t.Context(), key, "mine", 0).Err() },
		"last no number":  func(key string) error { return c.HSet(t.Context(), key, "last", "yours").Err() },
		"last huge":       func(key string) error { return c.HSet(t.Context(), key, "last", "1e300").Err() },
		"last a fraction": func(key string) error { return c.HSet(t.Context(), key, "last", "1.5").Err() },
		"last absent":     func(key string) error { return c.HSet(t.Context(), key, "x", "y").Err() },
		"lag":             func(key string) error { return c.HSet(t.Context(), key, "last", "1", "lag", "-1").Err() },
		"epoch":           func(key string) error { return c.HSet(t.Context(), key, "last", "1", "epoch", "5").Err() },
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, addr)
			if err := spoil(g.stateKey); err != nil {
				t.Fatal(err)
			}
			before := c.Dump(t.Context(), g.stateKey).Val()
			err := g.GenerateInt64Keys(t.Context(), spi.Column{}, make([]int64, 1))
			if !errors.Is(err, errForeignState) || !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), g.stateKey) {
				t.Errorf("have: %v\nwant: errForeignState that names %s", err, g.stateKey)
			}
			if c.Dump(t.Context(), g.stateKey).Val() != before {
				t.Error("the foreign value was changed")
			}
		})
	}
}

func TestGenerator_clockDecadesOff(t *testing.T) {
	addr := testserver.Redis(t)
	for _, years := range []int{-30, 30} {
		g := open(t, addr, "shard-id", 30+years)
		g.clock = shifted{time.Duration(years) * 365 * 24 * time.Hour}
		err := g.GenerateInt64Keys(t.Context(), spi.Column{}, make([]int64, 1))
		if !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), "clock") {
			t.Errorf("clock %d years off\nhave: %v\nwant: spi.ErrStore about clocks", years, err)
		}
	}
}

type shifted struct{ by time.Duration }

func (s shifted) Now() time.Time { return time.Now().Add(s.by) }
func (s shifted) Sleep(ctx context.Context, d time.Duration) error {
	return spi.SystemClock.Sleep(ctx, d)
}

// Ready asks the server, and reserves nothing.
func TestGenerator_ready(t *testing.T) {
	s := testserver.StartRedis(t)
	g := open(t, s.Addr())
	if err := g.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustKeys(t, g, 1)
	state := client(t, s.Addr()).HGet(t.Context(), g.stateKey, "last").Val()
	for range 3 {
		if err := g.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if have := client(t, s.Addr()).HGet(t.Context(), g.stateKey, "last").Val(); have != state {
		t.Errorf("the last position reserved\nhave: %s\nwant: %s", have, state)
	}
	s.Stop()
	if err := g.Ready(t.Context()); !errors.Is(err, spi.ErrStore) {
		t.Errorf("server away\nhave: %v\nwant: spi.ErrStore", err)
	}
	_ = g.Close()
	if err := g.Ready(t.Context()); !errors.Is(err, spi.ErrClosed) {
		t.Errorf("closed\nhave: %v\nwant: spi.ErrClosed", err)
	}
}

func TestGenerator_close(t *testing.T) {
	g := open(t, testserver.Redis(t))
	mustKeys(t, g, 1)
	for range 2 {
		if err := g.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := g.GenerateInt64Keys(t.Context(), spi.Column{}, make([]int64, 1)); !errors.Is(err, spi.ErrClosed) {
		t.Errorf("after Close\nhave: %v\nwant: spi.ErrClosed", err)
	}
}

func TestGenerator_boxedKeys(t *testing.T) {
	g := open(t, testserver.Redis(t))
	keys, err := g.GenerateKeys(t.Context(), spi.Column{Table: "t_order", Name: "id"}, 3)
	if err != nil || len(keys) != 3 {
		t.Fatalf("have: %v, %v\nwant: 3 keys", keys, err)
	}
	if _, ok := keys[0].(int64); !ok {
		t.Errorf("type of a key\nhave: %T\nwant: int64", keys[0])
	}
}
