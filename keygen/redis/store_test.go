package redis

import (
	"context"
	"errors"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

func openStore(t testing.TB, addr, namespace string) *store {
	t.Helper()
	server, err := newServer(props(t, map[string]any{"addr": addr}))
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(server, namespace)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore_conforms(t *testing.T) {
	addr := testserver.Redis(t)
	workeridtest.TestStore(t, func(t testing.TB) workeridtest.Namespace {
		ns := unique(t)
		return workeridtest.Namespace{
			Open: func() (workerid.Store, workerid.Info) {
				s := openStore(t, addr, ns)
				return s, s.info()
			},
			PutForeign: func(id int64) {
				client(t, addr).HSet(t.Context(), ns+":{workers}", strconv.FormatInt(id, 10), "not ours")
			},
		}
	})
}

func TestStore_foreignRecords(t *testing.T) {
	addr := testserver.Redis(t)
	ns := unique(t)
	c, s := client(t, addr), openStore(t, addr, ns)
	key := ns + ":{workers}"
	next := workerid.Record{Owner: "x", ReservedUntil: 1}

	c.HSet(t.Context(), key, "3", "not ours", "4", "", "x", "nothing")
	for _, id := range []int64{3, 4} {
		_, err := s.Get(t.Context(), id)
		var foreign *workerid.ForeignRecordError
		if !errors.As(err, &foreign) || foreign.WorkerID != id {
			t.Errorf("Get(%d)\nhave: %v\nwant: a *ForeignRecordError", id, err)
		}
		if ok, _ := s.CompareAndSet(t.Context(), id, workerid.Record{}, next); ok {
			t.Errorf("CompareAndSet(%d)\nhave: a foreign value replaced\nwant: false", id)
		}
	}
	entries, err := s.List(t.Context())
	if err != nil || len(entries) != 2 || entries[0].Err == nil || entries[1].Err == nil {
		t.Errorf("List\nhave: %v, %v\nwant: 3 and 4, with errors", entries, err)
	}

	c.Set(t.Context(), key, "a text", 0)
	var foreign *workerid.ForeignRecordError
	if _, err := s.List(t.Context()); !errors.As(err, &foreign) {
		t.Errorf("List of a text\nhave: %v\nwant: a *ForeignRecordError", err)
	}
	if ok, err := s.CompareAndSet(t.Context(), 1, workerid.Record{}, next); ok || !errors.As(err, &foreign) {
		t.Errorf("CompareAndSet on a text\nhave: %v, %v\nwant: a *ForeignRecordError", ok, err)
	}
}

func TestStore_serverAway(t *testing.T) {
	server := start(t)
	s := openStore(t, server.Addr(), "shardkey")
	r := workerid.Record{Owner: "a", ReservedUntil: 1}
	if ok, err := s.CompareAndSet(t.Context(), 1, workerid.Record{}, r); !ok || err != nil {
		t.Fatal(ok, err)
	}
	server.Kill()
	if _, err := s.Get(t.Context(), 1); !errors.Is(err, spi.ErrStore) {
		t.Errorf("killed\nhave: %v\nwant: spi.ErrStore", err)
	}
	server.Start()
	if have, err := s.Get(t.Context(), 1); have != r || err != nil {
		t.Errorf("back after a kill\nhave: %v, %v\nwant: %v", have, err, r)
	}
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Get(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("paused\nhave: %v\nwant: context.DeadlineExceeded", err)
	}
	server.Resume()
	if have, err := s.Get(t.Context(), 1); have != r || err != nil {
		t.Errorf("resumed\nhave: %v, %v\nwant: %v", have, err, r)
	}
}

func TestAssigner_leasesDiffer(t *testing.T) {
	addr := testserver.Redis(t)
	values := map[string]any{"addr": addr, "namespace": "test-assigner", "lease": "5s", "renew": "1s"}
	var ids []int64
	for range 3 {
		a, err := spi.NewWorkerIDAssigner("redis", props(t, values))
		if err != nil {
			t.Fatal(err)
		}
		defer a.(io.Closer).Close()
		lease, err := a.AcquireWorkerID(t.Context(), 1023)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, lease.WorkerID())
	}
	wantApart(t, ids)
	_, err := spi.NewWorkerIDAssigner("redis", props(t, map[string]any{"addr": addr, "path": "/x"}))
	var bad *spi.PropError
	if !errors.As(err, &bad) || !bad.Unknown {
		t.Errorf("property of another type\nhave: %v\nwant: a *spi.PropError", err)
	}
}
