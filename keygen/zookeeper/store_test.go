package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

var aRecord = workerid.Record{Owner: "a", ReservedUntil: 1}

// unique returns a name that no other test uses, on a server that may be reused.
func unique(t testing.TB) string {
	return fmt.Sprintf("t%d-%s", time.Now().UnixNano(), strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
}

func openStore(t testing.TB, values map[string]any, path, namespace string) *store {
	t.Helper()
	e := must.Get(newEnsemble(props(t, values), "servers"))(t)
	s := &store{e, path + "/" + namespace, decimal{}}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// client returns a plain client, to read and damage nodes.
func client(t testing.TB, addr string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect([]string{addr}, time.Minute, zk.WithLogger(silence{}))
	must.Do(t, err)
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
	must.Get(c.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll)))(t, "create", path)
}

// props returns properties with timeouts that a busy machine doesn't reach.
func props(t testing.TB, values map[string]any) spi.Props {
	t.Helper()
	all := map[string]any{"timeout": "1m", "session-timeout": "1m"}
	maps.Copy(all, values)
	return must.Get(spi.NewProps(all, spi.Host{}))(t)
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
				for _, name := range []string{fmt.Sprint(id), fmt.Sprint("0", id), "x"} { // only the first is a worker ID
					mustCreate(t, client(t, addr), "/a/b/"+ns+"/"+name, "not ours")
				}
			},
		}
	})
}

func TestStore_belowAPath(t *testing.T) {
	addr, root := testserver.ZooKeeper(t), unique(t)
	s := openStore(t, map[string]any{"servers": addr + "/" + root}, defaultPath, "orders")
	must.Equal(t, must.Get(s.CompareAndSet(t.Context(), 7, workerid.Record{}, aRecord))(t), true)
	data, _, err := client(t, addr).Get("/" + root + "/shardkey/orders/7")
	if err != nil || string(data) != aRecord.Text() {
		t.Errorf("the node\nhave: %s, %v\nwant: %s", data, err, aRecord.Text())
	}
	entries, err := s.List(t.Context())
	if err != nil || len(entries) != 1 || entries[0].Record != aRecord {
		t.Errorf("List\nhave: %v, %v\nwant: 7", entries, err)
	}
}

func TestStore_outages(t *testing.T) {
	server := testserver.StartZooKeeper(t)
	testserver.Outages(t, server, func(timeout string) func(context.Context) error {
		values := map[string]any{"servers": server.Addr(), "timeout": timeout, "session-timeout": "2s"}
		s := openStore(t, values, defaultPath, "orders")
		_, _ = s.CompareAndSet(t.Context(), 1, workerid.Record{}, aRecord)
		return func(ctx context.Context) error {
			r, err := s.Get(ctx, 1)
			if err == nil && r != aRecord {
				t.Errorf("have: %v\nwant: %v", r, aRecord)
			}
			return err
		}
	})
}

func TestEnsemble_panicOfTheClient(t *testing.T) {
	s := openStore(t, map[string]any{"servers": testserver.ZooKeeper(t)}, defaultPath, "orders")
	_, err := do(t.Context(), s.ensemble, func(*zk.Conn) (int, error) { panic("x") })
	must.Is(t, err, spi.ErrStore)
	must.FailWith(t, err, "panicked")
}

func TestStore_connectionRefused(t *testing.T) {
	s := openStore(t, map[string]any{"servers": "127.0.0.1:1,127.0.0.1:2"}, defaultPath, "orders")
	for range 2 {
		_, err := s.Get(t.Context(), 1)
		must.Is(t, err, spi.ErrStore)
		must.FailWith(t, err, "refused")
	}
}

func TestStore_password(t *testing.T) {
	addr, path := testserver.ZooKeeper(t), "/"+unique(t)
	for i, c := range []struct{ user, password, want string }{
		{"app", "s3cret", ""}, // creates the nodes
		{"app", "s3cret", ""},
		{"app", "guess77", "username and password"},
		{"", "", "username and password"},
	} {
		values := map[string]any{"servers": addr, "path": path, "username": c.user, "password": c.password}
		a, err := spi.NewWorkerIDAssigner("zookeeper", props(t, values))
		must.Do(t, err)
		defer a.(io.Closer).Close()
		switch _, err = a.AcquireWorkerID(t.Context(), 1023); {
		case c.want == "" && err != nil:
			t.Errorf("%d\nhave: %v\nwant: no error", i, err)
		case c.want != "" && (!errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%d\nhave: %v\nwant: spi.ErrStore, %q", i, err, c.want)
		}
		if strings.Contains(fmt.Sprint(err), "guess77") {
			t.Errorf("the password is shown: %v", err)
		}
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
		if !errors.As(err, new(*spi.PropError)) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q\nhave: %v\nwant: a *spi.PropError with %q", c.name, c.value, err, c.want)
		}
	}
}

// Lists use another client than leases.
func TestStore_listsAlone(t *testing.T) {
	values := map[string]any{"servers": testserver.ZooKeeper(t), "namespace": fmt.Sprintf("lists-%d", time.Now().UnixNano())}
	p := props(t, values)
	var leases workerid.Store
	a := must.Get(workerid.NewAssigner(p, testserver.First(stores(p), &leases)))(t)
	testserver.ListsAlone(t, a, leases)
}
