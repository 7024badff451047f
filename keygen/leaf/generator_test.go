package leaf

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/spi"
)

var column = spi.Column{Table: "t_order", Name: "order_id"}

// ledger finds keys that come twice.
type ledger struct {
	mu   sync.Mutex
	seen map[int64]string
}

func (l *ledger) add(t testing.TB, who string, keys ...int64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[int64]string{}
	}
	for _, k := range keys {
		if k < 1 {
			t.Errorf("have: %d as a key of %s\nwant: a positive one", k, who)
		}
		if other, twice := l.seen[k]; twice {
			t.Errorf("key %d is %s's and %s's", k, other, who)
		}
		l.seen[k] = who
	}
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen)
}

func TestGenerator_manyGoroutinesSmallStep(t *testing.T) {
	g, s := newFake(t, 100, config{})
	s.set(func(s *fakeStore) { s.delay = 2 * time.Millisecond })
	var keys ledger
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			for i := range 20 {
				own := make([]int64, 1+i%3)
				if err := g.GenerateInt64Keys(t.Context(), column, own); err != nil {
					t.Error(err)
					return
				}
				keys.add(t, "a goroutine", own...)
			}
		})
	}
	wg.Wait()
	if want := 1000 * (7*1 + 7*2 + 6*3); keys.len() != want {
		t.Errorf("\nhave: %d keys\nwant: %d", keys.len(), want)
	}
	if h := g.Health(); h.Issued != int64(keys.len()) || h.Err != nil || len(h.Errors) != 0 {
		t.Errorf("\nhave: %d issued, errors %v %v\nwant: %d, none", h.Issued, h.Err, h.Errors, keys.len())
	}
}

// Callers that find both buffers empty share one fetch, which is as large as
// what they want together.
func TestGenerator_waitersShareOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newFake(t, 10, config{})
		s.set(func(s *fakeStore) { s.delay = time.Second })
		var keys ledger
		begin := time.Now()
		var wg sync.WaitGroup
		for range 500 {
			wg.Go(func() { keys.add(t, "a waiter", mustReserve(t, g, 1)) })
		}
		wg.Wait()
		if took := time.Since(begin); took > 2*time.Second || len(s.sizes()) > 3 {
			t.Errorf("\nhave: %v, fetches of %v\nwant: at most 2s and 3 fetches for all 500", took, s.sizes())
		}
	})
}

func TestGenerator_keysOfOneCallAreContiguous(t *testing.T) {
	g, s := newFake(t, 100, config{MaxStep: 100})
	for _, n := range []int{1, 3, 100, 99, 2, 101, 5000, 1, 70, 70} {
		keys := make([]int64, n)
		before := len(s.sizes())
		if err := g.GenerateInt64Keys(t.Context(), column, keys); err != nil {
			t.Fatal(err)
		}
		for i, k := range keys {
			if k != keys[0]+int64(i) {
				t.Fatalf("key %d of %d\nhave: %d\nwant: %d", i, n, k, keys[0]+int64(i))
			}
		}
		if n > 100 && s.sizes()[before:][0] != int64(n) && s.sizes()[len(s.sizes())-1] != int64(n) {
			t.Errorf("have: fetches %v for a call of %d\nwant: one of %d", s.sizes()[before:], n, n)
		}
	}
}

// Callers of one number, more than any segment serves, do not starve one that
// wants a whole segment's.
func TestGenerator_largeCallAmongSmallOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newFake(t, 100, config{MaxStep: 100})
		s.set(func(s *fakeStore) { s.delay = time.Millisecond })
		mustReserve(t, g, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 500 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_, _ = g.reserve(ctx, 1)
				}
			})
		}
		begin := time.Now()
		mustReserve(t, g, 100)
		cancel()
		wg.Wait()
		if took := time.Since(begin); took > 20*time.Millisecond {
			t.Errorf("\nhave: %v\nwant: a few fetches of 1ms", took)
		}
	})
}

