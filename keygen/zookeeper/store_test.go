package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

var aRecord = workerid.Record{Owner: "a", ReservedUntil: 1}

// unique is a name that no other test uses, on a server that may be used again.
func unique(t testing.TB) string {
	return fmt.Sprintf("t%d-%s", time.Now().UnixNano(), strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
}

func openStore(t testing.TB, values map[string]any, path, namespace string) *store {
	t.Helper()
	e, err := newEnsemble(props(t, values), "servers")
	if err != nil {
		t.Fatal(err)
	}
	s := &store{e, path + "/" + namespace, decimal{}}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// client is a plain client, to look and to spoil.
func client(t testing.TB, addr string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogger(silence{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func mustCreate(t testing.TB, c *zk.Conn, path, data string) {
	t.Helper()
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			_, _ = c.Create(path[:i], nil, 0, zk.WorldACL(zk.PermAll))
		}
	}
	if _, err := c.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
}

func props(t testing.TB, values map[string]any) spi.Props {
	t.Helper()
	p, err := spi.NewProps(values, spi.Host{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStore_conforms(t *testing.T) {
	addr := testserver.ZooKeeper(t)
	workeridtest.TestStore(t, func(t testing.TB) workeridtest.Namespace {
		ns := unique(t)
		return workeridtest.Namespace{
			Open: func() (workerid.Store, workerid.Info) {
				s := openStore(t, map[string]any{"servers": addr}, "/a/b", ns)
				return s, s.info()
			},
			PutForeign: func(id int64) {
				mustCreate(t, client(t, addr), fmt.Sprintf("/a/b/%s/%d", ns, id), "not ours")
			},
		}
	})
}

func TestStore_belowAPath(t *testing.T) {
	addr, root := testserver.ZooKeeper(t), unique(t)
	s := openStore(t, map[string]any{"servers": addr + "/" + root}, defaultPath, "orders")
	if ok, err := s.CompareAndSet(t.Context(), 7, workerid.Record{}, aRecord); !ok || err != nil {
		t.Fatal(ok, err)
	}
	data, _, err := client(t, addr).Get("/" + root + "/shardkey/orders/7")
	if err != nil || string(data) != aRecord.Text() {
		t.Errorf("the node\nhave: %s, %v\nwant: %s", data, err, aRecord.Text())
	}
	entries, err := s.List(t.Context())
	if err != nil || len(entries) != 1 || entries[0].Record != aRecord {
		t.Errorf("List\nhave: %v, %v\nwant: 7", entries, err)
	}
}

func TestStore_now(t *testing.T) {
	s := openStore(t, map[string]any{"servers": testserver.ZooKeeper(t)}, defaultPath, unique(t))
	now, err := s.now(t.Context())
	if err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("have: %v, %v\nwant: now", now, err)
	}
}

func TestStore_foreignRecord(t *testing.T) {
	addr, ns := testserver.ZooKeeper(t), unique(t)
	s, c := openStore(t, map[string]any{"servers": addr}, defaultPath, ns), client(t, addr)
	for _, name := range []string{"3", "03", "x"} {
		mustCreate(t, c, defaultPath+"/"+ns+"/"+name, "not ours")
	}
	var foreign *workerid.ForeignRecordError
	if _, err := s.Get(t.Context(), 3); !errors.As(err, &foreign) || foreign.WorkerID != 3 {
		t.Errorf("Get\nhave: %v\nwant: a *ForeignRecordError of 3", err)
	}
	if ok, _ := s.CompareAndSet(t.Context(), 3, workerid.Record{}, aRecord); ok {
		t.Error("CompareAndSet\nhave: a foreign value replaced\nwant: false")
	}
	entries, err := s.List(t.Context())
	if err != nil || len(entries) != 1 || entries[0].WorkerID != 3 || entries[0].Err == nil {
		t.Errorf("List\nhave: %v, %v\nwant: 3, with an error", entries, err)
	}
}

func TestStore_serverAwayPausedAndBack(t *testing.T) {
	server := testserver.StartZooKeeper(t)
	s := openStore(t, map[string]any{"servers": server.Addr(), "timeout": "1s", "session-timeout": "2s"}, defaultPath, "orders")
	if ok, err := s.CompareAndSet(t.Context(), 1, workerid.Record{}, aRecord); !ok || err != nil {
		t.Fatal(ok, err)
	}
	server.Pause()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Get(ctx, 1)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled\nhave: %v\nwant: context.Canceled", err)
	}
	if _, err := s.CompareAndSet(t.Context(), 1, aRecord, aRecord); !errors.Is(err, spi.ErrStore) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("paused\nhave: %v\nwant: spi.ErrStore, no context's error", err)
	}
	server.Resume()
	server.Kill()
	if _, err := s.Get(t.Context(), 1); !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), server.Addr()) {
		t.Errorf("killed\nhave: %v\nwant: spi.ErrStore with the address", err)
	}
	server.Start()
	for {
		r, err := s.Get(t.Context(), 1)
		if err != nil && !errors.Is(err, spi.ErrStore) {
			t.Fatal(err)
		}
		if err == nil {
			if r != aRecord {
				t.Errorf("back\nhave: %v\nwant: %v", r, aRecord)
			}
			break
		}
	}
}

func TestStore_connectionRefused(t *testing.T) {
	s := openStore(t, map[string]any{"servers": "127.0.0.1:1,127.0.0.1:2"}, defaultPath, "orders")
	for range 2 {
		_, err := s.Get(t.Context(), 1)
		if !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), "refused") {
			t.Errorf("have: %v\nwant: spi.ErrStore, connection refused", err)
		}
	}
}

