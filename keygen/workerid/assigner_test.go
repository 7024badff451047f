package workerid_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

// shiftedClock is the bubble's clock, some way off.
type shiftedClock struct {
	mu    sync.Mutex
	shift time.Duration
}

func (c *shiftedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.shift)
}

func (c *shiftedClock) Sleep(ctx context.Context, d time.Duration) error {
	return spi.SystemClock.Sleep(ctx, d)
}

func (c *shiftedClock) set(shift time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shift = shift
}

// newAssigner makes an assigner on the records, silent and closed at the end.
func newAssigner(t *testing.T, m *workeridtest.Memory, clock spi.Clock) *workerid.Assigner {
	t.Helper()
	a, err := workerid.NewAssigner(m.Open(), workerid.Config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return a
}

func mustAcquire(t *testing.T, a *workerid.Assigner, maxWorkerID int64) spi.WorkerIDLease {
	t.Helper()
	l, err := a.AcquireWorkerID(t.Context(), maxWorkerID)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func nowMS() int64 { return time.Now().UnixMilli() }

func wantMS(t *testing.T, what string, have, want int64) {
	t.Helper()
	if have != want {
		t.Errorf("%s\nhave: %s\nwant: %s", what, time.UnixMilli(have).UTC(), time.UnixMilli(want).UTC())
	}
}

func TestLeaseReservesAheadAndRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustAcquire(t, newAssigner(t, new(workeridtest.Memory), nil), 1023)
		wantMS(t, "floor", l.Floor(), nowMS())
		wantMS(t, "limit", l.Limit(), nowMS()+10_000)
		time.Sleep(2900 * time.Millisecond)
		wantMS(t, "limit before the renewal", l.Limit(), nowMS()+7_100)
		time.Sleep(time.Minute)
		synctest.Wait()
		if ahead := l.Limit() - nowMS(); ahead < 7_000 || ahead > 10_000 {
			t.Errorf("limit ahead of now after a minute\nhave: %d ms\nwant: 7000..10000", ahead)
		}
	})
}

func TestTwoAssignersHaveDifferentWorkerIDs(t *testing.T) {
	m := new(workeridtest.Memory)
	a, b := newAssigner(t, m, nil), newAssigner(t, m, nil)
	seen := map[int64]bool{}
	for _, l := range []spi.WorkerIDLease{mustAcquire(t, a, 9), mustAcquire(t, b, 9), mustAcquire(t, a, 9)} {
		if seen[l.WorkerID()] {
			t.Errorf("worker id %d twice", l.WorkerID())
		}
		seen[l.WorkerID()] = true
	}
}

// A worker id that is given back is had again at once, from behind its last id.
func TestReleaseLetsTheNextBeginBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
		a, b := newAssigner(t, m, nil), newAssigner(t, m, nil)
		first := mustAcquire(t, a, 0)
		used := nowMS() + 1234
		if err := first.Release(t.Context(), used); err != nil {
			t.Fatal(err)
		}
		if first.Limit() > first.Floor() {
			t.Errorf("limit of a released lease: %d", first.Limit())
		}
		if err := first.Renew(t.Context(), used+1); !errors.Is(err, spi.ErrClosed) {
			t.Errorf("Renew of a released lease\nhave: %v\nwant: spi.ErrClosed", err)
		}
		if err := first.Release(t.Context(), 0); err != nil {
			t.Errorf("Release again: %v", err)
		}
		second := mustAcquire(t, b, 0)
		wantMS(t, "floor", second.Floor(), used+1)
		if second.Limit() < used+10_000 {
			t.Errorf("limit\nhave: %d\nwant: at least %d", second.Limit(), used+10_000)
		}
	})
}

// Nothing used: the next begins where the lease did, never below.
func TestReleaseOfAnUnusedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
		first := mustAcquire(t, newAssigner(t, m, nil), 0)
		time.Sleep(time.Second)
		if err := first.Release(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		wantMS(t, "floor", mustAcquire(t, newAssigner(t, m, nil), 0).Floor(), first.Floor())
	})
}

func TestCloseGivesBackAndEndsTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the bubble fails if a goroutine is left
		m := new(workeridtest.Memory)
		a := newAssigner(t, m, nil)
		l := mustAcquire(t, a, 0)
		limit := l.Limit()
		for range 2 {
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.AcquireWorkerID(t.Context(), 0); !errors.Is(err, spi.ErrClosed) {
			t.Errorf("Acquire after Close\nhave: %v\nwant: spi.ErrClosed", err)
		}
		wantMS(t, "floor of the next", mustAcquire(t, newAssigner(t, m, nil), 0).Floor(), limit)
	})
}

func TestAllTakenNamesTheHolders(t *testing.T) {
	m := new(workeridtest.Memory)
	a := newAssigner(t, m, nil)
	for range 8 {
		mustAcquire(t, a, 7)
	}
	_, err := a.AcquireWorkerID(t.Context(), 7)
	var none *workerid.NoWorkerIDError
	if !errors.As(err, &none) || !errors.Is(err, spi.ErrNoWorkerID) || len(none.Taken) != 8 || none.Soonest.IsZero() {
		t.Fatalf("have: %v\nwant: a NoWorkerIDError with 8 holders", err)
	}
	for _, part := range []string{"0..7", "pid ", "and 3 more", "since 2"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("message lacks %q: %v", part, err)
		}
	}
	if h := a.Health(); !errors.Is(h.Err, spi.ErrNoWorkerID) || h.Errors["no-worker-id"] != 1 {
		t.Errorf("health\nhave: %+v\nwant: no-worker-id", h)
	}
}

func TestStoreAwayKeepsTheLimitAndShowsInHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
		a := newAssigner(t, m, nil)
		l := mustAcquire(t, a, 0)
		limit := l.Limit()
		cause := errors.New("connection refused")
		m.SetAway(cause)
		time.Sleep(4 * time.Second) // one renewal has failed
		synctest.Wait()
		wantMS(t, "limit", l.Limit(), limit)
		if h := a.Health(); !errors.Is(h.Err, cause) || !errors.Is(h.Err, spi.ErrStore) || h.LeaseLimit.UnixMilli() != limit {
			t.Errorf("health before the limit\nhave: %+v\nwant: the store's error", h)
		}
		if err := l.Renew(t.Context(), limit); !errors.Is(err, cause) || !errors.Is(err, spi.ErrStore) {
			t.Errorf("Renew\nhave: %v\nwant: the store's error", err)
		}
		time.Sleep(time.Hour)
		wantMS(t, "limit after an hour", l.Limit(), limit)
		m.SetAway(nil)
		time.Sleep(2 * time.Second) // retried sooner than each renew
		synctest.Wait()
		if h := a.Health(); h.Err != nil || l.Limit() <= nowMS() {
			t.Errorf("after the store came back\nhave: %v, limit %d\nwant: no error, a limit ahead of %d", h.Err, l.Limit(), nowMS())
		}
	})
}

// A process that slept past its limit finds its worker id taken over, starting
// at its limit, and takes another one.
func TestTakeoverAfterTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
		late := new(shiftedClock)
		a, b := newAssigner(t, m, nil), newAssigner(t, m, late)
		old := mustAcquire(t, a, 0)
		limit := old.Limit()
		late.set(10 * time.Second) // to b's clock the lease has run out
		l := mustAcquire(t, b, 0)
		wantMS(t, "floor of the successor", l.Floor(), limit)
		if err := old.Renew(t.Context(), limit); !errors.Is(err, spi.ErrLeaseLost) {
			t.Errorf("Renew of the former owner\nhave: %v\nwant: spi.ErrLeaseLost", err)
		}
		if old.Limit() > old.Floor() {
			t.Errorf("limit of a lost lease\nhave: %d\nwant: none", old.Limit())
		}
		if h := a.Health(); h.LeasesLost != 1 || h.Errors["lease-lost"] != 1 {
			t.Errorf("health\nhave: %+v\nwant: one lease lost", h)
		}
	})
}

