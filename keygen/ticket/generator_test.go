package ticket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// fakeServer counts on a grid as a ticket server does.
type fakeServer struct {
	mu             sync.Mutex
	next, stride   int64
	delay          time.Duration
	fail           error
	fetches, tries int
	closed         int
}

func (s *fakeServer) fetch(ctx context.Context, n int64) (block, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	if err := spi.SystemClock.Sleep(ctx, s.delay); err != nil {
		return block{}, err
	}
	if s.fail != nil {
		return block{}, s.fail
	}
	s.fetches++
	b := block{s.next, n, s.stride}
	s.next += n * s.stride
	return b, nil
}

func (s *fakeServer) connect(context.Context) error { return nil }
func (s *fakeServer) explain(err error) error       { return err }
func (s *fakeServer) close() error                  { s.closed++; return nil }

func newFake(t *testing.T, c config, servers int) (*generator, []*fakeServer) {
	t.Helper()
	for i := range servers {
		c.DSNs = append(c.DSNs, fmt.Sprint(i))
	}
	c, err := c.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	var members []*member
	var fakes []*fakeServer
	for i := range servers {
		s := &fakeServer{next: int64(1 + i), stride: c.Increment}
		fakes = append(fakes, s)
		members = append(members, &member{source: s})
	}
	g := newWithMembers(c, members)
	t.Cleanup(func() { g.Close() })
	return g, fakes
}

func TestPool_serversInTurn(t *testing.T) {
	g, _ := newFake(t, config{}, 3)
	for _, want := range []int64{1, 2, 3, 4, 5, 6} {
		if have := mustKeys(t, g, 1)[0]; have != want {
			t.Errorf("\nhave: %d\nwant: %d", have, want)
		}
	}
	if keys := mustKeys(t, g, 3); keys[0] != 7 || keys[1] != 10 || keys[2] != 13 {
		t.Errorf("\nhave: %v\nwant: 7 10 13, all of one server", keys)
	}
}

// What is left of a batch serves the calls that it suffices for, on its own
// server's grid.
func TestGenerator_cutsBatches(t *testing.T) {
	g, _ := newFake(t, config{Batch: 4}, 2)
	for _, want := range [][]int64{{1}, {3, 5}, {2, 4}, {6, 8}, {9, 11, 13}, {10, 12}} {
		if have := mustKeys(t, g, len(want)); !slices.Equal(have, want) {
			t.Errorf("\nhave: %v\nwant: %v", have, want)
		}
	}
}

// A server that is down is tried again after 1, 2, 4, … 30 seconds, and costs
// nothing in between.
func TestPool_pausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, servers := newFake(t, config{}, 2)
		servers[0].fail = errors.New("down")
		begin := time.Now()
		var tried []time.Duration
		for time.Since(begin) < 100*time.Second {
			before := servers[0].tries
			mustKeys(t, g, 1)
			if servers[0].tries > before {
				tried = append(tried, time.Since(begin))
			}
			time.Sleep(100 * time.Millisecond)
		}
		last := time.Duration(0)
		for i, want := range []time.Duration{0, 1, 2, 4, 8, 16, 30, 30} {
			if i >= len(tried) {
				t.Fatalf("\nhave: tries at %v\nwant: 8", tried)
			}
			if pause := (tried[i] - last).Round(time.Second); pause != want*time.Second {
				t.Errorf("try %d\nhave: after %v\nwant: after %vs", i, pause, int64(want))
			}
			last = tried[i]
		}
	})
}

func TestPool_slowServerIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, servers := newFake(t, config{Timeout: time.Second}, 2)
		servers[0].delay = time.Hour
		begin := time.Now()
		for range 10 {
			mustKeys(t, g, 1)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("\nhave: %v for 10 keys\nwant: the timeout once, 1s", took)
		}
	})
}

