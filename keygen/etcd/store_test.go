package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

func openStore(t testing.TB, values map[string]any, namespace string) *store {
	t.Helper()
	c := must.Get(newCluster(props(t, values)))(t)
	s := newStore(c, defaultPrefix, namespace)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// props returns properties with a timeout that a busy machine doesn't reach.
func props(t testing.TB, values map[string]any) spi.Props {
	t.Helper()
	all := map[string]any{"timeout": "1m"}
	maps.Copy(all, values)
	return must.Get(spi.NewProps(all, spi.Host{}))(t)
}

func client(t testing.TB, addr string) *clientv3.Client {
	t.Helper()
	c := must.Get(clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()}))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestStore_conforms(t *testing.T) {
	addr := testserver.Etcd(t)
	workeridtest.TestStore(t, func(t testing.TB) workeridtest.Namespace {
		ns := fmt.Sprintf("test-%s-%d", t.Name(), time.Now().UnixNano())
		return workeridtest.Namespace{
			Open: func() (workerid.Store, workerid.Info) {
				s := openStore(t, map[string]any{"endpoints": "http://" + addr}, ns)
				return s, s.info()
			},
			PutForeign: func(id int64) {
				for _, name := range []string{fmt.Sprint(id), fmt.Sprint("0", id), "x", "4/5"} { // only the first is a worker ID
					must.Get(client(t, addr).Put(t.Context(), defaultPrefix+ns+"/"+name, "not ours"))(t)
				}
			},
		}
	})
}

func TestStore_outages(t *testing.T) {
	server := testserver.StartEtcd(t)
	record := workerid.Record{Owner: "a", ReservedUntil: 1}
	testserver.Outages(t, server, func(timeout string) func(context.Context) error {
		s := openStore(t, map[string]any{"endpoints": server.Addr(), "timeout": timeout}, "orders")
		_, _ = s.CompareAndSet(t.Context(), 1, workerid.Record{}, record)
		return func(ctx context.Context) error {
			r, err := s.Get(ctx, 1)
			if err == nil && r != record {
				t.Errorf("have: %v\nwant: %v", r, record)
			}
			return err
		}
	})
}

func TestStore_password(t *testing.T) {
	server := testserver.StartEtcd(t)
	c, ctx := client(t, server.Addr()), t.Context()
	for _, user := range []string{"root", "app", "guest"} {
		must.Get(c.UserAdd(ctx, user, "s3cret"))(t)
	}
	const key, end = "/shardkey/orders/", "/shardkey/orders0"
	_, err1 := c.RoleAdd(ctx, "orders")
	_, err2 := c.RoleGrantPermission(ctx, "orders", key, end, clientv3.PermissionType(clientv3.PermReadWrite))
	_, err3 := c.UserGrantRole(ctx, "app", "orders")
	_, err4 := c.UserGrantRole(ctx, "root", "root")
	_, err5 := c.AuthEnable(ctx)
	must.Do(t, errors.Join(err1, err2, err3, err4, err5))
	const credentials = "set the properties username and password"
	for name, x := range map[string]struct{ user, password, want string }{
		"right":          {"app", "s3cret", ""},
		"wrong password": {"app", "guess77", credentials},
		"no user":        {"", "", credentials},
		"no rights":      {"guest", "s3cret", "needs to read and write"},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{
				"endpoints": server.Addr(), "namespace": "orders", "username": x.user, "password": x.password,
			}
			a := must.Get(spi.NewWorkerIDAssigner("etcd", props(t, values)))(t)
			defer a.(io.Closer).Close()
			_, err := a.AcquireWorkerID(ctx, 1023)
			switch {
			case x.want == "" && err != nil:
				t.Errorf("have: %v\nwant: no error", err)
			case x.want != "" && (!errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), x.want)):
				t.Errorf("have: %v\nwant: spi.ErrStore, %q", err, x.want)
			}
			if strings.Contains(fmt.Sprint(err), "guess77") {
				t.Errorf("the password is shown: %v", err)
			}
		})
	}
}

