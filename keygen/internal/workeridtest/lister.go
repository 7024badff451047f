package workeridtest

import (
	"io"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

// TestLister has an assigner list what another leases and gives back. open opens an
// assigner, as a process of its own would, on a store and a namespace that nobody
// has used; clock says that the store has a clock which can be read.
func TestLister(t *testing.T, clock bool, open func() spi.WorkerIDAssigner) {
	t.Helper()
	looker, holder := open(), open()
	defer closeAssigner(t, looker)
	if list := mustList(t, looker); len(list.List) > 0 || list.Max != -1 || list.Store == "" || (list.ClockAhead != nil) != clock {
		t.Fatalf("a store that nobody has used\nhave: %+v\nwant: its name, and a clock: %v", list, clock)
	}
	lease, err := holder.AcquireWorkerID(t.Context(), 1023)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // to look takes nothing
		list := mustList(t, looker)
		if len(list.List) != 1 {
			t.Fatalf("have: %+v\nwant: the worker id that is held", list)
		}
		id := list.List[0]
		if id.ID != lease.WorkerID() || id.State != "held" || !strings.Contains(id.Holder, " pid ") || id.Since.IsZero() ||
			id.ReservedUntil.UnixMilli() < lease.Limit() || !id.FreeFrom.IsZero() || id.Err != nil {
			t.Errorf("have: %+v\nwant: worker id %d held until %d or later", id, lease.WorkerID(), lease.Limit())
		}
	}
	closeAssigner(t, holder)
	if list := mustList(t, looker); len(list.List) != 1 || list.List[0].State != "free" || list.List[0].FreeFrom.IsZero() {
		t.Errorf("given back\nhave: %+v\nwant: free", list)
	}
}

func mustList(t *testing.T, a spi.WorkerIDAssigner) spi.WorkerIDs {
	t.Helper()
	lister, ok := a.(spi.WorkerIDLister)
	if !ok {
		t.Fatalf("%T does not list worker ids", a)
	}
	list, err := lister.ListWorkerIDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func closeAssigner(t *testing.T, a spi.WorkerIDAssigner) {
	t.Helper()
	if err := a.(io.Closer).Close(); err != nil {
		t.Error(err)
	}
}
