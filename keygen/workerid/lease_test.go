package workerid_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	testclock "github.com/shardkey/shardkey/internal/test/clock"
	"github.com/shardkey/shardkey/internal/test/memory"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

func TestLease_reservesAheadAndRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustAcquire(t, newAssigner(t, new(memory.Records), nil), 1023)
		wantMS(t, "floor", l.Floor(), nowMS()+10_000-1)
		wantMS(t, "limit", l.Limit(), nowMS()+10_000)
		time.Sleep(1400 * time.Millisecond)
		wantMS(t, "limit before the renewal", l.Limit(), nowMS()+8_600)
		time.Sleep(time.Minute)
		synctest.Wait()
		if ahead := l.Limit() - nowMS(); ahead < 7_000 || ahead > 10_000 {
			t.Errorf("limit ahead of now after a minute\nhave: %d ms\nwant: 7000..10000", ahead)
		}
	})
}

// A released worker ID can be leased again immediately, from after its last ID.
func TestLease_releaseLetsTheNextBeginAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memory.Records)
		a, b := newAssigner(t, m, nil), newAssigner(t, m, nil)
		first := mustAcquire(t, a, 0)
		used := first.Floor() + 1234
		must.Do(t, first.Release(t.Context(), used))
		if first.Limit() > first.Floor() {
			t.Errorf("limit of a released lease: %d", first.Limit())
		}
		must.Is(t, first.Renew(t.Context(), used+1), spi.ErrClosed, "Renew of a released lease")
		must.Do(t, first.Release(t.Context(), 0), "Release again")
		second := mustAcquire(t, b, 0)
		wantMS(t, "floor", second.Floor(), used+1)
		if err := second.Renew(t.Context(), used+1); err != nil || second.Limit() <= used+1 {
			t.Errorf("have: limit %d, %v\nwant: more than %d", second.Limit(), err, used+1)
		}
	})
}

// A released lease leaves no goroutine, even while its assigner is open.
func TestLease_releaseEndsTheRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memory.Records)
		s := newSlowStore(m.Open(), 0)
		a := workerid.Assign(t, s, workerid.Config{})
		l := mustAcquire(t, a, 0)
		must.Do(t, l.Release(t.Context(), 0))
		calls := s.calls()
		time.Sleep(time.Minute)
		must.Equal(t, s.calls()-calls, 0, "calls of the store after Release")
	})
}

func TestLease_storeAwayKeepsTheLimitAndShowsInHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memory.Records)
		a := newAssigner(t, m, nil)
		l := mustAcquire(t, a, 0)
		limit := l.Limit()
		cause := errors.New("connection refused")
		m.SetAway(cause)
		time.Sleep(4 * time.Second) // one renewal has failed
		synctest.Wait()
		wantMS(t, "limit", l.Limit(), limit)
		if h := a.Health(); !errors.Is(h.Err, cause) || !errors.Is(h.Err, spi.ErrStore) || h.Lease.Limit.UnixMilli() != limit || h.Lease.Length != 10*time.Second {
			t.Errorf("health before the limit\nhave: %+v\nwant: the store's error, and how long a lease is", h)
		}
		if err := l.Renew(t.Context(), limit); !errors.Is(err, cause) || !errors.Is(err, spi.ErrStore) {
			t.Errorf("Renew\nhave: %v\nwant: the store's error", err)
		}
		time.Sleep(time.Hour)
		wantMS(t, "limit after an hour", l.Limit(), limit)
		m.SetAway(nil)
		time.Sleep(3001 * time.Millisecond) // renew
		synctest.Wait()
		if h := a.Health(); h.Err != nil || l.Limit() <= nowMS() {
			t.Errorf("after the store came back\nhave: %v, limit %d\nwant: no error, a limit ahead of %d", h.Err, l.Limit(), nowMS())
		}
	})
}

// A process that slept past its limit finds its worker ID taken over, with a lease that begins at
// that limit. It leases another one.
func TestLease_takeoverAfterTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memory.Records)
		late := new(testclock.Clock)
		a, b := newAssigner(t, m, nil), newAssigner(t, m, late)
		old := mustAcquire(t, a, 0)
		limit := old.Limit()
		late.Set(10 * time.Second) // by b's clock, the lease has ended
		l := mustAcquire(t, b, 0)
		wantMS(t, "floor of the successor", l.Floor(), limit)
		must.Is(t, old.Renew(t.Context(), limit), spi.ErrLeaseLost, "Renew of the former owner")
		if old.Limit() > old.Floor() {
			t.Errorf("limit of a lost lease\nhave: %d\nwant: none", old.Limit())
		}
		if h := a.Health(); h.Lease.Lost != 1 || h.Errors["lease-lost"] != 1 {
			t.Errorf("health\nhave: %+v\nwant: one lease lost", h)
		}
	})
}

