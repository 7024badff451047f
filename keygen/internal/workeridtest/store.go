// Package workeridtest holds the test that every workerid.Store must pass.
package workeridtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardkey/shardkey/keygen/workerid"
)

// TestStore checks a store against what the lease needs of it. open returns a
// new Store on an empty namespace at its first call, and another Store on the
// same namespace at each further call, as other processes would have; TestStore
// closes them.
//
//	workeridtest.TestStore(t, func(t testing.TB) func() workerid.Store {
//		dir := t.TempDir()
//		return func() workerid.Store { return workerid.NewFileStore(dir, "orders") }
//	})
func TestStore(t *testing.T, namespace func(t testing.TB) (open func() workerid.Store)) {
	for name, test := range map[string]func(*testing.T, func() workerid.Store){
		"empty":            testEmpty,
		"create once":      testCreateOnce,
		"compare":          testCompare,
		"fields":           testFields,
		"list":             testList,
		"ids are apart":    testApart,
		"one of many wins": testRace,
		"cancelled":        testCancelled,
		"close twice":      testClose,
	} {
		t.Run(name, func(t *testing.T) {
			fresh := namespace(t)
			test(t, func() workerid.Store {
				s := fresh()
				t.Cleanup(func() { _ = s.Close() })
				return s
			})
		})
	}
}

// untilMS is a plausible time; 41 bits and more must survive the store.
const untilMS = int64(1_790_000_000_123)

func record(owner string, until int64) workerid.Record {
	return workerid.Record{Owner: owner, ReservedUntil: until, Holder: "host-1 pid 4711", Since: until - 10_000}
}

func testEmpty(t *testing.T, open func() workerid.Store) {
	s := open()
	wantRecord(t, s, 0, workerid.Record{})
	wantRecord(t, s, 1023, workerid.Record{})
	entries, err := s.List(t.Context())
	if err != nil || len(entries) != 0 {
		t.Fatalf("List of an empty namespace\nhave: %v, %v\nwant: none", entries, err)
	}
	if s.Describe() == "" {
		t.Error("Describe is empty")
	}
}

func testCreateOnce(t *testing.T, open func() workerid.Store) {
	a, b := open(), open()
	mustSwap(t, a, 7, workerid.Record{}, record("a1", untilMS))
	mustNotSwap(t, b, 7, workerid.Record{}, record("b1", untilMS+5))
	wantRecord(t, b, 7, record("a1", untilMS))
}

func testCompare(t *testing.T, open func() workerid.Store) {
	a, b := open(), open()
	mustNotSwap(t, a, 7, record("nobody", untilMS), record("a0", untilMS)) // nothing there
	wantRecord(t, a, 7, workerid.Record{})
	mustSwap(t, a, 7, workerid.Record{}, record("a1", untilMS))
	mustSwap(t, b, 7, record("a1", untilMS), record("b1", untilMS+10))
	for _, stale := range []workerid.Record{
		record("a1", untilMS), record("b1", untilMS), record("b1", untilMS+11),
		record("a1", untilMS+10), record("B1", untilMS+10), record("b1 ", untilMS+10), record("", untilMS+10),
	} {
		mustNotSwap(t, a, 7, stale, record("a2", untilMS+99))
	}
	wantRecord(t, a, 7, record("b1", untilMS+10))
	mustSwap(t, a, 7, record("b1", untilMS+10), record("b2", untilMS+10)) // the owner alone may change
}

func testFields(t *testing.T, open func() workerid.Store) {
	a, b := open(), open()
	r := record("a1", untilMS)
	mustSwap(t, a, 3, workerid.Record{}, r)
	r2 := workerid.Record{Owner: "0123456789abcdef0123456789abcdef", ReservedUntil: 1<<53 + 1, FreeFrom: untilMS - 7,
		Holder: `höst "x"\ 'y' pid 1`, Since: untilMS}
	mustSwap(t, a, 3, r, r2)
	wantRecord(t, b, 3, r2)
	r3 := r2
	r3.Owner, r3.FreeFrom = "back", 0 // a zero must replace what was there
	mustSwap(t, b, 3, r2, r3)
	wantRecord(t, a, 3, r3)
}

