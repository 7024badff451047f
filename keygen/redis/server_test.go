package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

// props returns the properties of a test's generator or assigner, with a timeout that a busy machine
// doesn't reach.
func props(t testing.TB, values map[string]any) spi.Props {
	t.Helper()
	all := map[string]any{"timeout": "1m"}
	maps.Copy(all, values)
	return must.Get(spi.NewProps(all, spi.Host{Logger: slog.New(slog.DiscardHandler)}))(t)
}

// started distinguishes this run of the tests from earlier ones on a server that is reused.
var started = time.Now().UnixNano()

// namespace returns the test's own namespace.
func namespace(t testing.TB) string { return fmt.Sprintf("shardkey-test-%s-%d", t.Name(), started) }

// open returns a generator with these properties in the test's namespace.
func open(t testing.TB, addr string, more ...any) *generator {
	t.Helper()
	p := props(t, values(append(more, "addr", addr, "namespace", namespace(t))...))
	g := must.Get(spi.NewKeyGenerator("redis", p))(t)
	t.Cleanup(func() { _ = g.(*generator).Close() })
	return g.(*generator)
}

// values returns properties for pairs of names and values.
func values(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = fmt.Sprint(pairs[i+1])
	}
	return m
}

// newOffline returns a generator that is never connected, with a clock.
func newOffline(t testing.TB, clock spi.Clock, values map[string]any) *generator {
	t.Helper()
	p := must.Get(spi.NewProps(values, spi.Host{Clock: clock}))(t)
	return must.Get(newGenerator(p))(t).(*generator)
}

func client(t testing.TB, addr string) *goredis.Client {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: addr, DialTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// makeKeys generates n keys.
func makeKeys(t testing.TB, g *generator, n int) ([]int64, error) {
	keys := make([]int64, n)
	err := g.GenerateInt64Keys(t.Context(), spi.Column{}, keys)
	return keys, err
}

func mustKeys(t testing.TB, g *generator, n int) []int64 {
	t.Helper()
	return must.Get(makeKeys(t, g, n))(t)
}

func wantApart(t testing.TB, keys []int64) {
	t.Helper()
	must.Equal(t, len(slices.Compact(slices.Sorted(slices.Values(keys)))), len(keys), "different keys")
}

// wantErr checks that a server's error contains part, or that it is nil if part is "".
func wantErr(t testing.TB, what string, err error, part string) {
	t.Helper()
	switch {
	case part == "" && err != nil:
		t.Errorf("%s\nhave: %v\nwant: no error", what, err)
	case part != "" && (!errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), part)):
		t.Errorf("%s\nhave: %v\nwant: spi.ErrStore, %q", what, err, part)
	}
}

func TestServer_password(t *testing.T) {
	s := testserver.StartRedis(t)
	c := client(t, s.Addr())
	setUser(t, c, "app", "on", ">pa55", "~shardkey-test-*", "+eval", "+evalsha", "+time", "+type", "+hmget", "+hset")
	setUser(t, c, "elsewhere", "on", ">pa55", "~elsewhere:*", "+@all")
	setUser(t, c, "default", "resetpass", ">s3cret")
	const credentials = "set the properties username and password"
	for name, c := range map[string]struct{ username, password, want string }{
		"default user":      {"", "s3cret", ""},
		"own user":          {"app", "pa55", ""},
		"wrong password":    {"", "guess77", credentials},
		"wrong user":        {"nobody", "guess77", credentials},
		"none":              {"", "", credentials},
		"user without keys": {"elsewhere", "pa55", "the user needs"},
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, s.Addr(), "username", c.username, "password", c.password)
			_, err := makeKeys(t, g, 5)
			wantErr(t, "keys", err, c.want)
			if shown := fmt.Sprint(g.Describe(), err); c.password != "" && strings.Contains(shown, c.password) {
				t.Errorf("the password is shown: %s", shown)
			}
		})
	}
}

func setUser(t *testing.T, c *goredis.Client, user string, rules ...string) {
	t.Helper()
	must.Do(t, c.ACLSetUser(t.Context(), user, rules...).Err())
}