// A renewal in the background also notices this, without a call.
func TestLease_lostIsNoticedAtTheNextRenewal(t *testing.T) {
	for name, record := range map[string]workerid.Record{
		"another owner":  {Owner: "other", ReservedUntil: 1 << 50, Holder: "elsewhere pid 1"},
		"record removed": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := new(memory.Records)
				l := mustAcquire(t, newAssigner(t, m, nil), 0)
				m.Put(0, record)
				time.Sleep(3 * time.Second)
				synctest.Wait()
				want := record.String()
				if record.IsZero() {
					want = "its record was removed"
				}
				if err := l.Renew(t.Context(), nowMS()); !errors.Is(err, spi.ErrLeaseLost) || !strings.Contains(err.Error(), "worker ID 0: "+want) {
					t.Errorf("have: %v\nwant: spi.ErrLeaseLost that shows %s", err, want)
				}
			})
		})
	}
}

// The log of a lease has each event once.
func TestLease_logsItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memory.Records)
		var log must.Log
		a := workerid.Assign(t, m.Open(), workerid.Config{Namespace: "orders", Logger: log.Logger()})
		m.SetAway(errors.New("away"))
		for range 2 {
			must.Fail(t, must.Err(a.AcquireWorkerID(t.Context(), 0)), "a worker ID of a store that is unavailable")
		}
		m.SetAway(nil)
		l := mustAcquire(t, a, 0)
		m.SetAway(errors.New("away"))
		time.Sleep(time.Minute)
		m.SetAway(nil)
		time.Sleep(time.Minute)
		must.Do(t, l.Release(t.Context(), 0))
		mustAcquire(t, a, 0)
		must.Do(t, a.Close())
		want := []string{
			`level=ERROR msg="shardkey: no worker ID leased, no keys until one is" namespace=orders error=`,
			`level=INFO msg="shardkey: worker ID leased" namespace=orders worker_id=0 until=`,
			`level=WARN msg="shardkey: lease renewal failed" namespace=orders worker_id=0 until=`,
			`level=ERROR msg="shardkey: lease ended, no keys until it is renewed" namespace=orders worker_id=0 until=`,
			`level=INFO msg="shardkey: lease renewed again" namespace=orders worker_id=0 until=`,
			`level=INFO msg="shardkey: worker ID released" namespace=orders worker_id=0`,
			`level=INFO msg="shardkey: worker ID leased" namespace=orders worker_id=0 until=`,
			`level=INFO msg="shardkey: worker ID released" namespace=orders worker_id=0`,
		}
		have := strings.Split(strings.TrimSpace(log.String()), "\n")
		for i, line := range have {
			if i >= len(want) || !strings.Contains(line, want[i]) {
				t.Fatalf("line %d\nhave: %s\nwant: %s", i, log.String(), strings.Join(want, "\n"))
			}
		}
		must.Equal(t, len(have), len(want), "lines of", log.String())
	})
}

// A store that doesn't answer doesn't block a caller forever.
func TestLease_storeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(new(memory.Records).Open(), 1000*time.Hour)
		a := workerid.Assign(t, s, workerid.Config{})
		start := time.Now()
		_, err := a.AcquireWorkerID(context.Background(), 0)
		if took := time.Since(start); !errors.Is(err, spi.ErrStore) || took > 10*time.Second {
			t.Errorf("Acquire\nhave: %v after %v\nwant: spi.ErrStore in 10s", err, took)
		}
		s.set(0)
		l := mustAcquire(t, a, 1)
		s.set(1000 * time.Hour)
		start = time.Now()
		err = l.Renew(context.Background(), l.Limit())
		if took := time.Since(start); !errors.Is(err, spi.ErrStore) || took > 10*time.Second {
			t.Errorf("Renew\nhave: %v after %v\nwant: spi.ErrStore in 10s", err, took)
		}
	})
}

func TestLease_contextEndsWhileWaitingForARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(new(memory.Records).Open(), 0)
		l := mustAcquire(t, workerid.Assign(t, s, workerid.Config{}), 0)
		s.set(time.Second)
		go func() { _ = l.Renew(t.Context(), l.Limit()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		start := time.Now()
		must.Is(t, l.Renew(ctx, l.Limit()), context.DeadlineExceeded)
		must.Equal(t, time.Since(start), time.Millisecond, "waited")
	})
}