// A renewal in the background finds out too, without being asked.
func TestLostLeaseIsNoticedAtTheNextRenewal(t *testing.T) {
	for name, record := range map[string]workerid.Record{
		"another owner":  {Owner: "other", ReservedUntil: 1 << 50, Holder: "elsewhere pid 1"},
		"record removed": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := new(workeridtest.Memory)
				l := mustAcquire(t, newAssigner(t, m, nil), 0)
				m.Put(0, record)
				time.Sleep(3 * time.Second)
				synctest.Wait()
				var lost *workerid.LeaseLostError
				if err := l.Renew(t.Context(), nowMS()); !errors.As(err, &lost) || lost.Found != record {
					t.Errorf("have: %v\nwant: a LeaseLostError that shows %v", err, record)
				}
			})
		})
	}
}

// A clock that stepped back needs no new reservation, but the lease still looks
// whether it stands.
func TestClockBackStillLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, clock := new(workeridtest.Memory), new(shiftedClock)
		l := mustAcquire(t, newAssigner(t, m, clock), 0)
		limit := l.Limit()
		clock.set(-time.Hour)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		wantMS(t, "limit", l.Limit(), limit)
		m.Put(0, workerid.Record{Owner: "other", ReservedUntil: limit + 1})
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if l.Limit() != 0 {
			t.Errorf("limit of a lost lease\nhave: %d\nwant: 0", l.Limit())
		}
	})
}

// A clock decades ahead neither takes a worker id nor burns the one it has.
func TestClockDecadesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, clock := new(workeridtest.Memory), new(shiftedClock)
		a, b := newAssigner(t, m, nil), newAssigner(t, m, clock)
		held := mustAcquire(t, b, 1023)
		clock.set(54 * 365 * 24 * time.Hour)
		var wrong *workerid.ClockError
		if err := held.Renew(t.Context(), clock.Now().UnixMilli()); !errors.As(err, &wrong) {
			t.Errorf("Renew\nhave: %v\nwant: a ClockError", err)
		}
		if _, err := b.AcquireWorkerID(t.Context(), 1023); !errors.As(err, &wrong) || !errors.Is(err, spi.ErrStore) {
			t.Errorf("Acquire\nhave: %v\nwant: a ClockError", err)
		}
		time.Sleep(time.Minute)
		clock.set(0)
		time.Sleep(time.Minute)
		synctest.Wait()
		if held.Limit() > nowMS()+10_000 {
			t.Errorf("limit\nhave: %d\nwant: at most %d", held.Limit(), nowMS()+10_000)
		}
		mustAcquire(t, a, 1023)
	})
}

// A record of 2080 is left alone and shows; others are taken.
func TestRecordDecadesAhead(t *testing.T) {
	m := new(workeridtest.Memory)
	a := newAssigner(t, m, nil)
	in2080 := time.Date(2080, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	m.Put(0, workerid.Record{Owner: "x", ReservedUntil: in2080, FreeFrom: in2080, Holder: "h pid 1"})
	if l := mustAcquire(t, a, 1); l.WorkerID() != 1 {
		t.Errorf("have: worker id %d\nwant: 1", l.WorkerID())
	}
	if h := a.Health(); len(h.Warnings) != 1 || !strings.Contains(h.Warnings[0], "2080") {
		t.Errorf("warnings\nhave: %q\nwant: one that speaks of 2080", h.Warnings)
	}
	if _, err := a.AcquireWorkerID(t.Context(), 1); !errors.Is(err, spi.ErrNoWorkerID) || !strings.Contains(err.Error(), "2080") {
		t.Errorf("have: %v\nwant: no worker id, naming 2080", err)
	}
}

// Callers that meet the limit together share one question and its answer.
func TestRenewIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
		s := &slowStore{Store: m.Open(), delay: time.Second}
		a, err := workerid.NewAssigner(s, workerid.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		l := mustAcquire(t, a, 0)
		m.SetAway(errors.New("away"))
		before, start := s.calls(), time.Now()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := l.Renew(t.Context(), l.Limit()); !errors.Is(err, spi.ErrStore) {
					t.Errorf("have: %v\nwant: spi.ErrStore", err)
				}
			})
		}
		wg.Wait()
		if n, took := s.calls()-before, time.Since(start); n > 2 || took > 3*time.Second {
			t.Errorf("50 callers\nhave: %d calls in %v\nwant: one or two calls", n, took)
		}
	})
}