func TestStore_password(t *testing.T) {
	addr, ns := testserver.ZooKeeper(t), unique(t)
	in := func(user, password string) workerid.Store {
		return openStore(t, map[string]any{"servers": addr, "username": user, "password": password}, "/"+ns, "orders")
	}
	if ok, err := in("app", "s3cret").CompareAndSet(t.Context(), 1, workerid.Record{}, aRecord); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if r, err := in("app", "s3cret").Get(t.Context(), 1); r != aRecord || err != nil {
		t.Errorf("the same user\nhave: %v, %v\nwant: %v", r, err, aRecord)
	}
	for _, s := range []workerid.Store{in("app", "guess77"), in("", "")} {
		_, err := s.Get(t.Context(), 1)
		if !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), "username and password") || strings.Contains(err.Error(), "guess77") {
			t.Errorf("another user\nhave: %v\nwant: spi.ErrStore, what to set", err)
		}
	}
}

func TestAssigner_leasesDiffer(t *testing.T) {
	ns := unique(t)
	values := map[string]any{"servers": testserver.ZooKeeper(t), "namespace": ns, "path": "/x", "session-timeout": "5s"}
	seen := map[int64]bool{}
	for range 3 {
		a, err := spi.NewWorkerIDAssigner("zookeeper", props(t, values))
		if err != nil {
			t.Fatal(err)
		}
		defer a.(io.Closer).Close()
		lease, err := a.AcquireWorkerID(t.Context(), 1023)
		if err != nil {
			t.Fatal(err)
		}
		if seen[lease.WorkerID()] {
			t.Errorf("worker id %d was given twice", lease.WorkerID())
		}
		seen[lease.WorkerID()] = true
	}
}

func TestProperties_refused(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"servers", "", "addresses"},
		{"servers", "a:1,,b:2", "addresses"},
		{"servers", "a:1:2", "addresses"},
		{"servers", "u:12/password@a:1", "in the path"},
		{"path", "shardkey", "path of a node"},
		{"path", "/shardkey/", "path of a node"},
		{"path", "/a//b", "path of a node"},
		{"path", "/", "path of a node"},
		{"path", "", "path of a node"},
		{"password", "x", "username"},
		{"session-timeout", "5", "duration"},
		{"addr", "h:1", "unknown"},
	} {
		values := map[string]any{"servers": "127.0.0.1:1", c.name: c.value}
		_, err := spi.NewWorkerIDAssigner("zookeeper", props(t, values))
		var bad *spi.PropError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q\nhave: %v\nwant: a *spi.PropError with %q", c.name, c.value, err, c.want)
		}
	}
}
