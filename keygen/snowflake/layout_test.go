package snowflake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

const year = 365 * 24 * time.Hour

func TestParseLayout_texts(t *testing.T) {
	for _, tt := range []struct {
		text string
		tick time.Duration
		want Layout
		str  string
		err  string
	}{
		{text: "41-10-12", want: Classic, str: "41-10-12"},
		{text: " 41 - 10 - 12 ", want: Classic, str: "41-10-12"},
		{text: "js53", want: js53, str: "js53"},
		{text: "JS53", tick: time.Second, want: js53, str: "js53"},
		{text: "33-4-15", tick: time.Second, want: js53, str: "js53"},
		{text: "39-16-8", tick: 10 * ms, want: Layout{39, 16, 8, 10 * ms}, str: "39-16-8"},
		{text: "63-0-0", want: Layout{63, 0, 0, ms}, str: "63-0-0"},
		{text: "1-31-31", tick: time.Microsecond, want: Layout{1, 31, 31, time.Microsecond}, str: "1-31-31"},
		{text: "32-31-0", tick: time.Hour, want: Layout{32, 31, 0, time.Hour}, str: "32-31-0"},
		{text: "31-32-0", err: "at most 31 bits"},
		{text: "31-0-32", err: "at most 31 bits"},
		{text: "64-0-0", err: "at most 63 bits, found 64"},
		{text: "41-10-12", tick: time.Microsecond - 1, err: "1µs..1h"},
		{text: "41-10-12", tick: time.Hour + 1, err: "1µs..1h"},
		{text: "js53", tick: ms, err: "a tick of 1s"},
		{text: "0-10-12", err: "at least one bit"},
		{text: "9999-1-1", err: "shardkey: layout 9999-1-1: expected at most 63 bits, found 10001"},
		{text: "41-10", err: "three numbers"},
		{text: "41-ten-12", err: `expected a number of bits, found "ten"`},
		{text: "", err: "three numbers"},
	} {
		have, err := ParseLayout(tt.text, tt.tick)
		if tt.err != "" {
			must.FailWith(t, err, tt.err, tt.text)
			continue
		}
		if err != nil || have != tt.want || have.String() != tt.str {
			t.Errorf("%q\nhave: %+v %v\nwant: %+v", tt.text, have, err, tt.want)
		}
	}
}

// Each worker ID and sequence of a layout has a different key. None is truncated or overlaps
// another field.
func TestLayout_everyWorkerHasItsOwnKeys(t *testing.T) {
	for _, l := range []Layout{Classic, js53, {TimeBits: 39, WorkerBits: 16, SequenceBits: 8, Tick: 10 * ms}, {TimeBits: 45, SequenceBits: 18}, {TimeBits: 41, WorkerBits: 22}} {
		clock := newHandClock()
		for _, worker := range slices.Compact([]int64{0, l.maxWorkerID() / 2, l.maxWorkerID()}) {
			g := mustNew(t, config{Layout: l, Clock: clock, WorkerID: worker, WorkerIDSet: true, MaxVibrationOffset: -1})
			for seq, key := range mustKeys(t, g, int(min(5, l.maxSequence()+1))) {
				must.Equal(t, key, compose(l, clock.now, worker, int64(seq)), l, "worker", worker)
			}
		}
	}
}