// The store doesn't answer. Callers whose deadline is shorter than its operations learn that, at the
// start and when the lease has ended, and so does Ready.
func TestLease_shortDeadlinesShowTheStore(t *testing.T) {
	for _, started := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSlowStore(new(memory.Records).Open(), 0)
			g := openGeneratorOn(t, s, map[string]any{"epoch": "1999-01-01"}, nil)
			if started {
				mustKey(t, g)
			}
			s.set(1000 * time.Hour)
			time.Sleep(20 * time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if _, err := g.Next(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, spi.ErrStore) != started {
				t.Errorf("canceled\nhave: %v\nwant: nothing about the store, but the error of renewals: %v", err, started)
			}
			for range 3 {
				var wg sync.WaitGroup
				for i := range 4 {
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						call := g.Ready
						if i > 0 {
							call = func(ctx context.Context) error { _, err := g.Next(ctx); return err }
						}
						err := call(ctx)
						if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, spi.ErrStore) || errors.Is(err, spi.ErrLeaseLimit) != started {
							t.Errorf("started %v, caller %d\nhave: %v\nwant: its deadline and the store's error, of a lease's end: %v", started, i, err, started)
						}
					})
				}
				wg.Wait()
			}
			s.set(0)
			time.Sleep(5 * time.Second)
			mustKey(t, g)
		})
	}
}

// A generator that needs all keys of its layout stays ahead of the clock, since its worker ID had no
// record. After its first lease it doesn't call the store for each tick.
func TestLease_saturatedGeneratorRenewsRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(new(memory.Records).Open(), time.Millisecond)
		g := openGeneratorOn(t, s, map[string]any{"epoch": "1999-01-01", "layout": "41-10-0"}, nil)
		began := time.Now()
		until := func(d time.Duration) {
			for time.Since(began) < d {
				mustKey(t, g)
			}
		}
		until(11 * time.Second)
		calls := s.calls()
		until(31 * time.Second)
		if n := s.calls() - calls; n > 20 {
			t.Errorf("have: %d calls of the store in 20 s\nwant: 20 at most", n)
		}
		if h := g.Health(); h.Issued < 30_000 {
			t.Errorf("have: %d keys in 31 s\nwant: one each ms", h.Issued)
		}
	})
}

// A caller that waits for the clock learns nothing about a store.
func TestLease_deadlineWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openGenerator(t, new(memory.Records), map[string]any{"epoch": "1999-01-01", "layout": "30-10-0", "tick": "5s"}, nil)
		mustKey(t, g)
		mustKey(t, g)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		for range 4 {
			if _, err := g.Next(ctx); err != nil && (!errors.Is(err, context.DeadlineExceeded) || errors.Is(err, spi.ErrStore)) {
				t.Errorf("have: %v\nwant: its deadline alone", err)
			}
		}
	})
}

// slowStore is a store with delayed answers.
type slowStore struct {
	workerid.Hooked
	mu    sync.Mutex
	delay time.Duration
	n     int
}

func newSlowStore(store workerid.Store, delay time.Duration) *slowStore {
	s := &slowStore{delay: delay}
	s.Hooked = workerid.Hooked{Store: store, Before: s.wait}
	return s
}

func (s *slowStore) wait(ctx context.Context) error {
	s.mu.Lock()
	s.n++
	delay := s.delay
	s.mu.Unlock()
	return spi.SystemClock.Sleep(ctx, delay)
}

func (s *slowStore) set(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = delay
}

func (s *slowStore) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// Close during a renewal is not reported as a failure of the store.
func TestAssigner_closeDuringARenewalIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(new(memory.Records).Open(), 0)
		var log must.Log
		a := workerid.Assign(t, s, workerid.Config{Logger: log.Logger()})
		mustAcquire(t, a, 0)
		s.set(time.Second)
		time.Sleep(3500 * time.Millisecond) // in the middle of a renewal
		s.set(0)
		must.Do(t, a.Close())
		if text := log.String(); strings.Contains(text, "WARN") || strings.Contains(text, "ERROR") {
			t.Errorf("logged: %s", log.String())
		}
	})
}

func mustKey(t *testing.T, g workerid.Snowflake) int64 {
	t.Helper()
	return must.Get(g.Next(context.Background()))(t)
}

// A clock that stepped back needs no new reservation, but the renewal still checks the lease.
func TestClock_backStillLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, clock := new(memory.Records), new(testclock.Clock)
		l := mustAcquire(t, newAssigner(t, m, clock), 0)
		limit := l.Limit()
		clock.Set(-time.Hour)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		wantMS(t, "limit", l.Limit(), limit)
		m.Put(0, workerid.Record{Owner: "other", ReservedUntil: limit + 1})
		time.Sleep(3 * time.Second)
		synctest.Wait()
		must.Equal(t, l.Limit(), 0, "limit of a lost lease")
	})
}

