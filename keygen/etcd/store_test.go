package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

var aRecord = workerid.Record{Owner: "a", ReservedUntil: 1}

// namespace is one that no other test uses, on a server that may be used again.
func namespace(t testing.TB) string {
	return fmt.Sprintf("test-%s-%d", t.Name(), time.Now().UnixNano())
}

func openStore(t testing.TB, values map[string]any, namespace string) *store {
	t.Helper()
	c, err := newCluster(props(t, values))
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(c, defaultPrefix, namespace)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func client(t testing.TB, addr string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
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
	addr := testserver.Etcd(t)
	workeridtest.TestStore(t, func(t testing.TB) workeridtest.Namespace {
		ns := namespace(t)
		return workeridtest.Namespace{
			Open: func() (workerid.Store, workerid.Info) {
				s := openStore(t, map[string]any{"endpoints": addr}, ns)
				return s, s.info()
			},
			PutForeign: func(id int64) {
				key := fmt.Sprintf("%s%s/%d", defaultPrefix, ns, id)
				if _, err := client(t, addr).Put(t.Context(), key, "not ours"); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

func TestStore_foreignRecord(t *testing.T) {
	addr, ns := testserver.Etcd(t), namespace(t)
	s, c := openStore(t, map[string]any{"endpoints": "http://" + addr}, ns), client(t, addr)
	for _, name := range []string{"3", "03", "x", "4/5"} {
		if _, err := c.Put(t.Context(), defaultPrefix+ns+"/"+name, "not ours"); err != nil {
			t.Fatal(err)
		}
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
	server := testserver.StartEtcd(t)
	s := openStore(t, map[string]any{"endpoints": server.Addr(), "timeout": "1s"}, "orders")
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
	if have := getSoon(t, s, 1); have != aRecord {
		t.Errorf("back\nhave: %v\nwant: %v", have, aRecord)
	}
}

// getSoon asks until the client has found its server again.
func getSoon(t *testing.T, s workerid.Store, id int64) workerid.Record {
	t.Helper()
	for {
		r, err := s.Get(t.Context(), id)
		if err == nil {
			return r
		}
		if !errors.Is(err, spi.ErrStore) {
			t.Fatal(err)
		}
	}
}

func TestStore_password(t *testing.T) {
	server := testserver.StartEtcd(t)
	c, ctx := client(t, server.Addr()), t.Context()
	for _, user := range []string{"root", "app", "guest"} {
		if _, err := c.UserAdd(ctx, user, "s3cret"); err != nil {
			t.Fatal(err)
		}
	}
	_, err1 := c.RoleAdd(ctx, "orders")
	_, err2 := c.RoleGrantPermission(ctx, "orders", "/shardkey/orders/", "/shardkey/orders0", clientv3.PermissionType(clientv3.PermReadWrite))
	_, err3 := c.UserGrantRole(ctx, "app", "orders")
	_, err4 := c.UserGrantRole(ctx, "root", "root")
	_, err5 := c.AuthEnable(ctx)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct{ user, password, want string }{
		"right":          {"app", "s3cret", ""},
		"wrong password": {"app", "guess77", "set the properties username and password"},
		"no user":        {"", "", "set the properties username and password"},
		"no rights":      {"guest", "s3cret", "needs to read and write"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, map[string]any{"endpoints": server.Addr(), "username": x.user, "password": x.password}, "orders")
			_, err := s.List(ctx)
			switch {
			case x.want == "" && err != nil:
				t.Errorf("have: %v\nwant: no error", err)
			case x.want != "" && (!errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "guess77")):
				t.Errorf("have: %v\nwant: spi.ErrStore, %q", err, x.want)
			}
		})
	}
}

func TestProperties_refused(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"endpoints", "", "addresses"},
		{"endpoints", "localhost", "addresses"},
		{"endpoints", "a:1,,b:2", "addresses"},
		{"password", "x", "username"},
		{"timeout", "5", "duration"},
		{"tls-key", "key.pem", "tls-cert"},
		{"lease", "1ns", "lease"},
		{"addr", "h:1", "unknown"},
	} {
		values := map[string]any{"endpoints": "127.0.0.1:1", c.name: c.value}
		_, err := spi.NewWorkerIDAssigner("etcd", props(t, values))
		var bad *spi.PropError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q\nhave: %v\nwant: a *spi.PropError with %q", c.name, c.value, err, c.want)
		}
	}
}

func TestAssigner_leasesDiffer(t *testing.T) {
	ns := namespace(t)
	ns = ns[len(ns)-20:]
	values := map[string]any{"endpoints": testserver.Etcd(t), "namespace": ns}
	seen := map[int64]bool{}
	for range 3 {
		a, err := spi.NewWorkerIDAssigner("etcd", props(t, values))
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