func testList(t *testing.T, open func() workerid.Store) {
	a, b := open(), open()
	want := map[int64]workerid.Record{}
	for _, id := range []int64{0, 1, 9, 10, 511, 1023, 4095} {
		want[id] = record(fmt.Sprintf("owner-%d", id), untilMS+id)
		mustSwap(t, a, id, workerid.Record{}, want[id])
	}
	entries, err := b.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Err != nil || e.Record != want[e.WorkerID] {
			t.Errorf("List of %d\nhave: %+v, %v\nwant: %+v", e.WorkerID, e.Record, e.Err, want[e.WorkerID])
		}
		delete(want, e.WorkerID)
	}
	if len(want) != 0 {
		t.Errorf("List misses %v", want)
	}
}

func testApart(t *testing.T, open func() workerid.Store) {
	a := open()
	mustSwap(t, a, 1, workerid.Record{}, record("one", untilMS))
	wantRecord(t, a, 11, workerid.Record{})
	mustSwap(t, a, 11, workerid.Record{}, record("eleven", untilMS))
	wantRecord(t, a, 1, record("one", untilMS))
}

// testRace lets many goroutines on several stores swap from one record: in each
// round exactly one may win, and the record must be the winner's.
func testRace(t *testing.T, open func() workerid.Store) {
	stores := []workerid.Store{open(), open(), open()}
	prev := workerid.Record{}
	for round := range 10 {
		var wins atomic.Int32
		var winner atomic.Pointer[workerid.Record]
		var wg sync.WaitGroup
		for i := range 9 {
			wg.Go(func() {
				next := record(fmt.Sprintf("r%d-g%d", round, i), untilMS+int64(round))
				// A store may say "not now" (false) when many press; the round
				// is decided once somebody has won.
				for wins.Load() == 0 {
					ok, err := stores[i%len(stores)].CompareAndSet(t.Context(), 5, prev, next)
					if err != nil {
						t.Errorf("CompareAndSet: %v", err)
						return
					}
					if ok {
						wins.Add(1)
						winner.Store(&next)
					}
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		if n := wins.Load(); n != 1 {
			t.Fatalf("round %d: winners\nhave: %d\nwant: 1", round, n)
		}
		prev = *winner.Load()
		wantRecord(t, stores[0], 5, prev)
	}
}

func testCancelled(t *testing.T, open func() workerid.Store) {
	s := open()
	mustSwap(t, s, 2, workerid.Record{}, record("a1", untilMS))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Get(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("Get with an ended context\nhave: %v\nwant: context.Canceled", err)
	}
	if _, err := s.List(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("List with an ended context\nhave: %v\nwant: context.Canceled", err)
	}
	if ok, err := s.CompareAndSet(ctx, 2, record("a1", untilMS), record("a2", untilMS)); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("CompareAndSet with an ended context\nhave: %v, %v\nwant: false, context.Canceled", ok, err)
	}
}

func testClose(t *testing.T, open func() workerid.Store) {
	used, unused := open(), open()
	mustSwap(t, used, 2, workerid.Record{}, record("a1", untilMS))
	for _, s := range []workerid.Store{used, unused} {
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
	}
	if _, err := used.Get(t.Context(), 2); err == nil {
		t.Error("Get after Close\nhave: no error\nwant: one")
	}
}

func mustSwap(t *testing.T, s workerid.Store, id int64, prev, next workerid.Record) {
	t.Helper()
	if ok, err := s.CompareAndSet(t.Context(), id, prev, next); !ok || err != nil {
		t.Fatalf("CompareAndSet(%d, %q, %q)\nhave: %v, %v\nwant: true", id, prev.Owner, next.Owner, ok, err)
	}
}

func mustNotSwap(t *testing.T, s workerid.Store, id int64, prev, next workerid.Record) {
	t.Helper()
	if ok, err := s.CompareAndSet(t.Context(), id, prev, next); ok || err != nil {
		t.Fatalf("CompareAndSet(%d, %q, %q)\nhave: %v, %v\nwant: false", id, prev.Owner, next.Owner, ok, err)
	}
}

func wantRecord(t *testing.T, s workerid.Store, id int64, want workerid.Record) {
	t.Helper()
	if have, err := s.Get(t.Context(), id); err != nil || have != want {
		t.Fatalf("Get(%d)\nhave: %+v, %v\nwant: %+v", id, have, err, want)
	}
}
