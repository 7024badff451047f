package workerid_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

// newAssigner makes an assigner on the records, silent and closed at the end.
func newAssigner(t *testing.T, m *workeridtest.Memory, clock spi.Clock) *workerid.Assigner {
	t.Helper()
	a := workerid.Assign(t, m.Open(), workerid.Config{Clock: clock})
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

func TestAssigner_closeReleasesAndEndsTheBackground(t *testing.T) {
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

func TestAssigner_allTakenNamesTheHolders(t *testing.T) {
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

func TestAssigner_allTakenNamesThisProcess(t *testing.T) {
	m := new(workeridtest.Memory)
	mine, other := newAssigner(t, m, nil), newAssigner(t, m, nil)
	mustAcquire(t, mine, 2)
	released := mustAcquire(t, mine, 2)
	mustAcquire(t, mine, 2)
	if err := released.Release(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	// Another process takes the worker id that was given back.
	store := m.Open()
	entries, err := store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.WorkerID == released.WorkerID() {
			next := e.Record
			next.Owner, next.FreeFrom, next.Holder = "other", 0, "host-7 pid 1"
			next.ReservedUntil += time.Hour.Milliseconds()
			if ok, err := store.CompareAndSet(t.Context(), e.WorkerID, e.Record, next); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
	}
	_, err = other.AcquireWorkerID(t.Context(), 2)
	var none *workerid.NoWorkerIDError
	if !errors.As(err, &none) || !slices.Equal(none.Here, []int64{0, 2}) {
		t.Fatalf("have: %v\nwant: a NoWorkerIDError with 0 and 2 of this process", err)
	}
	if want := "; this very process holds 0, 2 (connectors that open the same rule share one)"; !strings.Contains(err.Error(), want) {
		t.Errorf("have: %v\nwant: %s", err, want)
	}
}

// A layout with billions of worker ids is no different.
func TestAssigner_veryManyWorkerIDs(t *testing.T) {
	a := newAssigner(t, new(workeridtest.Memory), nil)
	for want := range int64(300) {
		if l := mustAcquire(t, a, 1<<40); l.WorkerID() != want {
			t.Fatalf("have: worker id %d\nwant: %d", l.WorkerID(), want)
		}
	}
}

// Many that start at once all get one, each its own.
func TestAssigner_manyStartTogether(t *testing.T) {
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
