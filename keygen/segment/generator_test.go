package segment

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

// inBubble runs a test with fakes in a synctest bubble, in which waiting takes no time.
func inBubble(t *testing.T, typ string, props map[string]any, test func(*testing.T, *generator, []*fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g, fakes := newFake(t, typ, props)
		test(t, g, fakes)
	})
}

func TestGenerator_manyGoroutines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for _, typ := range types {
		t.Run(typ.name, func(t *testing.T) {
			g, fakes := newFake(t, typ.typ, with(typ.props, map[string]any{"timeout": "1m"}))
			setAll(fakes, func(f *fake) { f.delay = 100 * time.Microsecond })
			var keys ledger
			inParallel(200, func(i int) {
				for j := range 20 {
					keys.add(t, who(i), mustKeys(t, g, 1+j%3)...)
				}
			})
			must.Equal(t, keys.len(), 200*(7*1+7*2+6*3), "keys")
			if h := g.Health(); h.Issued != int64(keys.len()) || h.Err != nil || len(h.Errors) != 0 {
				t.Errorf("\nhave: %d issued, errors %v %v\nwant: %d, none", h.Issued, h.Err, h.Errors, keys.len())
			}
		})
	}
}

// Calls that find too few numbers in the buffer share a fetch of the numbers that they need
// together.
func TestGenerator_waitersShareAFetch(t *testing.T) {
	eachType(t, nil, func(t *testing.T, g *generator, fakes []*fake) {
		setAll(fakes, func(f *fake) { f.delay = time.Second / 2 })
		var keys ledger
		begin := time.Now()
		inParallel(500, func(i int) { keys.add(t, who(i), mustKeys(t, g, 1+i%2)...) })
		if took, h := time.Since(begin), g.Health(); took > time.Second || h.Segment.Fetches > 3 || h.Issued != 750 {
			t.Errorf("\nhave: %v, %d fetches, %d issued\nwant: two delays, three fetches, 750", took, h.Segment.Fetches, h.Issued)
		}
	})
}

// The keys of a call are a stride apart, whatever their number.
func TestGenerator_keysOfOneCall(t *testing.T) {
	eachType(t, nil, func(t *testing.T, g *generator, fakes []*fake) {
		for _, n := range []int{1, 3, 100, 99, 2, 101, 5000, 1, 70, 70} {
			keys := mustKeys(t, g, n)
			for i, k := range keys {
				if want := keys[0] + int64(i)*fakes[0].stride; k != want {
					t.Fatalf("key %d of %d\nhave: %d\nwant: %d", i, n, k, want)
				}
			}
		}
	})
}

// A call that needs more than a fetch leaves the buffered numbers to other calls.
func TestGenerator_largeCallLeavesTheMemory(t *testing.T) {
	eachType(t, map[string]any{}, func(t *testing.T, g *generator, fakes []*fake) {
		first, left := mustKey(t, g), *g.Health().Segment.Left
		mustKeys(t, g, 1000)
		must.Equal(t, *g.Health().Segment.Left, left, "left in memory", "as before")
		if second := mustKey(t, g); left > 0 && second != first+fakes[0].stride {
			t.Errorf("\nhave: %d\nwant: %d", second, first+fakes[0].stride)
		}
	})
}

// A caller that needs many numbers doesn't starve among callers of one.
func TestGenerator_largeCallAmongSmallOnes(t *testing.T) {
	eachType(t, nil, func(t *testing.T, g *generator, fakes []*fake) {
		setAll(fakes, func(f *fake) { f.delay = time.Millisecond })
		mustKey(t, g)
		ctx, cancel := context.WithCancel(t.Context())
		var small sync.WaitGroup
		for range 500 {
			small.Go(func() {
				for ctx.Err() == nil {
					_, _ = generate(ctx, g, 1)
					time.Sleep(time.Microsecond)
				}
			})
		}
		begin := time.Now()
		_, err := generate(t.Context(), g, 100)
		took := time.Since(begin)
		cancel()
		small.Wait()
		if err != nil || took > 5*time.Millisecond {
			t.Errorf("\nhave: %v, %v\nwant: a few fetches of 1ms", took, err)
		}
	})
}

