package workerid_test

import (
	"context"
	"errors"
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

// A clock that stepped back needs no new reservation, but the lease still looks
// whether it stands.
func TestClock_backStillLooks(t *testing.T) {
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
func TestClock_decadesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, clock := new(workeridtest.Memory), new(shiftedClock)
		a, b := newAssigner(t, m, nil), newAssigner(t, m, clock)
		held := mustAcquire(t, b, 1023)
		clock.set(54 * 365 * 24 * time.Hour)
		var wrong *workerid.ClockError
		if err := held.Renew(t.Context(), clock.Now().UnixMilli()); !errors.As(err, &wrong) {
			t.Errorf("Renew\nhave: %v\nwant: a clockError", err)
		}
		if _, err := b.AcquireWorkerID(t.Context(), 1023); !errors.As(err, &wrong) || !errors.Is(err, spi.ErrStore) {
			t.Errorf("Acquire\nhave: %v\nwant: a clockError", err)
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
func TestClock_recordDecadesAhead(t *testing.T) {
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

// A clock that nobody has set writes nothing.
func TestClock_unset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(shiftedClock)
		clock.set(-30 * 365 * 24 * time.Hour)
		var wrong *workerid.ClockError
		if _, err := newAssigner(t, new(workeridtest.Memory), clock).AcquireWorkerID(t.Context(), 9); !errors.As(err, &wrong) {
			t.Errorf("have: %v\nwant: a clockError", err)
		}
	})
}
