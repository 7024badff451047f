package workerid

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// replicated is a store whose server can be replaced by an asynchronous replica.
type replicated struct {
	Store
	server *atomic.Pointer[replica]
}

type replica struct {
	name         string
	store, notes Store
}

func (r replicated) List(ctx context.Context) ([]Entry, error) {
	return r.server.Load().store.List(ctx)
}
func (r replicated) Get(ctx context.Context, id int64) (Record, error) {
	return r.server.Load().store.Get(ctx, id)
}
func (r replicated) CompareAndSet(ctx context.Context, id int64, prev, next Record) (bool, error) {
	return r.server.Load().store.CompareAndSet(ctx, id, prev, next)
}
func (r replicated) Notes() Store                             { return r.server.Load().notes }
func (r replicated) ServerID(context.Context) (string, error) { return r.server.Load().name, nil }
func (r replicated) Describe() string                         { return "REPLICATED" }
func (r replicated) Close() error                             { return nil }

// A replica without the last writes becomes the server. Those that have worker ids which
// it knows nothing of go on until their next renewal; those that take them now begin
// after that.
func TestAssigner_failoverThatForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 4
		var server atomic.Pointer[replica]
		first, second := t.TempDir(), t.TempDir()
		server.Store(&replica{"first", newFileStore(first, "orders"), newFileStore(first, "notes")})
		process := func() *assigner { return newAssigner(replicated{server: &server}, config{}) }
		lease := func(a *assigner) *lease {
			t.Helper()
			l, err := a.acquire(t.Context(), workers-1)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		known := process() // by both servers
		defer known.Close()
		lease(known)
		time.Sleep(20 * time.Second)
		if err := os.CopyFS(second, os.DirFS(first)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12 * time.Second) // the replica is behind by that
		var old []*oldLease
		for range workers - 1 {
			a := process()
			defer a.Close()
			old = append(old, &oldLease{a, lease(a)})
		}
		time.Sleep(time.Second)
		limits := map[int64]int64{}
		for _, o := range old {
			if w := o.assigner.Health().Warnings; len(w) > 0 {
				t.Errorf("warnings before the failover: %q", w)
			}
			limits[o.lease.workerID] = o.lease.Limit()
		}
		server.Store(&replica{"second", newFileStore(second, "orders"), newFileStore(second, "notes")})
		taken := 0
		for range workers - 1 {
			a := process()
			defer a.Close()
			l := lease(a)
			if limit, ok := limits[l.workerID]; ok {
				taken++
				if l.Floor() < limit {
					t.Errorf("worker id %d: the new lease begins at %s\nwant: not before the old one's limit, %s", l.workerID, formatTime(l.Floor()), formatTime(limit))
				}
			}
			w := strings.Join(a.Health().Warnings, "\n")
			for _, want := range []string{"was replaced", "begin 20s after that", "clocks agree within 10s", "no process still reaches the server before"} {
				if !strings.Contains(w, want) {
					t.Errorf("warnings after the failover\nhave: %q\nwant: %q", w, want)
				}
			}
		}
		if taken == 0 {
			t.Error("no worker id of those that the replica knows nothing of was taken: the test shows nothing")
		}
		time.Sleep(4 * time.Second)
		for _, o := range old {
			if o.lease.Limit() != noLimit {
				if _, ok := limits[o.lease.workerID]; ok && o.lease.endedBy() == nil {
					continue // nobody had taken it yet
				}
				t.Errorf("worker id %d: the old lease goes on after a renewal, to %s", o.lease.workerID, formatTime(o.lease.Limit()))
			}
		}
		time.Sleep(time.Minute)
		late := process()
		defer late.Close()
		for _, o := range old {
			_ = o.assigner.Close()
		}
		l := lease(late)
		if ahead := l.Floor() - late.now(); ahead > 0 {
			t.Errorf("a minute later a lease begins %d ms ahead", ahead)
		}
		if w := late.Health().Warnings; len(w) > 0 {
			t.Errorf("warnings a minute later: %q", w)
		}
	})
}

type oldLease struct {
	assigner *assigner
	lease    *lease
}

// With quarantine every lease begins later, whatever the store says of its server.
func TestAssigner_quarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAssigner(newFileStore(t.TempDir(), "orders"), config{Quarantine: 30 * time.Second})
		defer a.Close()
		l, err := a.acquire(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		if ahead := l.Floor() - a.now(); ahead != 30_000 {
			t.Errorf("the lease begins %d ms ahead\nwant: 30000", ahead)
		}
	})
}