func TestGenerator_canceledWaitReturns(t *testing.T) {
	eachType(t, map[string]any{"timeout": "1h"}, func(t *testing.T, g *generator, fakes []*fake) {
		setAll(fakes, func(f *fake) { f.delay = 3 * time.Second })
		for _, n := range []int{1, 100_000} { // one with a fetch, and one in the queue
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			begin := time.Now()
			_, err := generate(ctx, g, n)
			cancel()
			took := time.Since(begin)
			if took != time.Second || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, spi.ErrStore) {
				t.Errorf("%d keys\nhave: %v after %v\nwant: the context's error after 1s", n, err, took)
			}
		}
		must.Equal(t, len(g.queue), 0, "in the queue")
		time.Sleep(3 * time.Second)
		// The fetch has continued without them, and its numbers are not lost.
		if h := g.Health(); *h.Segment.Left == 0 || h.Issued != 0 || h.Err != nil {
			t.Errorf("\nhave: %d left, %d issued, %v\nwant: a segment, none", *h.Segment.Left, h.Issued, h.Err)
		}
		must.Equal(t, mustKey(t, g), 1, "which no caller got")
	})
}

func TestGenerator_databaseAwayAndBack(t *testing.T) {
	eachType(t, nil, func(t *testing.T, g *generator, fakes []*fake) {
		mustKey(t, g)
		synctest.Wait()
		left := *g.Health().Segment.Left
		setAll(fakes, func(f *fake) { f.fail = []error{errAway} })
		for range left {
			mustKey(t, g)
		}
		synctest.Wait()
		wantError(t, must.Err(generate(t.Context(), g, 1)), errAway)
		if h := g.Health(); h.Err == nil || h.Errors["store"] == 0 || h.LastError == nil || h.LastErrorTime.IsZero() {
			t.Errorf("have: %+v\nwant: health that reports it", h)
		}
		// A call whose context ends in the meantime also returns the store's error.
		setAll(fakes, func(f *fake) { f.delay = time.Minute })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := generate(ctx, g, 1); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errAway) {
			t.Errorf("have: %v\nwant: the context's error, and the store's", err)
		}
		setAll(fakes, func(f *fake) { f.fail, f.delay = nil, 0 })
		time.Sleep(time.Minute)
		for range fakes {
			mustKeys(t, g, 100)
		}
		if h := g.Health(); h.Err != nil || h.LastError == nil {
			t.Errorf("\nhave: %v, last %v\nwant: nil, the last one kept", h.Err, h.LastError)
		}
	})
}

func setAll(fakes []*fake, change func(*fake)) {
	for _, f := range fakes {
		f.set(change)
	}
}

func TestGenerator_close(t *testing.T) {
	eachType(t, map[string]any{"timeout": "1h"}, func(t *testing.T, g *generator, fakes []*fake) {
		keys := mustKeys(t, g, 2)
		setAll(fakes, func(f *fake) { f.delay = time.Hour })
		waited := make(chan error)
		for _, n := range []int{1000, 2000} { // one with a fetch, and one in the queue
			go func() {
				_, err := generate(context.Background(), g, n)
				waited <- err
			}()
			synctest.Wait()
		}
		begin := time.Now()
		go inParallel(3, func(int) { must.Do(t, g.Close()) })
		for range 2 {
			must.Is(t, <-waited, spi.ErrClosed, "a call that waits")
		}
		synctest.Wait()
		if took := time.Since(begin); took != 0 || g.done != nil {
			t.Errorf("\nhave: Close took %v\nwant: no wait for the fetch", took)
		}
		for _, n := range []int{1, 2, 1000} {
			must.Is(t, must.Err(generate(t.Context(), g, n)), spi.ErrClosed, n, "keys after Close")
		}
		h := g.Health()
		if !errors.Is(h.Err, spi.ErrClosed) || h.Issued != int64(len(keys)) || *h.Segment.Left != 0 || len(h.Errors) != 0 {
			t.Errorf("\nhave: %v, %d issued, %d left, errors %v\nwant: spi.ErrClosed, %d, 0, none",
				h.Err, h.Issued, *h.Segment.Left, h.Errors, len(keys))
		}
		for _, f := range fakes {
			must.Equal(t, f.closed, f.opened, "connections closed")
		}
	})
}