// A call that is larger than a segment leaves the buffers to the others.
func TestGenerator_largeCallLeavesTheBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newFake(t, 100, config{})
		first := mustReserve(t, g, 1)
		mustReserve(t, g, 1000)
		if second := mustReserve(t, g, 1); second != first+1 {
			t.Errorf("\nhave: %d\nwant: %d", second, first+1)
		}
	})
}

func TestGenerator_canceledWaitReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newFake(t, 100, config{})
		s.set(func(s *fakeStore) { s.delay = 3 * time.Second })
		for _, n := range []int64{1, 100_000} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			begin := time.Now()
			_, err := g.reserve(ctx, n)
			cancel()
			if took := time.Since(begin); took != time.Second || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, spi.ErrStore) {
				t.Errorf("%d keys\nhave: %v after %v\nwant: the context's error after 1s", n, err, took)
			}
		}
		// The fetch went on without them.
		time.Sleep(3 * time.Second)
		if h := g.Health(); *h.SegmentLeft == 0 || h.SegmentSize == 0 || h.Err != nil {
			t.Errorf("\nhave: %d left of %d, %v\nwant: a segment", *h.SegmentLeft, h.SegmentSize, h.Err)
		}
	})
}

func TestGenerator_databaseAwayAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newFake(t, 100, config{})
		for range 50 {
			mustReserve(t, g, 1)
		}
		synctest.Wait()
		left := *g.Health().SegmentLeft
		s.set(func(s *fakeStore) { s.fail = errAway })
		for range left {
			mustReserve(t, g, 1)
		}
		synctest.Wait()
		_, err := g.reserve(t.Context(), 1)
		if !errors.Is(err, spi.ErrStore) || !errors.Is(err, errAway) {
			t.Errorf("\nhave: %v\nwant: spi.ErrStore and its cause", err)
		}
		h := g.Health()
		if h.Err == nil || h.Errors["store"] == 0 || h.LastError == nil || h.LastErrorTime.IsZero() {
			t.Errorf("have: %+v\nwant: health that says so", h)
		}
		s.set(func(s *fakeStore) { s.fail = nil })
		mustReserve(t, g, 1)
		if h := g.Health(); h.Err != nil || h.LastError == nil {
			t.Errorf("\nhave: %v, last %v\nwant: nil, the last one kept", h.Err, h.LastError)
		}
	})
}

// Health is bad before keys stop coming, and a fetch ahead that failed is done
// again, but not with each key.
func TestGenerator_fetchAheadIsRetriedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newFake(t, 10_000, config{})
		mustReserve(t, g, 1)
		s.set(func(s *fakeStore) { s.fail = errAway })
		for range 9000 {
			mustReserve(t, g, 1)
			synctest.Wait()
		}
		h := g.Health()
		if h.Err == nil {
			t.Error("have: good health\nwant: the failure of the fetch ahead")
		}
		if n := h.Errors["store"]; n < 2 || n > 40 {
			t.Errorf("\nhave: %d attempts over 9000 keys\nwant: 2..40", n)
		}
		s.set(func(s *fakeStore) { s.fail = nil })
		for range 1000 {
			mustReserve(t, g, 1)
			synctest.Wait()
		}
		if h := g.Health(); h.Err != nil || *h.Waits != 1 {
			t.Errorf("\nhave: %v, %d waits\nwant: well again, without a wait", h.Err, *h.Waits)
		}
	})
}

func TestGenerator_movedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newFake(t, 100, config{})
		var keys ledger
		for range 30 {
			keys.add(t, "before", mustReserve(t, g, 1))
		}
		synctest.Wait()
		s.set(func(s *fakeStore) { s.maxID = 1 })
		var err error
		for err == nil {
			var k int64
			if k, err = g.reserve(t.Context(), 1); err == nil {
				keys.add(t, "from the buffers", k)
			}
		}
		if !errors.Is(err, errMovedBack) || !errors.Is(err, spi.ErrStore) {
			t.Errorf("\nhave: %v\nwant: errMovedBack", err)
		}
		if _, err := g.reserve(t.Context(), 5000); !errors.Is(err, errMovedBack) {
			t.Errorf("a large call\nhave: %v\nwant: errMovedBack", err)
		}
		s.set(func(s *fakeStore) { s.maxID = 10_000 })
		keys.add(t, "after the repair", mustReserve(t, g, 1))
	})
}