func TestDecode_parts(t *testing.T) {
	at := DefaultEpoch.Add(12345 * ms)
	for _, tt := range []struct {
		layout Layout
		key    int64
		want   spi.KeyParts
	}{
		{Classic, 0, spi.KeyParts{Time: DefaultEpoch, Layout: "41-10-12"}},
		{Classic, 12345<<22 | 7<<12 | 99, spi.KeyParts{Time: at, WorkerID: 7, Sequence: 99, Layout: "41-10-12"}},
		{Layout{}, 12345<<22 | 1023<<12 | 4095, spi.KeyParts{Time: at, WorkerID: 1023, Sequence: 4095, Layout: "41-10-12"}},
		{js53, 12<<19 | 15<<15 | 3, spi.KeyParts{Time: at.Truncate(time.Second), WorkerID: 15, Sequence: 3, Layout: "js53"}},
		{js53, 1<<52 - 1, spi.KeyParts{Time: DefaultEpoch.Add((1<<33 - 1) * time.Second), WorkerID: 15, Sequence: 1<<15 - 1, Layout: "js53"}},
		{Layout{Tick: time.Second}, 7 << 22, spi.KeyParts{Time: DefaultEpoch.Add(7 * time.Second), Layout: "41-10-12"}},
		{Layout{TimeBits: 63}, int64(292*year/ms) + 1, spi.KeyParts{Time: DefaultEpoch.Add(292*year + ms), Layout: "63-0-0"}},
		{Layout{41, 22, 0, ms}, 1<<22 | 5, spi.KeyParts{Time: DefaultEpoch.Add(ms), WorkerID: 5, Layout: "41-22-0"}},
	} {
		have, err := Decode(tt.layout, time.Time{}, tt.key)
		if err != nil || have != tt.want {
			t.Errorf("%d\nhave: %+v %v\nwant: %+v", tt.key, have, err, tt.want)
		}
		must.Equal(t, compose(tt.layout, have.Time, have.WorkerID, have.Sequence), tt.key)
	}
	for _, tt := range []struct {
		layout Layout
		epoch  time.Time
		key    int64
	}{
		{Classic, DefaultEpoch, -1},
		{js53, DefaultEpoch, 1 << 52},
		{Layout{TimeBits: 63, Tick: time.Second}, DefaultEpoch, 293 * int64(year/time.Second)},
		{Layout{TimeBits: 63, Tick: time.Second}, DefaultEpoch, math.MaxInt64},
		{Layout{TimeBits: 64}, DefaultEpoch, 1},
		{Layout{TimeBits: 41, WorkerBits: -1, SequenceBits: 12}, DefaultEpoch, 1},
		{Layout{TimeBits: 41, Tick: -1}, DefaultEpoch, 1},
		{Classic, time.Unix(-1, 0), 1},
		{Classic, time.Date(2201, 1, 1, 0, 0, 0, 0, time.UTC), 1},
	} {
		if have, err := Decode(tt.layout, tt.epoch, tt.key); err == nil || !strings.HasPrefix(err.Error(), "shardkey: ") {
			t.Errorf("%+v\nhave: %+v, %v\nwant: an error", tt, have, err)
		}
	}
}

func TestKeyRange_bounds(t *testing.T) {
	at := func(ms float64) time.Time { return DefaultEpoch.Add(time.Duration(ms * 1e6)) }
	const all = 1<<22 - 1
	for _, tt := range []struct {
		from, until time.Time
		first, last int64
		empty       bool
	}{
		{from: at(10), until: at(11), first: 10 << 22, last: 10<<22 | all},
		{from: at(10.1), until: at(12.5), first: 11 << 22, last: 12<<22 | all},
		{from: time.Time{}, until: at(1), first: 0, last: all},
		{from: at(5), until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), first: 5 << 22, last: math.MaxInt64},
		{from: at(10), until: at(10), empty: true},
		{from: at(11), until: at(10), empty: true},
		{from: at(10.2), until: at(10.8), empty: true},
		{from: time.Time{}, until: at(0), empty: true},
		{from: time.Date(9998, 1, 1, 0, 0, 0, 0, time.UTC), until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), empty: true},
	} {
		first, last, err := KeyRange(Layout{}, time.Time{}, tt.from, tt.until)
		if (err != nil) != tt.empty || first != tt.first || last != tt.last {
			t.Errorf("%v until %v\nhave: %d..%d %v\nwant: %d..%d", tt.from, tt.until, first, last, err, tt.first, tt.last)
		}
	}
}

// Epochs are of 1970 to 2200.
func TestDecode_epochs(t *testing.T) {
	for _, epoch := range []time.Time{time.Unix(0, 0), time.Date(2200, 12, 31, 23, 59, 59, 0, time.UTC)} {
		parts, err := Decode(Classic, epoch, 5<<22)
		if err != nil || !parts.Time.Equal(epoch.Add(5*ms)) {
			t.Errorf("\nhave: %v, %v\nwant: 5ms after %v", parts.Time, err, epoch)
		}
	}
}

