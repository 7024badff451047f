// Package workeridtest tests implementations of [workerid.Store].
package workeridtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

// Namespace is an empty namespace of the store under test.
type Namespace struct {
	// Open returns a new Store for the namespace at each call, as in another process. TestStore
	// closes it.
	Open func() (workerid.Store, workerid.Info)

	// PutForeign stores something that isn't a record in the place of a worker ID's record. If it
	// is nil, the test of foreign records is skipped.
	PutForeign func(workerID int64)

	// LoseAnswer makes the server apply the next write and lose its answer, for example by
	// closing the connection. If it is nil, the test of lost answers is skipped.
	LoseAnswer func()
}

// TestStore tests that a store does what leases need. It calls namespace once in each subtest.
//
//	func TestStore(t *testing.T) {
//		workeridtest.TestStore(t, func(t testing.TB) workeridtest.Namespace {
//			prefix := fmt.Sprintf("test-%d-", rand.Int64())
//			return workeridtest.Namespace{
//				Open: func() (workerid.Store, workerid.Info) {
//					return newStore(addr, prefix), workerid.Info{Name: "MINE " + addr}
//				},
//			}
//		})
//	}
//
// It can't test that a write survives a crash of the server.
func TestStore(t *testing.T, namespace func(t testing.TB) Namespace) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, namespace(t)) })
	}
}

var tests = []struct {
	name string
	run  func(testing.TB, Namespace)
}{
	{"create once", testCreateOnce},
	{"compare", testCompare},
	{"fields", testFields},
	{"list", testList},
	{"one of many wins", testRace},
	{"foreign records", testForeign},
	{"lost answer", testLostAnswer},
	{"cancelled", testCancelled},
	{"close twice", testClose},
	{"info", testInfo},
	{"leases", testLeases},
}

