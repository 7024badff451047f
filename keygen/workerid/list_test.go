package workerid_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/internal/test/memory"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

// shown is a store for display, whose List takes as long as took, or until its context ends.
type shown struct {
	workerid.Store
	took   time.Duration
	lists  atomic.Int64
	closed atomic.Bool
}

func (s *shown) List(ctx context.Context) ([]workerid.Entry, error) {
	s.lists.Add(1)
	if err := spi.SystemClock.Sleep(ctx, s.took); err != nil {
		return nil, err
	}
	return s.Store.List(ctx)
}

func (s *shown) Close() error {
	s.closed.Store(true)
	return s.Store.Close()
}

// displayed returns an assigner with a store for leases, and another one for display.
func displayed(t *testing.T, took time.Duration) (a spi.WorkerIDAssigner, leases, display *shown) {
	t.Helper()
	m := new(memory.Records)
	var opened []*shown
	a, err := workerid.NewAssigner(must.Get(spi.NewProps(nil, spi.Host{}))(t), func(string) (workerid.Store, workerid.Info, error) {
		s := &shown{Store: m.Open(), took: took * time.Duration(len(opened))}
		opened = append(opened, s)
		return s, workerid.Info{Name: "TEST"}, nil
	})
	must.Do(t, err)
	t.Cleanup(func() { _ = a.(io.Closer).Close() })
	must.Equal(t, len(opened), 2, "stores")
	return a, opened[0], opened[1]
}

// However many readers there are, and whether they wait for the answer, the records are read once in
// five seconds, with a store that leases don't use.
func TestList_readersShareAReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, leases, display := displayed(t, 2*time.Second)
		must.Get(a.AcquireWorkerID(t.Context(), 3))(t)
		atStart := leases.lists.Load()
		read := func(patience time.Duration, want error) {
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					list, err := a.(spi.WorkerIDLister).ListWorkerIDs(ctx)
					if !errors.Is(err, want) || want == nil && (err != nil || len(list.List) != 1) {
						t.Errorf("have: %+v, %v\nwant: %v", list, err, want)
					}
				})
			}
			all.Wait()
		}
		for i, step := range []struct {
			sleep, patience time.Duration
			want            error
			lists           int64
		}{
			{0, time.Second, context.DeadlineExceeded, 1},
			{0, time.Minute, nil, 1}, // the same reading, which nobody waited for
			{4 * time.Second, time.Millisecond, nil, 1},
			{2 * time.Second, time.Millisecond, context.DeadlineExceeded, 2},
			{3 * time.Second, time.Millisecond, nil, 2},
		} {
			time.Sleep(step.sleep)
			read(step.patience, step.want)
			must.Equal(t, display.lists.Load(), step.lists, "step", i)
		}
		must.Equal(t, leases.lists.Load(), atStart, "lists of the store of leases")
	})
}

// Close ends a reading and closes both stores. A panic of the store is an error.
func TestList_closes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, leases, display := displayed(t, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		must.Is(t, must.Err(a.(spi.WorkerIDLister).ListWorkerIDs(ctx)), context.Canceled)
		start := time.Now()
		must.Do(t, a.(io.Closer).Close())
		must.Equal(t, time.Since(start), 0, "waited")
		must.Equal(t, leases.closed.Load() && display.closed.Load(), true, "closed")
		time.Sleep(time.Minute)
		must.Is(t, must.Err(a.(spi.WorkerIDLister).ListWorkerIDs(t.Context())), spi.ErrClosed)
	})
}

// The list of SQL and FILE needs nothing of what renewals use.
func TestList_hasItsOwnConnections(t *testing.T) {
	if testserver.Each(t, TestList_hasItsOwnConnections) {
		return
	}
	for typ, props := range map[string]map[string]any{
		"SQL": {"dsn": testserver.Database(t)}, "FILE": {"path": t.TempDir()},
	} {
		a := must.Get(spi.NewWorkerIDAssigner(typ, must.Get(spi.NewProps(props, spi.Host{}))(t)))(t)
		testserver.ListsAlone(t, a, a.(*workerid.Assigner).Store())
	}
}