// An assigner's user needs only the privileges in docs/reference/generators.md. Health reports
// checks that the user may not do.
func TestServer_privilegesOfTheAssigner(t *testing.T) {
	s := testserver.StartRedis(t)
	enough := []string{"reset", "on", ">pa55", "~orders:*", "+eval", "+evalsha", "+time", "+hget", "+hset", "+hgetall"}
	for name, c := range map[string]struct {
		rules []string
		want  string // part of the warning, or ""
	}{
		"all":    {append(slices.Clip(enough), "+config|get", "+info"), ""},
		"enough": {enough, "+config|get"},
	} {
		t.Run(name, func(t *testing.T) {
			setUser(t, client(t, s.Addr()), "app", c.rules...)
			values := map[string]any{"addr": s.Addr(), "username": "app", "password": "pa55", "namespace": "orders"}
			a := must.Get(spi.NewWorkerIDAssigner("REDIS", props(t, values)))(t)
			defer a.(io.Closer).Close()
			must.Get(a.AcquireWorkerID(t.Context(), 1023))(t)
			wantWarning(t, "assigner", a, c.want)
			if h := a.(spi.HealthReporter).Health(); strings.Contains(fmt.Sprint(h.Warnings), "pa55") {
				t.Errorf("the password is shown: %q", h.Warnings)
			}
		})
	}
}