// open returns a store that is closed at the end of the test.
func (n Namespace) open(t testing.TB) workerid.Store {
	s, _ := n.Open()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// untilMS is a realistic time. The store must preserve more than 41 bits.
const untilMS = int64(1_790_000_000_123)

func record(owner string, until int64) workerid.Record {
	return workerid.Record{Owner: owner, ReservedUntil: until, Holder: "host-1 pid 4711", Since: until - 10_000}
}

func testCreateOnce(t testing.TB, n Namespace) {
	a, b := n.open(t), n.open(t)
	swap(t, a, 7, workerid.Record{}, record("a1", untilMS), true)
	swap(t, b, 7, workerid.Record{}, record("b1", untilMS+5), false)
	wantRecord(t, b, 7, record("a1", untilMS))
}

func testCompare(t testing.TB, n Namespace) {
	a, b := n.open(t), n.open(t)
	swap(t, a, 7, record("nobody", untilMS), record("a0", untilMS), false) // there is no record
	wantRecord(t, a, 7, workerid.Record{})
	swap(t, a, 7, workerid.Record{}, record("a1", untilMS), true)
	swap(t, b, 7, record("a1", untilMS), record("b1", untilMS+10), true)
	for _, stale := range []workerid.Record{
		record("a1", untilMS), record("b1", untilMS), record("b1", untilMS+11),
		record("a1", untilMS+10), record("B1", untilMS+10), record("b1 ", untilMS+10), record("", untilMS+10),
	} {
		swap(t, a, 7, stale, record("a2", untilMS+99), false)
	}
	wantRecord(t, a, 7, record("b1", untilMS+10))
	swap(t, a, 7, record("b1", untilMS+10), record("b2", untilMS+10), true) // only the owner may change it
}

func testFields(t testing.TB, n Namespace) {
	a, b := n.open(t), n.open(t)
	r := record("a1", untilMS)
	swap(t, a, 3, workerid.Record{}, r, true)
	r2 := workerid.Record{
		Owner: "0123456789abcdef0123456789abcdef", ReservedUntil: 1<<53 + 1, FreeFrom: untilMS - 7,
		Holder: `höst "x"\ 'y' pid 1`, Since: untilMS,
	}
	swap(t, a, 3, r, r2, true)
	wantRecord(t, b, 3, r2)
	r3 := r2
	r3.Owner, r3.FreeFrom = "back", 0 // a zero must replace the old value
	swap(t, b, 3, r2, r3, true)
	wantRecord(t, a, 3, r3)
}

// testList lists an empty namespace, several worker IDs, and the same ones after all stores were
// closed.
func testList(t testing.TB, n Namespace) {
	a, b := n.open(t), n.open(t)
	wantList(t, b, nil)
	wantRecord(t, b, 1023, workerid.Record{})
	want := map[int64]workerid.Record{}
	for _, id := range []int64{0, 1, 9, 10, 511, 1023, 4095} {
		first := record(fmt.Sprintf("owner-%d", id), untilMS)
		want[id] = record(fmt.Sprintf("owner-%d again", id), untilMS+id)
		swap(t, a, id, workerid.Record{}, first, true)
		swap(t, b, id, first, want[id], true)
	}
	wantList(t, b, want)
	for _, s := range []workerid.Store{a, b} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	again := n.open(t)
	wantList(t, again, want)
	for id, r := range want {
		wantRecord(t, again, id, r)
	}
	wantRecord(t, again, 11, workerid.Record{}) // only parts of its number are in use
}

// mostSwaps limits the attempts of each goroutine in a round.
const mostSwaps = 1000

// testRace makes many goroutines on several stores replace the same record. In each round, exactly
// one may succeed, and the record must be its record.
func testRace(t testing.TB, n Namespace) {
	stores := []workerid.Store{n.open(t), n.open(t), n.open(t)}
	prev := workerid.Record{}
	for round := range 10 {
		var wins atomic.Int32
		var winner atomic.Pointer[workerid.Record]
		var wg sync.WaitGroup
		for i := range 9 {
			wg.Go(func() {
				next := record(fmt.Sprintf("r%d-g%d", round, i), untilMS+int64(round))
				// Under load, a store may return false for "not now". The round is decided when one
				// goroutine has succeeded.
				for range mostSwaps {
					if wins.Load() > 0 {
						return
					}
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

// testForeign stores something else in the place of a record. The store must report it and leave it
// unchanged.
func testForeign(t testing.TB, n Namespace) {
	if n.PutForeign == nil {
		t.Skip("the namespace has no PutForeign")
	}
	s := n.open(t)
	swap(t, s, 1, workerid.Record{}, record("a1", untilMS), true)
	n.PutForeign(4)
	for range 2 { // the second time after the attempts to replace it
		if r, err := s.Get(t.Context(), 4); !isForeign(err, 4) || !r.IsZero() {
			t.Errorf("Get of a foreign record\nhave: %+v, %v\nwant: a *ForeignRecordError of worker ID 4", r, err)
		}
		entries, err := s.List(t.Context())
		if err != nil || len(entries) != 2 {
			t.Fatalf("List with a foreign record\nhave: %v, %v\nwant: worker IDs 1 and 4", entries, err)
		}
		for _, e := range entries {
			if isForeign(e.Err, 4) != (e.WorkerID == 4) {
				t.Errorf("List of %d\nhave: %v\nwant: a *ForeignRecordError of worker ID 4 alone", e.WorkerID, e.Err)
			}
		}
		for _, prev := range []workerid.Record{{}, record("a1", untilMS)} {
			ok, err := s.CompareAndSet(t.Context(), 4, prev, record("a2", untilMS))
			if ok || err != nil && !isForeign(err, 4) {
				t.Errorf("CompareAndSet on a foreign record\nhave: %v, %v\nwant: false, or a *ForeignRecordError", ok, err)
			}
		}
	}
}

func isForeign(err error, workerID int64) bool {
	var foreign *workerid.ForeignRecordError
	return errors.As(err, &foreign) && foreign.WorkerID == workerID
}

// testLostAnswer loses the answers of a write that creates a record and of a write that replaces
// it. If a write was applied, the store must not report that its comparison failed.
func testLostAnswer(t testing.TB, n Namespace) {
	if n.LoseAnswer == nil {
		t.Skip("the namespace has no LoseAnswer")
	}
	s := n.open(t)
	prev := workerid.Record{}
	for i, owner := range []string{"a1", "a2"} {
		next := record(owner, untilMS+int64(i))
		n.LoseAnswer()
		ok, err := s.CompareAndSet(t.Context(), 2, prev, next)
		if !ok && err == nil {
			t.Fatalf("CompareAndSet that was applied, without its answer\nhave: false\nwant: an error")
		}
		wantRecord(t, s, 2, next)
		prev = next
	}
	swap(t, s, 2, prev, record("a3", untilMS+9), true)
}

func testCancelled(t testing.TB, n Namespace) {
	s := n.open(t)
	swap(t, s, 2, workerid.Record{}, record("a1", untilMS), true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Get(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("Get with an ended context\nhave: %v\nwant: context.Canceled", err)
	}
	if _, err := s.List(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("List with an ended context\nhave: %v\nwant: context.Canceled", err)
	}
	ok, err := s.CompareAndSet(ctx, 2, record("a1", untilMS), record("a2", untilMS))
	if ok || !errors.Is(err, context.Canceled) {
		t.Errorf("CompareAndSet with an ended context\nhave: %v, %v\nwant: false, context.Canceled", ok, err)
	}
}

func testClose(t testing.TB, n Namespace) {
	used, unused := n.open(t), n.open(t)
	swap(t, used, 2, workerid.Record{}, record("a1", untilMS), true)
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

func testInfo(t testing.TB, n Namespace) {
	s, info := n.Open()
	defer s.Close()
	if info.Name == "" || strings.Contains(info.Name, "\n") {
		t.Errorf("Name\nhave: %q\nwant: one line", info.Name)
	}
	if info.Now != nil {
		if now, err := info.Now(t.Context()); err != nil || !now.IsZero() && now.Year() < 1990 {
			t.Errorf("Now\nhave: %v, %v\nwant: the store's time", now, err)
		}
	}
	if info.Warnings != nil {
		if _, err := info.Warnings(t.Context()); err != nil {
			t.Errorf("Warnings: %v", err)
		}
	}
	if info.WorkerIDs != nil {
		if ids, err := info.WorkerIDs(t.Context(), 1023); err != nil || len(ids) == 0 {
			t.Errorf("WorkerIDs\nhave: %v, %v\nwant: one or more", ids, err)
		}
	}
}

// testLeases leases a worker ID with an assigner of the store, and lists it with other ones. Then
// it leases worker IDs as several processes do.
func testLeases(t testing.TB, n Namespace) {
	holder := n.assigner(t)
	wantWorkerID(t, n.assigner(t), nil, "")
	lease, err := holder.AcquireWorkerID(t.Context(), 1023)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // listing must change nothing
		wantWorkerID(t, n.assigner(t), lease, "held")
	}
	if err := lease.Renew(t.Context(), lease.Limit()); err != nil {
		t.Errorf("Renew: %v", err)
	}
	if err := holder.(io.Closer).Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	wantWorkerID(t, n.assigner(t), lease, "free")
	s, info := n.Open()
	if _ = s.Close(); info.WorkerIDs != nil {
		return // the store assigns worker IDs itself
	}
	seen := map[int64]bool{}
	for range 3 {
		lease, err := n.assigner(t).AcquireWorkerID(t.Context(), 1023)
		if err != nil {
			t.Fatal(err)
		}
		if seen[lease.WorkerID()] {
			t.Errorf("worker ID %d was leased twice", lease.WorkerID())
		}
		seen[lease.WorkerID()] = true
	}
}

func (n Namespace) assigner(t testing.TB) spi.WorkerIDAssigner {
	t.Helper()
	patient := map[string]any{"lease": "1h", "renew": "30m"} // a busy store may take as long for an operation
	props, err := spi.NewProps(patient, spi.Host{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := workerid.NewAssigner(props, func(string) (workerid.Store, workerid.Info, error) {
		s, info := n.Open()
		return s, info, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.(io.Closer).Close() })
	return a
}

// wantWorkerID checks that an assigner lists the worker ID of a lease, or no worker ID.
func wantWorkerID(t testing.TB, a spi.WorkerIDAssigner, lease spi.WorkerIDLease, state string) {
	t.Helper()
	list, err := a.(spi.WorkerIDLister).ListWorkerIDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if list.Store == "" || list.ClockAhead != nil && list.ClockAhead.Abs() > time.Hour {
		t.Errorf("list\nhave: store %q, clock ahead %v\nwant: a name, and a clock that is right", list.Store, list.ClockAhead)
	}
	if lease == nil {
		if len(list.List) != 0 {
			t.Errorf("list of an empty namespace\nhave: %+v\nwant: none", list.List)
		}
		return
	}
	if len(list.List) != 1 {
		t.Fatalf("list\nhave: %+v\nwant: worker ID %d", list.List, lease.WorkerID())
	}
	id := list.List[0]
	if id.ID != lease.WorkerID() || id.State != state || !strings.Contains(id.Holder, " pid ") || id.Since.IsZero() ||
		id.ReservedUntil.UnixMilli() < lease.Limit() || id.FreeFrom.IsZero() == (state == "free") || id.Err != nil {
		t.Errorf("list\nhave: %+v\nwant: worker ID %d, %s, with its holder and times", id, lease.WorkerID(), state)
	}
}

// swap replaces a record, which must succeed or not.
func swap(t testing.TB, s workerid.Store, id int64, prev, next workerid.Record, want bool) {
	t.Helper()
	if ok, err := s.CompareAndSet(t.Context(), id, prev, next); ok != want || err != nil {
		t.Fatalf("CompareAndSet(%d, %q, %q)\nhave: %v, %v\nwant: %v", id, prev.Owner, next.Owner, ok, err, want)
	}
}

func wantRecord(t testing.TB, s workerid.Store, id int64, want workerid.Record) {
	t.Helper()
	if have, err := s.Get(t.Context(), id); err != nil || have != want {
		t.Fatalf("Get(%d)\nhave: %+v, %v\nwant: %+v", id, have, err, want)
	}
}

func wantList(t testing.TB, s workerid.Store, want map[int64]workerid.Record) {
	t.Helper()
	entries, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]bool{}
	for _, e := range entries {
		if r, ok := want[e.WorkerID]; !ok || seen[e.WorkerID] || e.Err != nil || e.Record != r {
			t.Errorf("List of %d\nhave: %+v, %v\nwant: %+v, once", e.WorkerID, e.Record, e.Err, r)
		}
		seen[e.WorkerID] = true
	}
	if len(seen) != len(want) {
		t.Errorf("List\nhave: %d worker IDs\nwant: %d", len(seen), len(want))
	}
}