// A record of 2080 is not changed and is reported. Other worker IDs are leased.
func TestClock_recordDecadesAhead(t *testing.T) {
	m := new(memory.Records)
	a := newAssigner(t, m, nil)
	in2080 := time.Date(2080, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	m.Put(0, workerid.Record{Owner: "x", ReservedUntil: in2080, FreeFrom: in2080, Holder: "h pid 1"})
	must.Equal(t, mustAcquire(t, a, 1).WorkerID(), 1)
	if h := a.Health(); len(h.Warnings) != 1 || !strings.Contains(h.Warnings[0], "2080") {
		t.Errorf("warnings\nhave: %q\nwant: one that speaks of 2080", h.Warnings)
	}
	if _, err := a.AcquireWorkerID(t.Context(), 1); !errors.Is(err, spi.ErrNoWorkerID) || !strings.Contains(err.Error(), "2080") {
		t.Errorf("have: %v\nwant: no worker ID, naming 2080", err)
	}
}

func openGenerator(t *testing.T, m *memory.Records, layout map[string]any, clock spi.Clock) workerid.Snowflake {
	t.Helper()
	return openGeneratorOn(t, m.Open(), layout, clock)
}

func openGeneratorOn(t *testing.T, store workerid.Store, layout map[string]any, clock spi.Clock) workerid.Snowflake {
	t.Helper()
	a := workerid.Assign(t, store, workerid.Config{Clock: clock})
	g := must.Get(workerid.NewSnowflake(a, spi.Host{Clock: clock}, 1, layout))(t)
	t.Cleanup(func() {
		_ = g.Close()
		_ = a.Close()
	})
	return g
}

// With ticks of an hour, a start is rounded up to the next hour. Keys begin there at once: with
// an empty store, after a restart, and after several.
func TestAssigner_longTicksDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memory.Records)
		hours := map[string]any{"layout": "30-1-30", "tick": "1h", "epoch": "1999-01-01"}
		seen := map[int64]bool{}
		began := time.Now()
		for range 3 {
			g := openGenerator(t, m, hours, nil)
			for range 3 {
				key := mustKey(t, g)
				if seen[key] {
					t.Fatalf("key %d twice", key)
				}
				seen[key] = true
			}
			must.Do(t, g.Close())
		}
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("waited\nhave: %v\nwant: no wait", waited)
		}
	})
}

// All holders' clocks are a year ahead for some seconds. Nothing is reserved up to that time,
// Health and Ready return the reason, and keys continue as soon as the clocks are right.
func TestClock_aheadForAMomentReservesNothing(t *testing.T) {
	for name, clocked := range map[string]bool{"a store with a clock": true, "a store without one": false} {
		t.Run(name, func(t *testing.T) {
			if !clocked && runtime.GOOS != "linux" {
				t.Skip("without the uptime of the machine a step ahead isn't told from a suspension")
			}
			synctest.Test(t, func(t *testing.T) {
				m, clock := new(memory.Records), new(testclock.Clock)
				var generators []workerid.Snowflake
				for range 16 {
					store := m.Open()
					if clocked {
						store = rightClock{store}
					}
					generators = append(generators, openGeneratorOn(t, store, map[string]any{"layout": "js53", "epoch": "1999-01-01"}, clock))
				}
				for _, g := range generators {
					mustKey(t, g)
				}
				for _, ahead := range []time.Duration{time.Hour, 365 * 24 * time.Hour} {
					clock.Set(ahead)
					for _, g := range generators {
						_, err := g.Next(t.Context())
						for what, err := range map[string]error{"next": err, "ready": g.Ready(t.Context()), "health": g.Health().Err} {
							if !errors.Is(err, workerid.ErrClock) || !errors.Is(err, spi.ErrStore) {
								t.Fatalf("%s\nhave: %v\nwant: ErrClock", what, err)
							}
						}
					}
					time.Sleep(20 * time.Second)
					clock.Set(0)
					for _, g := range generators {
						mustKey(t, g)
						must.Do(t, g.Ready(t.Context()))
					}
				}
				time.Sleep(10 * time.Second)
				for _, g := range generators {
					must.Do(t, g.Health().Err)
				}
			})
		})
	}
}

// rightClock is a store with a correct clock.
type rightClock struct{ workerid.Store }

func (rightClock) Now(context.Context) (time.Time, error) { return time.Now(), nil }
