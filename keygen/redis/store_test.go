package redis

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
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
		ns := unique(t)
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
	addr, ns := testserver.Redis(t), unique(t)
	s := openStore(t, addr, ns)
	client(t, addr).Set(t.Context(), ns+":{workers}", "a text", 0)
	_, err := s.List(t.Context())
	ok, err2 := s.CompareAndSet(t.Context(), 1, workerid.Record{}, aRecord)
	for what, err := range map[string]error{"List": err, "CompareAndSet": err2} {
		var foreign *workerid.ForeignRecordError
		if ok || !errors.As(err, &foreign) {
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
	s := openStore(t, l.Addr().String(), unique(t))
	ok, err := s.CompareAndSet(t.Context(), 1, workerid.Record{}, aRecord)
	if have := sent.Load(); ok || err == nil || have != 1 {
		t.Errorf("\nhave: %v, %v, tried %d times\nwant: an error, tried once", ok, err, have)
	}
}

func TestServer_panicOfTheClient(t *testing.T) {
	s := openStore(t, "127.0.0.1:1", unique(t))
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
	var log bytes.Buffer
	p := must.Get(spi.NewProps(map[string]any{"addr": addr}, spi.Host{Logger: slog.New(slog.NewTextHandler(&log, nil))}))(t)
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
