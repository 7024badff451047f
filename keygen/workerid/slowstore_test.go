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

// Callers that meet the limit together share one question and its answer.
func TestLease_renewIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
		s := newSlowStore(m.Open(), time.Second)
		a := workerid.Assign(t, s, workerid.Config{})
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
func TestLease_storeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(new(workeridtest.Memory).Open(), 1000*time.Hour)
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
		s := newSlowStore(new(workeridtest.Memory).Open(), 0)
		a := workerid.Assign(t, s, workerid.Config{})
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

// slowStore answers late.
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

// Closing in the middle of a renewal is not the store's failure.
func TestAssigner_closeDuringARenewalIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(new(workeridtest.Memory).Open(), 0)
		var log bytes.Buffer
		a := workerid.Assign(t, s, workerid.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		mustAcquire(t, a, 0)
		s.set(time.Second)
		time.Sleep(3500 * time.Millisecond) // in the middle
		s.set(0)
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if text := log.String(); strings.Contains(text, "WARN") || strings.Contains(text, "ERROR") {
			t.Errorf("logged: %s", log.String())
		}
	})
}