func TestGenerator_canceledWaitReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, servers := newFake(t, config{Timeout: time.Hour}, 1)
		servers[0].delay = time.Minute
		for range 2 { // the one that is served, and one in the queue
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begin := time.Now()
			err := g.GenerateInt64Keys(ctx, column, make([]int64, 1))
			if took := time.Since(begin); took != time.Second || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("\nhave: %v after %v\nwant: the context's error after 1s", err, took)
			}
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if len(g.queue) != 0 {
			t.Errorf("\nhave: %d in the queue\nwant: none", len(g.queue))
		}
	})
}

// A server that comes back with the offset of another one makes the other's numbers.
func TestPool_offsetOfAServerThatIsBack(t *testing.T) {
	g, _ := newFake(t, config{}, 2)
	for i, m := range g.pool.members {
		m.server = &server{name: "test", offset: int64(1 + i)}
	}
	mustKeys(t, g, 1)
	mustKeys(t, g, 1)
	g.pool.members[1].server.offset = 1 // read by its next connection
	if keys, err := g.GenerateKeys(t.Context(), column, 1); !errors.Is(err, errSettings) {
		t.Errorf("have: %v, %v\nwant: errSettings", keys, err)
	}
}

func TestPool_allServersFail(t *testing.T) {
	g, servers := newFake(t, config{}, 2)
	errA, errB := storeError("A", "down", nil, nil), storeError("B", "down", nil, nil)
	servers[0].fail, servers[1].fail = errA, errB
	for range 3 {
		err := g.GenerateInt64Keys(t.Context(), column, make([]int64, 1))
		if !errors.Is(err, errA) || !errors.Is(err, errB) {
			t.Errorf("\nhave: %v\nwant: both servers' errors", err)
		}
	}
	if h := g.Health(); h.Err == nil || h.Errors["store"] != 6 || h.Issued != 0 {
		t.Errorf("\nhave: %v, errors %v, %d issued\nwant: an error, 6, 0", h.Err, h.Errors, h.Issued)
	}
}

func TestGenerator_close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, servers := newFake(t, config{Timeout: time.Hour}, 1)
		servers[0].delay = time.Hour
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				err := g.GenerateInt64Keys(context.Background(), column, make([]int64, 1))
				if !errors.Is(err, spi.ErrClosed) {
					t.Errorf("a call that waits\nhave: %v\nwant: spi.ErrClosed", err)
				}
			})
		}
		synctest.Wait()
		for range 2 {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		tries := servers[0].tries
		if err := g.GenerateInt64Keys(t.Context(), column, make([]int64, 1)); !errors.Is(err, spi.ErrClosed) || servers[0].tries != tries {
			t.Errorf("a later call\nhave: %v, asked %d times\nwant: spi.ErrClosed, the server not asked", err, servers[0].tries-tries)
		}
		if servers[0].closed != 1 || !errors.Is(g.Health().Err, spi.ErrClosed) {
			t.Errorf("\nhave: closed %d times, %v\nwant: once, spi.ErrClosed", servers[0].closed, g.Health().Err)
		}
	})
}

func TestGenerator_countOutOfRange(t *testing.T) {
	g, _ := newFake(t, config{}, 1)
	for _, n := range []int{-1, 0, maxKeys + 1} {
		if keys, err := g.GenerateKeys(t.Context(), column, n); err == nil || keys != nil {
			t.Errorf("%d keys\nhave: %v\nwant: an error", n, keys)
		}
	}
	if err := g.GenerateInt64Keys(t.Context(), column, make([]int64, maxKeys+1)); err == nil {
		t.Error("too many\nhave: nil\nwant: an error")
	}
	if err := g.GenerateInt64Keys(t.Context(), column, nil); err != nil {
		t.Error(err)
	}
	if keys, err := g.GenerateKeys(t.Context(), column, 2); err != nil || keys[0] != int64(1) || keys[1] != int64(2) {
		t.Errorf("\nhave: %v %v\nwant: 1 2", keys, err)
	}
}