func TestGenerator_counts(t *testing.T) {
	eachType(t, nil, func(t *testing.T, g *generator, fakes []*fake) {
		for _, n := range []int{-1, 0, maxKeys + 1, math.MaxInt} {
			if keys, err := g.GenerateKeys(t.Context(), column, n); err == nil || keys != nil {
				t.Errorf("%d keys\nhave: %v\nwant: an error", n, keys)
			}
		}
		must.Fail(t, must.Err(generate(t.Context(), g, maxKeys+1)), "too many")
		must.Get(generate(t.Context(), g, 0))(t)
		if keys, err := g.GenerateKeys(t.Context(), column, 1); err != nil || keys[0] != int64(1) {
			t.Errorf("\nhave: %v %v\nwant: 1", keys, err)
		}
		keys, err := g.GenerateKeys(t.Context(), column, 2)
		if err != nil || keys[1] != keys[0].(int64)+fakes[0].stride {
			t.Errorf("\nhave: %v %v\nwant: int64, a stride apart", keys, err)
		}
		// The largest count is not refused for its size.
		must.Do(t, g.Close())
		must.Is(t, must.Err(g.GenerateKeys(t.Context(), column, maxKeys)), spi.ErrClosed, maxKeys, "keys after Close")
	})
}

func TestGenerator_readyFetchesForTheNextKey(t *testing.T) {
	eachType(t, nil, func(t *testing.T, g *generator, fakes []*fake) {
		setAll(fakes, func(f *fake) { f.fail = []error{errAway} })
		wantError(t, g.Ready(t.Context()), errAway)
		setAll(fakes, func(f *fake) { f.fail = nil })
		time.Sleep(maxPause)
		for range 3 {
			must.Do(t, g.Ready(t.Context()))
		}
		if h := g.Health(); h.Segment.Fetches != 2 || h.Issued != 0 || *h.Waits != 0 || *h.Segment.Left != g.step {
			t.Errorf("have: %+v\nwant: one fetch of a step, none issued", h)
		}
		setAll(fakes, func(f *fake) { f.fail = []error{errAway} })
		must.Do(t, g.Ready(t.Context()), "store away, numbers in memory")
		mustKey(t, g)
	})
}

func TestGenerator_readyEnds(t *testing.T) {
	eachType(t, nil, func(t *testing.T, g *generator, fakes []*fake) {
		setAll(fakes, func(f *fake) { f.delay = time.Hour })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		must.Is(t, g.Ready(ctx), context.DeadlineExceeded)
		must.Do(t, g.Close())
		must.Is(t, g.Ready(t.Context()), spi.ErrClosed)
	})
}

// After these errors, a claim is repeated, on a new connection if the old one may be lost. The
// caller sees no error.
func TestGenerator_claimIsTriedAgain(t *testing.T) {
	number := func(n uint16) error { return &mysql.MySQLError{Number: n} }
	for name, tt := range map[string]struct {
		err         error
		times       int
		reconnected bool
		want        bool // the call returns keys
	}{
		"deadlock":              {number(1213), 200, false, true},
		"lock wait timeout":     {number(1205), 50, false, true},
		"row changed":           {errRaced, 50, false, true},
		"ids in between":        {errScattered, 50, false, true},
		"row changed too often": {errRaced, 600, true, false}, // for the timeout
		"broken connection":     {driver.ErrBadConn, 4, true, true},
		"broken again":          {mysql.ErrInvalidConn, 5, true, false},
		"read-only":             {number(1290), 1, true, true},
		"read-only mode":        {number(1836), 4, true, true},
		"an error that stays":   {number(1146), 1, true, false},
		"refused":               {errAway, 1, true, false},
		"its own of the claim":  {&spi.PropError{}, 1, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			eachType(t, map[string]any{"timeout": "2s"}, func(t *testing.T, g *generator, fakes []*fake) {
				f := fakes[0]
				for _, other := range fakes[1:] {
					other.fail = []error{errAway}
				}
				_, _ = generate(t.Context(), g, 1)
				opened := f.opened
				for range tt.times {
					f.fail = append(f.fail, tt.err)
				}
				f.fail = append(f.fail, nil)
				_, err := generate(t.Context(), g, 1000)
				if tt.want != (err == nil) || err != nil && !errors.Is(err, tt.err) {
					t.Errorf("\nhave: %v\nwant: keys: %v", err, tt.want)
				}
				if err != nil {
					time.Sleep(maxPause)
					mustKeys(t, g, 1000)
				}
				must.Equal(t, f.opened > opened, tt.reconnected, "connected again")
			})
		})
	}
}

// Connections are replaced, so that the checks at their start are repeated.
func TestGenerator_connectionsAreReplaced(t *testing.T) {
	eachType(t, nil, func(t *testing.T, g *generator, fakes []*fake) {
		g.maxStep = min(g.maxStep, 100)
		for range 12 * 60 {
			mustKeys(t, g, 200)
			time.Sleep(10 * time.Second) // two hours in total
		}
		for _, f := range fakes {
			if f.opened < 11 || f.opened > 13 || f.closed != f.opened-1 {
				t.Errorf("\nhave: %d connections, %d closed\nwant: one every ten minutes", f.opened, f.closed)
			}
		}
	})
}