// A store that never answers does not hold a caller for ever.
func TestStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{Store: new(workeridtest.Memory).Open(), delay: 1000 * time.Hour}
		a, err := workerid.NewAssigner(s, workerid.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		start := time.Now()
		_, err = a.AcquireWorkerID(context.Background(), 0)
		if took := time.Since(start); !errors.Is(err, spi.ErrStore) || took > 10*time.Second {
			t.Errorf("have: %v after %v\nwant: spi.ErrStore in 10s", err, took)
		}
	})
}

func TestContextEndsWhileWaitingForARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{Store: new(workeridtest.Memory).Open()}
		a, err := workerid.NewAssigner(s, workerid.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		l := mustAcquire(t, a, 0)
		s.set(1000 * time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				start := time.Now()
				if err := l.Renew(ctx, l.Limit()); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Millisecond {
					t.Errorf("have: %v after %v\nwant: the context's error at once", err, time.Since(start))
				}
			})
		}
		wg.Wait()
		s.set(0)
	})
}

func TestLogsOnceWhenRenewalsBeginToFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
		var log bytes.Buffer
		a, err := workerid.NewAssigner(m.Open(), workerid.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		mustAcquire(t, a, 0)
		m.SetAway(errors.New("away"))
		time.Sleep(time.Minute)
		m.SetAway(nil)
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "could not be renewed"); n != 1 {
			t.Errorf("lines\nhave: %d\nwant: 1\n%s", n, log.String())
		}
	})
}

// slowStore answers late.
type slowStore struct {
	workerid.Store
	mu    sync.Mutex
	delay time.Duration
	n     int
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

func (s *slowStore) List(ctx context.Context) ([]workerid.Entry, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.Store.List(ctx)
}

func (s *slowStore) Get(ctx context.Context, id int64) (workerid.Record, error) {
	if err := s.wait(ctx); err != nil {
		return workerid.Record{}, err
	}
	return s.Store.Get(ctx, id)
}

func (s *slowStore) CompareAndSet(ctx context.Context, id int64, prev, next workerid.Record) (bool, error) {
	if err := s.wait(ctx); err != nil {
		return false, err
	}
	return s.Store.CompareAndSet(ctx, id, prev, next)
}

// A clock that nobody has set writes nothing.
func TestClockUnset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(shiftedClock)
		clock.set(-30 * 365 * 24 * time.Hour)
		var wrong *workerid.ClockError
		if _, err := newAssigner(t, new(workeridtest.Memory), clock).AcquireWorkerID(t.Context(), 9); !errors.As(err, &wrong) {
			t.Errorf("have: %v\nwant: a ClockError", err)
		}
	})
}

// A layout with billions of worker ids is no different.
func TestVeryManyWorkerIDs(t *testing.T) {
	a := newAssigner(t, new(workeridtest.Memory), nil)
	for want := range int64(300) {
		if l := mustAcquire(t, a, 1<<40); l.WorkerID() != want {
			t.Fatalf("have: worker id %d\nwant: %d", l.WorkerID(), want)
		}
	}
}

// Many that start at once all get one, each its own.
func TestManyStartAtOnce(t *testing.T) {
	m := new(workeridtest.Memory)
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for range 64 {
		a := newAssigner(t, m, nil)
		wg.Go(func() {
			l, err := a.AcquireWorkerID(t.Context(), 63)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case seen[l.WorkerID()]:
				t.Errorf("worker id %d twice", l.WorkerID())
			default:
				seen[l.WorkerID()] = true
			}
		})
	}
	wg.Wait()
}

// Closing in the middle of a renewal is not the store's failure.
func TestCloseDuringARenewalIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{Store: new(workeridtest.Memory).Open()}
		var log bytes.Buffer
		a, err := workerid.NewAssigner(s, workerid.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		mustAcquire(t, a, 0)
		s.set(time.Second)
		time.Sleep(3500 * time.Millisecond) // in the middle
		s.set(0)
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if log.Len() > 0 {
			t.Errorf("logged: %s", log.String())
		}
	})
}
