package redis

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/spi"
)

// start starts a Redis server whose lifetime is the test's.
func start(t *testing.T, args ...string) *testserver.Server {
	t.Helper()
	return testserver.StartRedis(t, args...)
}

// props makes the properties of a test's generator or assigner.
func props(t testing.TB, values map[string]any) spi.Props {
	t.Helper()
	p, err := spi.NewProps(values, spi.Host{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// unique is a namespace that no other test uses, on a server that may be used
// again.
func unique(t testing.TB) string {
	return fmt.Sprintf("shardkey-test-%s-%d", t.Name(), time.Now().UnixNano())
}

// newOffline makes a generator that is never connected, in the time of a clock.
func newOffline(t testing.TB, clock spi.Clock, values map[string]any) *generator {
	t.Helper()
	p, err := spi.NewProps(values, spi.Host{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGenerator(p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