// A layout has keys of its time field, but of 292 years at most. The error for other numbers shows
// the largest key.
func TestDecode_largest(t *testing.T) {
	for _, l := range []Layout{Classic, {TimeBits: 63, Tick: time.Second}, {TimeBits: 62, SequenceBits: 1, Tick: ms}} {
		first, last, err := KeyRange(l, time.Time{}, time.Time{}, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
		_, largestErr := Decode(l, time.Time{}, last)
		_, tooLarge := Decode(l, time.Time{}, last+1)
		if err != nil || first != 0 || largestErr != nil || tooLarge == nil || !strings.Contains(tooLarge.Error(), fmt.Sprintf("in 0..%d, found", last)) {
			t.Errorf("%v\nhave: %d..%d %v, %v, %v\nwant: all keys, an error that names the largest", l, first, last, err, largestErr, tooLarge)
		}
	}
}

// A key is in the range of an interval exactly if its time is in the interval.
func TestKeyRange_holdsItsKeys(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 4))
	for range 10_000 {
		l := []Layout{Classic, js53, {TimeBits: 45, WorkerBits: 5, SequenceBits: 9, Tick: 300 * time.Microsecond}}[rnd.IntN(3)]
		at := func() time.Time { return DefaultEpoch.Add(time.Duration(rnd.Int64N(int64(20 * l.Tick)))) }
		from, until := at(), at()
		key := compose(l, at(), rnd.Int64N(l.maxWorkerID()+1), rnd.Int64N(l.maxSequence()+1))
		first, last, rangeErr := KeyRange(l, DefaultEpoch, from, until)
		parts, err := Decode(l, DefaultEpoch, key)
		have := rangeErr == nil && first <= key && key <= last
		if want := !parts.Time.Before(from) && parts.Time.Before(until); err != nil || have != want {
			t.Fatalf("key of %v (%v), %v until %v\nhave: %v\nwant: %v", parts.Time, err, from, until, have, want)
		}
	}
}

// A layout survives formatting and parsing, and its keys survive decoding and encoding. Nothing
// panics.
func FuzzLayout(f *testing.F) {
	for _, seed := range []struct {
		text string
		tick int64
		key  int64
	}{
		{"41-10-12", 0, 1213274574029312345}, {"js53", int64(time.Second), 1<<52 - 1}, {"39-16-8", int64(10 * ms), 1 << 40},
		{"63-0-0", 1000, 1<<63 - 1}, {"1-31-31", int64(time.Hour), 1<<63 - 1}, {"41-10-13", 1, -1}, {"--", 0, 0}, {"0-0-0", 0, 0},
	} {
		f.Add(seed.text, seed.tick, seed.key)
	}
	f.Fuzz(func(t *testing.T, text string, tick, key int64) {
		l, err := ParseLayout(text, time.Duration(tick))
		if err != nil {
			return
		}
		again, err := ParseLayout(l.String(), l.Tick)
		if err != nil || again != l {
			t.Fatalf("%q\nhave: %+v, %v\nwant: %+v", l, again, err, l)
		}
		parts, err := Decode(l, DefaultEpoch, key)
		if err != nil {
			return
		}
		must.Equal(t, compose(l, parts.Time, parts.WorkerID, parts.Sequence), key, l)
		first, last, err := KeyRange(l, DefaultEpoch, parts.Time, parts.Time.Add(l.Tick))
		if err != nil || key < first || key > last {
			t.Fatalf("%v\nhave: %d..%d, %v\nwant: %d in it", l, first, last, err, key)
		}
	})
}

func TestHealth(t *testing.T) {
	clock := newHandClock()
	// The statistics of leases exist only for a leased worker ID.
	for want, cfg := range map[string]config{
		`{"issued":1,"waits":0,"workerId":5,"clockSteps":0,"borrowedSeconds":0}`: {WorkerID: 5},
		`{"issued":1,"waits":1,"workerId":6,"clockSteps":0,"borrowedSeconds":0}`: {Assigner: givenID(6)},
		`{"issued":1,"waits":1,"workerId":0,"clockSteps":0,` +
			`"leaseLimit":"2026-11-01T00:00:10Z","leaseRenewals":0,"leasesLost":0,"borrowedSeconds":0,"leaseSeconds":10}`: {Assigner: newFakeStore(clock)},
	} {
		cfg.Clock = clock
		g := mustNew(t, cfg)
		mustKeys(t, g, 1)
		h := g.Health()
		h.Warnings = nil
		if have, err := json.Marshal(h); err != nil || string(have) != want {
			t.Errorf("\nhave: %s, %v\nwant: %s", have, err, want)
		}
	}
	t.Run("why there is no worker ID", func(t *testing.T) {
		g, _, store := leased(t, config{})
		store.fail(errAway)
		must.Fail(t, must.Err(g.Next(t.Context())), "a key without a worker ID")
		if h := g.Health(); !errors.Is(h.Err, errAway) || h.WorkerID != nil {
			t.Errorf("\nhave: %+v\nwant: %v", h, errAway)
		}
		store.fail(nil)
		mustKeys(t, g, 1)
		must.Do(t, g.Health().Err, "there is a worker ID")
	})
}