// A panic becomes an error, and the generator remains usable.
func TestGenerator_panicOfAClaim(t *testing.T) {
	eachType(t, nil, func(t *testing.T, g *generator, fakes []*fake) {
		fakes[0].panics = true
		if _, err := generate(t.Context(), g, 1); !errors.As(err, new(*panics.Error)) {
			t.Errorf("have: %v\nwant: a panics.Error", err)
		}
		fakes[0].set(func(f *fake) { f.panics = false })
		mustKey(t, g)
	})
}

func TestGenerator_describe(t *testing.T) {
	host := spi.Host{DSN: spi.NewSecret("app:geheim@tcp(db:3306)/app")}
	for _, tt := range []struct {
		typ   string
		props map[string]any
		host  spi.Host
		want  string
	}{
		{"LEAF_SEGMENT", map[string]any{"leaf.key": "k"}, host,
			`LEAF_SEGMENT "k", leaf_alloc at tcp(db:3306)/app, step not read yet`},
		{"LEAF_SEGMENT", map[string]any{"leaf.key": "k"}, spi.Host{},
			`LEAF_SEGMENT "k", leaf_alloc at no database, step not read yet`},
		{"TICKET", map[string]any{"batch": "5"}, host, "TICKET Tickets64 at tcp(db:3306)/app, increment 1, batch 5"},
		{"TICKET", nil, spi.Host{}, "TICKET Tickets64 at no database, increment 1, batch 1"},
	} {
		g := must.Get(construct(t, tt.typ, tt.props, tt.host))(t)
		must.Equal(t, g.(spi.Describer).Describe(), tt.want)
	}
	leafBubble(t, map[string]any{"min-step": "50"}, func(t *testing.T, g *generator, _ *fake) {
		mustKey(t, g)
		const want = `LEAF_SEGMENT "order", leaf_alloc at tcp(a:1)/d, step 100 in 50..1000000`
		must.Equal(t, g.Describe(), want)
	})
}

// Without an address, the first key returns an error, because rules are also checked without a
// connector.
func TestGenerator_noDatabase(t *testing.T) {
	for typ, props := range map[string]map[string]any{"LEAF_SEGMENT": {"leaf.key": "order"}, "TICKET": nil} {
		g := must.Get(construct(t, typ, props, spi.Host{}))(t)
		wantError(t, must.Err(generate(t.Context(), g.(*generator), 1)), spi.ErrStore)
		wantError(t, g.(*generator).Health().Err, spi.ErrStore)
	}
}

// deadlocked is a fake whose first check of a connection is the victim of a deadlock.
type deadlocked struct {
	*fake
	checks int
}

func (d *deadlocked) connected(context.Context, *sql.Conn) error {
	if d.checks++; d.checks == 1 {
		return &mysql.MySQLError{Number: sqlerr.Deadlock}
	}
	return nil
}

// A connection is only used after its checks, which write the gap after a failover.
func TestGenerator_checksAgainAfterADeadlock(t *testing.T) {
	eachType(t, nil, func(t *testing.T, g *generator, fakes []*fake) {
		d := &deadlocked{fake: fakes[0]}
		g.servers[0].claim = d
		mustKey(t, g)
		must.Equal(t, d.checks, 2, "checks of the connection")
	})
}

// The warnings of servers are those of Health.
func TestGenerator_warnings(t *testing.T) {
	eachType(t, nil, func(t *testing.T, g *generator, fakes []*fake) {
		for _, w := range []string{"", "noted", ""} {
			fakes[len(fakes)-1].warning.Store(w)
			if have := g.Health().Warnings; strings.Join(have, "\n") != w || w == "" && have != nil {
				t.Errorf("\nhave: %q\nwant: %q", have, w)
			}
		}
	})
}

// A buffered key allocates nothing.
func TestGenerator_allocations(t *testing.T) {
	for _, typ := range types {
		g, _ := newFake(t, typ.typ, with(typ.props, map[string]any{}))
		mustKey(t, g)
		g.current.Store(newSegment(run{1, 1 << 30, 1}))
		for _, n := range []int{1, 100} {
			keys := make([]int64, n)
			must.Equal(t, testing.AllocsPerRun(1000, func() { _ = g.GenerateInt64Keys(t.Context(), column, keys) }), 0, typ.name, n, "keys, allocations")
		}
	}
}
