package redis

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// A server that may forget leases is said in the log, once, and in the health of the
// assigner and of each lease for as long as it is so.
func TestStore_warnsOfAServerThatForgets(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string // part of the warning; "" for none
	}{
		"always":                          {nil, ""},
		"everysec":                        {[]string{"--appendfsync", "everysec"}, "appendfsync everysec"},
		"no append-only file":             {[]string{"--appendonly", "no"}, "appendonly no"},
		"eviction of all keys":            {[]string{"--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"}, "maxmemory-policy allkeys-lru"},
		"eviction, but no limit":          {[]string{"--maxmemory", "0", "--maxmemory-policy", "allkeys-random"}, ""},
		"eviction of keys that expire":    {[]string{"--maxmemory", "64mb", "--maxmemory-policy", "volatile-lru"}, ""},
		"a limit, and nothing is evicted": {[]string{"--maxmemory", "64mb", "--maxmemory-policy", "noeviction"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			wantWarning(t, start(t, c.args...).Addr(), c.want)
		})
	}
}

func TestStore_warnsOfReplicas(t *testing.T) {
	master := start(t)
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	start(t, "--replicaof", host+" "+port)
	c := client(t, master.Addr())
	if err := c.Set(t.Context(), "x", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Wait(t.Context(), 1, time.Minute).Result(); n != 1 || err != nil {
		t.Fatalf("replicas\nhave: %d, %v\nwant: 1", n, err)
	}
	wantWarning(t, master.Addr(), "1 replicas")
}

func wantWarning(t *testing.T, addr, want string) {
	t.Helper()
	var log bytes.Buffer
	p, err := spi.NewProps(map[string]any{"addr": addr}, spi.Host{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	a, err := spi.NewWorkerIDAssigner("REDIS", p)
	if err != nil {
		t.Fatal(err)
	}
	defer a.(interface{ Close() error }).Close()
	for range 2 { // the second is not logged again
		l, err := a.AcquireWorkerID(t.Context(), 1023)
		if err != nil {
			t.Fatal(err)
		}
		for what, h := range map[string]spi.Health{"assigner": a.(spi.HealthReporter).Health(), "lease": l.(spi.HealthReporter).Health()} {
			if want == "" && len(h.Warnings) != 0 || want != "" && (len(h.Warnings) != 1 || !strings.Contains(h.Warnings[0], want)) {
				t.Errorf("warnings of the %s\nhave: %q\nwant: %q", what, h.Warnings, want)
			}
		}
	}
	lines := strings.Count(log.String(), "level=WARN")
	if want == "" && lines != 0 || want != "" && (lines != 1 || !strings.Contains(log.String(), want)) {
		t.Errorf("logged\nhave: %q\nwant: %q once", log.String(), want)
	}
}
