package workerid_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

var errPanic = errors.New("the store's own panic")

// panickyStore is a store whose methods panic while it is told to.
type panickyStore struct {
	workerid.Hooked
	on atomic.Bool
}

func newPanickyStore() *panickyStore {
	s := new(panickyStore)
	s.Hooked = workerid.Hooked{Store: new(workeridtest.Memory).Open(), Before: s.check}
	return s
}

func (s *panickyStore) check(context.Context) error {
	if s.on.Load() {
		panic(errPanic)
	}
	return nil
}

func (s *panickyStore) Close() error { return errors.Join(s.check(nil), s.Store.Close()) }

// fromProps opens an assigner as a program's own factory does.
func fromProps(t *testing.T, store workerid.Store, host spi.Host) (spi.WorkerIDAssigner, error) {
	t.Helper()
	p, err := spi.NewProps(nil, host)
	if err != nil {
		t.Fatal(err)
	}
	return workerid.NewAssigner(p, func(string) (workerid.Store, workerid.Info, error) {
		return store, workerid.Info{Name: "PANICKY"}, nil
	})
}

// A store that panics is one that is away: the renewal in the background tries
// again, and the limit stays where it certainly is.
func TestStore_panics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPanickyStore()
		a, err := fromProps(t, s, spi.Host{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := a.AcquireWorkerID(t.Context(), 7)
		if err != nil {
			t.Fatal(err)
		}
		limit := l.Limit()
		s.on.Store(true)
		time.Sleep(time.Hour)
		wantMS(t, "limit", l.Limit(), limit)
		if err := a.(spi.HealthReporter).Health().Err; !errors.Is(err, errPanic) {
			t.Errorf("health\nhave: %v\nwant: the panic", err)
		}
		if err := l.Renew(t.Context(), time.Now().UnixMilli()); !errors.Is(err, errPanic) {
			t.Errorf("Renew\nhave: %v\nwant: the panic", err)
		}
		if _, err := a.AcquireWorkerID(t.Context(), 7); !errors.Is(err, errPanic) {
			t.Errorf("AcquireWorkerID\nhave: %v\nwant: the panic", err)
		}
		s.on.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if l.Limit() <= time.Now().UnixMilli() {
			t.Error("the renewal did not go on")
		}
		s.on.Store(true)
		if err := l.Release(t.Context(), 0); !errors.Is(err, errPanic) {
			t.Errorf("Release\nhave: %v\nwant: the panic", err)
		}
		if err := a.(interface{ Close() error }).Close(); !errors.Is(err, errPanic) {
			t.Errorf("Close\nhave: %v\nwant: the panic", err)
		}
	})
}

type panickyClock struct{ on atomic.Bool }

func (c *panickyClock) Now() time.Time {
	if c.on.Load() {
		panic(errPanic)
	}
	return time.Now()
}

func (c *panickyClock) Sleep(ctx context.Context, d time.Duration) error {
	c.Now()
	return spi.SystemClock.Sleep(ctx, d)
}

type panickyHandler struct{ slog.Handler }

func (panickyHandler) Handle(context.Context, slog.Record) error { panic(errPanic) }

// A clock or a logger that panics ends no goroutine of ours.
func TestClockAndLogger_panic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(panickyClock)
		m := new(workeridtest.Memory).Open()
		a, err := fromProps(t, m, spi.Host{Clock: clock, Logger: slog.New(panickyHandler{slog.DiscardHandler})})
		if err != nil {
			t.Fatal(err)
		}
		l, err := a.AcquireWorkerID(t.Context(), 7)
		if err != nil {
			t.Fatal(err)
		}
		clock.on.Store(true)
		time.Sleep(time.Hour)
		if _, err := a.AcquireWorkerID(t.Context(), 7); err == nil {
			t.Error("a worker id was leased by a clock that panics")
		}
		if err := errors.Join(l.Release(t.Context(), 0), a.(interface{ Close() error }).Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestNewAssigner_noStore(t *testing.T) {
	if a, err := fromProps(t, nil, spi.Host{}); err == nil {
		t.Errorf("\nhave: %v\nwant: an error", a)
	}
}
