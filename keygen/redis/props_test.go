package redis

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/spi"
)

func TestProperties_refused(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"addr", "", "host:port"},
		{"addr", "localhost", "host:port"},
		{"addr", "a:1,b", "host:port"},
		{"shard-id", "4096", "0..4095"},
		{"shard-id", "-1", "0..4095"},
		{"db", "x", "integer"},
		{"timeout", "3", "duration"},
		{"tls", "", "skip-verify"},
		{"tls-cert", "cert.pem", "tls-key"},
		{"tls-key", "key.pem", "tls-cert"},
		{"epoch", "2999-01-01", "in the past"},
		{"epoch", "1960-01-01", "after 1970"},
		{"worker-id", "1", "unknown"},
	} {
		values := map[string]any{"addr": "127.0.0.1:1", c.name: c.value}
		_, err := spi.NewKeyGenerator("REDIS", props(t, values))
		var bad *spi.PropError
		if !errors.As(err, &bad) || !strings.EqualFold(bad.Name, c.name) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q\nhave: %v\nwant: a *spi.PropError about it with %q", c.name, c.value, err, c.want)
		}
	}
	if err := checkEpoch(time.UnixMilli(0), time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)); err == nil {
		t.Error("an epoch that leaves nine years\nhave: no error\nwant: one")
	}
}

func TestGenerator_decodeAndRange(t *testing.T) {
	g := newOffline(t, spi.SystemClock, map[string]any{"addr": "h:1", "shard-id": "5"})
	at := time.Date(2026, 2, 3, 4, 5, 6, 789e6, time.UTC)
	key, err := g.key(position(at.UnixMilli()<<10 | 1023))
	if err != nil {
		t.Fatal(err)
	}
	if want := (at.UnixMilli()-snowflake.DefaultEpoch.UnixMilli())<<22 | 5<<10 | 1023; key != want {
		t.Errorf("key\nhave: %d\nwant: %d", key, want)
	}
	parts, err := g.DecodeKey(key)
	if want := (spi.KeyParts{Time: at, WorkerID: 5, Sequence: 1023, Layout: "41-12-10"}); err != nil || parts != want {
		t.Errorf("DecodeKey\nhave: %+v, %v\nwant: %+v", parts, err, want)
	}
	if _, err := g.DecodeKey(-1); err == nil {
		t.Error("DecodeKey(-1)\nhave: no error\nwant: one")
	}
	for _, c := range []struct {
		from, until time.Duration // from at
		in          bool
	}{{0, time.Millisecond, true}, {-time.Hour, 0, false}, {1, time.Hour, false}, {-time.Hour, 1, true}} {
		first, last, err := g.KeyRange(at.Add(c.from), at.Add(c.until))
		if err != nil || (first <= key && key <= last) != c.in {
			t.Errorf("KeyRange(%v, %v)\nhave: %d..%d, %v\nwant: %d in it: %v", c.from, c.until, first, last, err, key, c.in)
		}
	}
	if first, last, err := g.KeyRange(at, at); err == nil {
		t.Errorf("KeyRange of no time\nhave: %d..%d\nwant: an error", first, last)
	}
}

func TestGenerator_timeOutsideTheLayout(t *testing.T) {
	g := newOffline(t, spi.SystemClock, map[string]any{"addr": "h:1"})
	for _, at := range []time.Time{snowflake.DefaultEpoch.Add(-time.Millisecond), snowflake.DefaultEpoch.AddDate(70, 0, 0)} {
		if key, err := g.key(position(at.UnixMilli() << 10)); !errors.Is(err, spi.ErrTimeOverflow) {
			t.Errorf("key of %v\nhave: %d, %v\nwant: spi.ErrTimeOverflow", at, key, err)
		}
	}
}