func TestGenerator_exhausted(t *testing.T) {
	g, s := newFake(t, 100, config{})
	s.set(func(s *fakeStore) { s.maxID = math.MaxInt64 - 250 })
	var keys ledger
	var err error
	for err == nil {
		var k int64
		if k, err = g.reserve(t.Context(), 1); err == nil {
			keys.add(t, "the last ones", k)
		}
	}
	if !errors.Is(err, errExhausted) {
		t.Errorf("\nhave: %v\nwant: errExhausted", err)
	}
	if keys.len() < 100 {
		t.Errorf("\nhave: %d keys before the end\nwant: 100 or more", keys.len())
	}
}

func TestGenerator_close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newFake(t, 100, config{Timeout: time.Hour})
		s.set(func(s *fakeStore) { s.delay = time.Hour })
		waited := make(chan error)
		go func() {
			_, err := g.reserve(context.Background(), 1)
			waited <- err
		}()
		synctest.Wait()
		begin := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		if err := <-waited; !errors.Is(err, spi.ErrClosed) {
			t.Errorf("the call that waited\nhave: %v\nwant: spi.ErrClosed", err)
		}
		wg.Wait()
		if took := time.Since(begin); took != 0 {
			t.Errorf("\nhave: Close took %v\nwant: no wait for the fetch", took)
		}
		for _, n := range []int64{1, 1000} {
			if _, err := g.reserve(t.Context(), n); !errors.Is(err, spi.ErrClosed) {
				t.Errorf("a later call\nhave: %v\nwant: spi.ErrClosed", err)
			}
		}
		if err := g.Health().Err; !errors.Is(err, spi.ErrClosed) || s.closed == 0 {
			t.Errorf("\nhave: %v, store closed %d times\nwant: spi.ErrClosed, closed", err, s.closed)
		}
	})
}

func TestGenerator_countOutOfRange(t *testing.T) {
	g, _ := newFake(t, 100, config{})
	for _, n := range []int{-1, 0, maxKeys + 1, math.MaxInt} {
		if keys, err := g.GenerateKeys(t.Context(), column, n); err == nil || keys != nil {
			t.Errorf("%d keys\nhave: %v\nwant: an error", n, keys)
		}
		if _, err := g.reserve(t.Context(), int64(n)); err == nil {
			t.Errorf("reserving %d\nhave: nil\nwant: an error", n)
		}
	}
	if err := g.GenerateInt64Keys(t.Context(), column, nil); err != nil {
		t.Error(err)
	}
}

func TestGenerator_boxedKeys(t *testing.T) {
	g, _ := newFake(t, 100, config{})
	keys, err := g.GenerateKeys(t.Context(), column, 3)
	if err != nil {
		t.Fatal(err)
	}
	if keys[0] != int64(1) || keys[1] != int64(2) || keys[2] != int64(3) {
		t.Errorf("\nhave: %v\nwant: 1 2 3", keys)
	}
}

func TestGenerator_describe(t *testing.T) {
	g, err := newGenerator(config{Key: "order", DSN: "user:geheim@tcp(db:3306)/leaf?timeout=1s"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	want := `LEAF_SEGMENT "order", leaf_alloc at tcp(db:3306)/leaf, step not read yet`
	if have := g.Describe(); have != want || strings.Contains(have, "geheim") {
		t.Errorf("\nhave: %s\nwant: %s", have, want)
	}
	f, _ := newFake(t, 100, config{MinStep: 50})
	mustReserve(t, f, 1)
	want = `LEAF_SEGMENT "order", leaf_alloc at no database, step 100 in 50..1000000`
	if have := f.Describe(); have != want {
		t.Errorf("\nhave: %s\nwant: %s", have, want)
	}
}