func TestServer_tls(t *testing.T) {
	var files [2]*testserver.Certificate
	for i := range files {
		var err error
		if files[i], err = testserver.Certify(t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	cert, key := files[0].CertFile, files[0].KeyFile
	s := testserver.StartRedis(t, "--port", "0", "--tls-port", "{port}", "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-ca-cert-file", cert, "--tls-auth-clients", "optional")
	for name, c := range map[string]struct {
		props []any
		want  string // part of the error, or "" for no error
	}{
		"authority":          {[]any{"tls", cert}, ""},
		"not checked":        {[]any{"tls", "skip-verify"}, ""},
		"client certificate": {[]any{"tls", cert, "tls-cert", cert, "tls-key", key}, ""},
		"system authorities": {[]any{"tls", "true"}, "PEM file of the server's authority"},
		"other authority":    {[]any{"tls", files[1].CertFile}, "PEM file of the server's authority"},
		"no file":            {[]any{"tls", cert + ".missing"}, "no such file"},
		"not PEM":            {[]any{"tls", "generator_test.go"}, "no certificate"},
		"plain text":         {nil, "REDIS at"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := makeKeys(t, open(t, s.Addr(), c.props...), 5)
			wantErr(t, "keys", err, c.want)
		})
	}
}

// A cluster of one node uses the same code of the client as one of many nodes.
func TestServer_cluster(t *testing.T) {
	s := testserver.StartRedis(t, "--cluster-enabled", "yes")
	c := client(t, s.Addr())
	must.Do(t, c.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	for !strings.Contains(c.ClusterInfo(t.Context()).Val(), "cluster_state:ok") {
	}
	nodes := s.Addr() + ", " + s.Addr()
	var all []int64
	for range 3 {
		all = append(all, mustKeys(t, open(t, nodes), 2000)...)
	}
	wantApart(t, all)

	store := openStore(t, nodes, "orders")
	must.Equal(t, must.Get(store.CompareAndSet(t.Context(), 1, workerid.Record{}, aRecord))(t), true)
	must.Equal(t, must.Get(store.Get(t.Context(), 1))(t), aRecord)
	if found, err := store.warnings(t.Context()); len(found) != 0 || err != nil {
		t.Errorf("warnings\nhave: %q, %v\nwant: none", found, err)
	}
}

var aRecord = workerid.Record{Owner: "a", ReservedUntil: 1}

func openStore(t testing.TB, addr, namespace string, more ...any) *store {
	t.Helper()
	server := must.Get(newServer(props(t, values(append(more, "addr", addr)...))))(t)
	s := newStore(server, namespace)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore_conforms(t *testing.T) {
	addr := testserver.Redis(t)
	workeridtest.TestStore(t, func(t testing.TB) workeridtest.Namespace {
		ns := namespace(t)
		return workeridtest.Namespace{
			Open: func() (workerid.Store, workerid.Info) {
				s := openStore(t, addr, ns)
				return s, s.info()
			},
			PutForeign: func(id int64) { // an empty text must not count as none
				client(t, addr).HSet(t.Context(), ns+":{workers}", strconv.FormatInt(id, 10), "", "x", "nothing")
			},
		}
	})
}

func TestStore_keyIsNoHash(t *testing.T) {
	addr, ns := testserver.Redis(t), namespace(t)
	s := openStore(t, addr, ns)
	client(t, addr).Set(t.Context(), ns+":{workers}", "a text", 0)
	_, err := s.List(t.Context())
	ok, err2 := s.CompareAndSet(t.Context(), 1, workerid.Record{}, aRecord)
	for what, err := range map[string]error{"List": err, "CompareAndSet": err2} {
		if ok || !errors.As(err, new(*workerid.ForeignRecordError)) {
			t.Errorf("%s\nhave: %v, %v\nwant: a *ForeignRecordError", what, ok, err)
		}
	}
}

func TestStore_outages(t *testing.T) {
	server := testserver.StartRedis(t)
	testserver.Outages(t, server, func(timeout string) func(context.Context) error {
		s := openStore(t, server.Addr(), "shardkey", "timeout", timeout)
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

// A swap whose answer is lost is not repeated: the second one would find the first one's record
// and fail.
func TestStore_swapIsSentOnce(t *testing.T) {
	var sent atomic.Int32
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			sent.Add(1)
			_, _ = conn.Read(make([]byte, 1)) // the request has arrived, and the answer doesn't come
			_ = conn.Close()
		}
	}()
	s := openStore(t, l.Addr().String(), namespace(t))
	ok, err := s.CompareAndSet(t.Context(), 1, workerid.Record{}, aRecord)
	if have := sent.Load(); ok || err == nil || have != 1 {
		t.Errorf("\nhave: %v, %v, tried %d times\nwant: an error, tried once", ok, err, have)
	}
}

func TestServer_panicOfTheClient(t *testing.T) {
	s := openStore(t, "127.0.0.1:1", namespace(t))
	_, err := do(t.Context(), s.server, func(context.Context, goredis.UniversalClient) (int, error) { panic("x") })
	wantErr(t, "a call that panics", err, "panicked")
}

// If a server may lose leases, this is logged once. Health of the assigner and of each lease
// reports it as long as it is true.
func TestStore_warnsOfAServerThatForgets(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string // part of the warning, or ""
	}{
		"always":                          {nil, ""},
		"everysec":                        {[]string{"--appendfsync", "everysec"}, "appendfsync everysec"},
		"no append-only file":             {[]string{"--appendonly", "no"}, "appendonly no"},
		"eviction of all keys":            {[]string{"--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"}, "allkeys"},
		"eviction, but no limit":          {[]string{"--maxmemory", "0", "--maxmemory-policy", "allkeys-random"}, ""},
		"eviction of keys that expire":    {[]string{"--maxmemory", "64mb", "--maxmemory-policy", "volatile-lru"}, ""},
		"a limit, and nothing is evicted": {[]string{"--maxmemory", "64mb", "--maxmemory-policy", "noeviction"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			wantWarnings(t, testserver.StartRedis(t, c.args...).Addr(), c.want)
		})
	}
	t.Run("replicas", func(t *testing.T) {
		master := testserver.StartRedis(t)
		testserver.StartRedis(t, "--replicaof", strings.Replace(master.Addr(), ":", " ", 1))
		c := client(t, master.Addr())
		must.Do(t, c.Set(t.Context(), "x", 1, 0).Err())
		must.Equal(t, must.Get(c.Wait(t.Context(), 1, time.Minute).Result())(t), 1, "replicas")
		wantWarnings(t, master.Addr(), "1 replicas")
	})
}

func wantWarnings(t *testing.T, addr, want string) {
	t.Helper()
	var log must.Log
	p := must.Get(spi.NewProps(map[string]any{"addr": addr, "timeout": "1m"}, spi.Host{Logger: log.Logger()}))(t)
	a := must.Get(spi.NewWorkerIDAssigner("REDIS", p))(t)
	defer a.(io.Closer).Close()
	for range 2 { // the second is not logged again
		l := must.Get(a.AcquireWorkerID(t.Context(), 1023))(t)
		wantWarning(t, "assigner", a, want)
		wantWarning(t, "lease", l, want)
	}
	lines := strings.Count(log.String(), "level=WARN")
	if want == "" && lines != 0 || want != "" && (lines != 1 || !strings.Contains(log.String(), want)) {
		t.Errorf("logged\nhave: %q\nwant: %q once", log.String(), want)
	}
}

// wantWarning checks the only warning in a reporter's health, or that there is none if want is
// "".
func wantWarning(t *testing.T, what string, reporter any, want string) {
	t.Helper()
	have := reporter.(spi.HealthReporter).Health().Warnings
	if want == "" && len(have) != 0 || want != "" && (len(have) != 1 || !strings.Contains(have[0], want)) {
		t.Errorf("warnings of the %s\nhave: %q\nwant: %q", what, have, want)
	}
}

// Lists use another client than leases.
func TestStore_listsAlone(t *testing.T) {
	values := map[string]any{"addr": testserver.Redis(t), "namespace": fmt.Sprintf("lists-%d", time.Now().UnixNano())}
	p := props(t, values)
	var leases workerid.Store
	a := must.Get(workerid.NewAssigner(p, testserver.First(stores(p), &leases)))(t)
	testserver.ListsAlone(t, a, leases)
}