// A worker ID that isn't leased can't be replaced after a clock was ahead, which is reported.
func TestHealth_clockThatWasAhead(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   func(clock spi.Clock) config
		ahead time.Duration
	}{
		"fixed":  {func(spi.Clock) config { return config{WorkerID: 5} }, time.Hour},
		"STATIC": {func(spi.Clock) config { return config{Assigner: givenID(5)} }, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newHandClock()
			cfg := c.cfg(clock)
			cfg.Clock = clock
			g := mustNew(t, cfg)
			mustKeys(t, g, 1)
			worker := *g.Health().WorkerID
			clock.step(c.ahead)
			mustKeys(t, g, 1)
			clock.step(-c.ahead)
			_, err := g.Next(t.Context())
			h := g.Health()
			if !errors.Is(err, spi.ErrClockBack) || !errors.Is(h.Err, spi.ErrClockBack) || !errors.Is(g.Ready(t.Context()), spi.ErrClockBack) || *h.WorkerID != worker {
				t.Errorf("have: %v, %+v\nwant: spi.ErrClockBack, the same worker ID", err, h)
			}
			clock.step(c.ahead)
			mustKeys(t, g, 1)
			must.Do(t, g.Health().Err, "the time has passed")
		})
	}
}

// Two generators have the same history. Ready is called on one of them before each key. It must
// predict the result, and both must generate the same keys.
func TestReady_agreesWithTheNextKey(t *testing.T) {
	for seed := range uint64(80) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		cfg := config{ClockBack: policies[rnd.IntN(3)], MaxVibrationOffset: rnd.Int64N(3) * 2}
		if rnd.IntN(3) == 0 {
			cfg.RingSize = 4
		}
		leased := rnd.IntN(2) == 0
		cfg.WorkerIDSet = !leased
		var clocks [2]*handClock
		var stores [2]*fakeStore
		var gens [2]*generator
		for i := range gens {
			clocks[i] = newHandClock()
			stores[i] = newFakeStore(clocks[i])
			own := cfg
			own.Clock = clocks[i]
			if leased {
				own.Assigner = stores[i]
			}
			gens[i] = mustNew(t, own)
		}
		var history []string
		for range 150 {
			var step time.Duration
			switch n := rnd.IntN(12); {
			case n < 6:
				step = time.Duration(rnd.IntN(3)) * ms
			case n < 8:
				step = time.Duration(rnd.IntN(20)) * -ms
			case n == 8:
				step = 15 * time.Second
			case n == 9 && leased:
				var err error
				if rnd.IntN(2) == 0 {
					err = spi.ErrStore
				}
				stores[0].fail(err)
				stores[1].fail(err)
				history = append(history, fmt.Sprint("store ", err))
			}
			clocks[0].step(step)
			clocks[1].step(step)
			many := 1
			if cfg.RingSize == 0 && !leased && rnd.IntN(10) == 0 {
				many = 4096
			}
			ready := gens[1].Ready(t.Context())
			var keys [2][]int64
			var errs [2]error
			for i := range gens {
				keys[i] = make([]int64, many)
				errs[i] = gens[i].GenerateInt64Keys(t.Context(), spi.Column{}, keys[i])
			}
			history = append(history, fmt.Sprintf("%v, %d keys, %v", step, many, errs[1]))
			if (ready == nil) != (errs[1] == nil) || fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) || errs[0] == nil && !slices.Equal(keys[0], keys[1]) {
				t.Fatalf("seed %d, clock-back %v, ring %d, leased %v\nready: %v\nkeys: %d, %v\nwithout Ready: %d, %v\n%q", seed, cfg.ClockBack, cfg.RingSize, leased, ready, keys[1][0], errs[1], keys[0][0], errs[0], history)
			}
		}
		for i := range stores {
			stores[i].fail(nil)
		}
		must.Equal(t, gens[1].Health().Issued, gens[0].Health().Issued, "seed", seed, "keys issued")
	}
}