// A paused server can't check a password. Close and the end of a caller's context don't wait for
// it.
func TestStore_passwordOfASilentServer(t *testing.T) {
	server := testserver.StartEtcd(t)
	server.Pause()
	defer server.Resume()
	values := map[string]any{"endpoints": server.Addr(), "username": "app", "password": "s3cret", "timeout": "1h"}
	s := openStore(t, values, "orders")
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error)
	get := func(ctx context.Context) { _, err := s.Get(ctx, 1); errs <- err }
	go get(ctx)
	cancel()
	must.Is(t, <-errs, context.Canceled, "the caller gives up")
	go get(t.Context())
	must.Do(t, s.Close())
	must.Is(t, <-errs, spi.ErrClosed, "closed")
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
		if !errors.As(err, new(*spi.PropError)) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q\nhave: %v\nwant: a *spi.PropError with %q", c.name, c.value, err, c.want)
		}
	}
}

// listen returns the address of a server that doesn't answer, and a function that returns the
// first bytes it received so far. With a TLS configuration it answers the handshake.
func listen(t *testing.T, config *tls.Config) (addr string, heard func() []byte) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	var mu sync.Mutex
	var first []byte
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if config != nil {
				conn = tls.Server(conn, config)
			}
			b := make([]byte, 64)
			n, _ := conn.Read(b)
			mu.Lock()
			first = append(first, b[:n]...)
			mu.Unlock()
			_ = conn.Close()
		}
	}()
	return l.Addr().String(), func() []byte {
		mu.Lock()
		defer mu.Unlock()
		return first
	}
}

// If TLS is configured, no member receives plain text, whatever scheme the others have.
func TestTLS_neverInClear(t *testing.T) {
	for _, c := range []struct{ endpoints, tls string }{
		{"http://A", "true"}, {"HttP://A", "true"}, {"http://A", "skip-verify"}, {"http://A,http://B", "true"},
		{"http://A,https://B", ""}, {"https://A,http://B", ""}, {"A,https://B", ""}, {"https://A,B", ""},
		{"http://A,https://B", "true"}, {"https://A,http://B", "true"}, {"A,http://B", "true"}, {"A,https://B", "true"},
		{"A", "true"}, {"A,B", "skip-verify"}, {"https://A,https://B", ""}, {"https://A", "true"}, {"HttPS://A/", "false"},
	} {
		a, heardA := listen(t, nil)
		b, heardB := listen(t, nil)
		endpoints := strings.NewReplacer("A", a, "B", b).Replace(c.endpoints)
		values := map[string]any{"endpoints": endpoints, "username": "u", "password": "canary", "timeout": "300ms"}
		if c.tls != "" {
			values["tls"] = c.tls
		}
		cluster, err := newCluster(props(t, values))
		if err != nil {
			if bad, ok := errors.AsType[*spi.PropError](err); !ok || bad.Name != "endpoints" {
				t.Errorf("%v\nhave: %v\nwant: a PropError of endpoints", c, err)
			}
			continue
		}
		s := newStore(cluster, defaultPrefix, "x")
		for len(heardA())+len(heardB()) == 0 { // a busy machine may not connect in a call's time
			must.Fail(t, must.Err(s.Get(t.Context(), 1)), c, "an answer of nobody")
		}
		_ = s.Close()
		if heard := slices.Concat(heardA(), heardB()); bytes.Contains(heard, []byte("PRI")) {
			t.Errorf("%v\nhave: %q\nwant: a handshake, nothing in clear", c, heard)
		}
	}
}

// The error for a member with a wrong certificate describes that, not a timeout.
func TestTLS_wrongCertificateIsReported(t *testing.T) {
	certificate := must.Get(testserver.Certify(t.TempDir()))(t)
	pair, err := tls.LoadX509KeyPair(certificate.CertFile, certificate.KeyFile)
	must.Do(t, err)
	addr, _ := listen(t, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
	s := openStore(t, map[string]any{"endpoints": addr, "tls": "true", "timeout": "500ms"}, "x")
	for { // until the handshake, which takes longer on a busy machine
		if _, err = s.Get(t.Context(), 1); err == nil || strings.Contains(err.Error(), "x509") {
			break
		}
	}
	if !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), "x509") ||
		!strings.Contains(err.Error(), "PEM file") {
		t.Errorf("\nhave: %v\nwant: the x509 reason, and the property tls", err)
	}
}

// Lists use another client than leases.
func TestStore_listsAlone(t *testing.T) {
	values := map[string]any{"endpoints": testserver.Etcd(t), "namespace": fmt.Sprintf("lists-%d", time.Now().UnixNano())}
	p := props(t, values)
	var leases workerid.Store
	a := must.Get(workerid.NewAssigner(p, testserver.First(stores(p), &leases)))(t)
	testserver.ListsAlone(t, a, leases)
}