// The ring's slot for the clock's tick is full, and the next tick's slot contains a later tick.
func TestReady_ringUsedUp(t *testing.T) {
	g, clock := fixed(t, config{ClockBack: clockBackFail, RingSize: 4})
	mustKeys(t, g, 4096)
	clock.step(5 * ms) // to another slot than the next tick's
	mustKeys(t, g, 1)
	clock.step(-5 * ms)
	must.Is(t, g.Ready(t.Context()), spi.ErrClockBack, "used up")
	clock.step(5 * ms)
	must.Do(t, g.Ready(t.Context()), "ready")
}

func TestReady_leases(t *testing.T) {
	g, clock, store := leased(t, config{})
	for _, step := range []struct {
		what string
		do   func()
		want []error
	}{
		{"no worker ID yet, store away", func() { store.fail(spi.ErrStore) }, []error{spi.ErrStore}},
		{"the first worker ID", func() { store.fail(nil) }, nil},
		{"store away, within the lease", func() { store.fail(spi.ErrStore) }, nil},
		{"store away, beyond the lease", func() { clock.step(time.Hour) }, []error{spi.ErrLeaseLimit, spi.ErrStore}},
		{"the store is back", func() { store.fail(nil) }, nil},
		{"lost, and none free", func() { store.lose(0); store.first = 5000 }, []error{spi.ErrNoWorkerID}},
		{"closed", func() { _ = g.Close() }, []error{spi.ErrClosed}},
	} {
		step.do()
		err := g.Ready(t.Context())
		if step.want == nil && err != nil {
			t.Errorf("%s\nhave: %v\nwant: ready", step.what, err)
		}
		for _, want := range step.want {
			must.Is(t, err, want, step.what)
		}
	}
	if n := *g.Health().Waits; n != 0 || store.acquired != 1 {
		t.Errorf("have: %d waits, %d worker IDs\nwant: 0, as none asked for a key, and 1", n, store.acquired)
	}
}

// The clock is behind by less than the tolerance, and the next key is after the lease.
func TestReady_waitsForALimit(t *testing.T) {
	g, clock, store := leased(t, config{MaxVibrationOffset: -1})
	mustKeys(t, g, 1)
	clock.now = time.UnixMilli(store.owner[0].Limit()).Add(-ms)
	mustKeys(t, g, 4096)
	clock.step(-5 * ms)
	store.fail(spi.ErrStore)
	must.Is(t, g.Ready(t.Context()), spi.ErrLeaseLimit, "store away")
	store.fail(nil)
}

// The error of an assigner that doesn't answer is in its health.
func TestReady_endsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{fakeStore: newFakeStore(spi.SystemClock)}
		store.fail(errAway)
		g := mustNew(t, config{Assigner: store, Epoch: bubbleEpoch})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(ms, cancel)
		if err := g.Ready(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, errAway) {
			t.Errorf("have: %v\nwant: the context's error, and the assigner's", err)
		}
	})
}

// A readiness check with a shorter timeout than the store needs becomes ready, and asks the store
// once.
func TestReady_acquiresAfterItsContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{fakeStore: newFakeStore(spi.SystemClock)}
		g := mustNew(t, config{Assigner: store, Epoch: bubbleEpoch})
		check := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/3)
			defer cancel()
			return g.Ready(ctx)
		}
		for range 2 {
			must.Is(t, check(), context.DeadlineExceeded, "the store hasn't answered")
		}
		time.Sleep(time.Second)
		must.Do(t, check(), "the store has answered")
		must.Equal(t, store.calls.Load(), 1, "calls of the store")
	})
}

// Close ends the probe that a readiness check left in the queue.
func TestReady_endsWithItsGenerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{fakeStore: newFakeStore(spi.SystemClock)}
		g := mustNew(t, config{Assigner: store, Epoch: bubbleEpoch})
		ctx, cancel := context.WithTimeout(t.Context(), ms)
		defer cancel()
		must.Is(t, g.Ready(ctx), context.DeadlineExceeded, "the store hasn't answered")
		must.Do(t, g.Close(), "close")
		synctest.Wait()
		must.Equal(t, len(store.owner), 0, "leases left over")
	})
}
