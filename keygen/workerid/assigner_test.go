package workerid_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/internal/test/memory"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/workerid"
	_ "github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

// newAssigner returns an assigner with the records of m. It logs nothing, and is closed at the
// end of the test.
func newAssigner(t *testing.T, m *memory.Records, clock spi.Clock) *workerid.Assigner {
	t.Helper()
	a := workerid.Assign(t, m.Open(), workerid.Config{Clock: clock})
	t.Cleanup(func() {
		must.Do(t, a.Close())
	})
	return a
}

func mustAcquire(t *testing.T, a *workerid.Assigner, maxWorkerID int64) spi.WorkerIDLease {
	t.Helper()
	return must.Get(a.AcquireWorkerID(t.Context(), maxWorkerID))(t)
}

func nowMS() int64 { return time.Now().UnixMilli() }

func wantMS(t *testing.T, what string, have, want int64) {
	t.Helper()
	if have != want {
		t.Errorf("%s\nhave: %s\nwant: %s", what, time.UnixMilli(have).UTC(), time.UnixMilli(want).UTC())
	}
}

func TestAssigner_closeReleasesAndEndsTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the bubble fails if a goroutine is left
		m := new(memory.Records)
		a := newAssigner(t, m, nil)
		l := mustAcquire(t, a, 0)
		limit := l.Limit()
		for range 2 {
			must.Do(t, a.Close())
		}
		must.Is(t, must.Err(a.AcquireWorkerID(t.Context(), 0)), spi.ErrClosed, "Acquire after Close")
		wantMS(t, "floor of the next", mustAcquire(t, newAssigner(t, m, nil), 0).Floor(), limit)
	})
}

// A layout may have billions of worker IDs.
func TestAssigner_veryManyWorkerIDs(t *testing.T) {
	a := newAssigner(t, new(memory.Records), nil)
	for want := range int64(300) {
		must.Equal(t, mustAcquire(t, a, 1<<40).WorkerID(), want)
	}
}

func build(t *testing.T, typ string, host spi.Host, props map[string]any) (spi.WorkerIDAssigner, error) {
	t.Helper()
	p := must.Get(spi.NewProps(props, host))(t)
	a, err := spi.NewWorkerIDAssigner(typ, p)
	if c, ok := a.(interface{ Close() error }); ok {
		t.Cleanup(func() { _ = c.Close() })
	}
	return a, err
}

func TestProperties_accepted(t *testing.T) {
	dsn := "u:secret-word@tcp(127.0.0.1:1)/app"
	for name, c := range map[string]struct {
		typ   string
		host  spi.Host
		props map[string]any
		want  string // part of the description
	}{
		"static":          {"static", spi.Host{}, map[string]any{"worker-id": "7"}, "STATIC worker-id=7"},
		"static, dotted":  {"STATIC", spi.Host{}, map[string]any{"worker.id": "0"}, "worker-id=0"},
		"file":            {"FILE", spi.Host{}, map[string]any{"path": "/nowhere"}, "FILE /nowhere namespace=shardkey lease=10s renew=3s"},
		"file, all":       {"FILE", spi.Host{}, map[string]any{"path": "/nowhere", "namespace": "a-b_C.9", "lease": "1m", "renew": "59s"}, "namespace=a-b_C.9 lease=1m0s renew=59s"},
		"short lease":     {"FILE", spi.Host{}, map[string]any{"path": "/nowhere", "lease": "3s"}, "renew=1s"},
		"sql":             {"SQL", spi.Host{}, map[string]any{"dsn": dsn, "table": "w"}, "SQL 127.0.0.1:1/app table w"},
		"sql, connectors": {"SQL", spi.Host{DSN: spi.NewSecret(dsn)}, nil, "table shardkey_worker"},
	} {
		a, err := build(t, c.typ, c.host, c.props)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		have := a.(spi.Describer).Describe()
		if !strings.Contains(have, c.want) || strings.Contains(have, "secret-word") {
			t.Errorf("%s\nhave: %s\nwant: %s", name, have, c.want)
		}
	}
}

func TestProperties_refused(t *testing.T) {
	file := func(more ...string) map[string]any {
		props := map[string]any{"path": "/nowhere"}
		for i := 0; i < len(more); i += 2 {
			props[more[i]] = more[i+1]
		}
		return props
	}
	for name, c := range map[string]struct {
		typ   string
		props map[string]any
		prop  string
	}{
		"static without id":      {"STATIC", nil, "worker-id"},
		"static, a word":         {"STATIC", map[string]any{"worker-id": "seven"}, "worker-id"},
		"file without path":      {"FILE", nil, "path"},
		"file, relative path":    {"FILE", map[string]any{"path": "workers"}, "path"},
		"file, path of a home":   {"FILE", map[string]any{"path": "~/workers"}, "path"},
		"file, parent's path":    {"FILE", map[string]any{"path": "../workers"}, "path"},
		"namespace empty":        {"FILE", file("namespace", ""), "namespace"},
		"namespace up":           {"FILE", file("namespace", ".."), "namespace"},
		"namespace with a slash": {"FILE", file("namespace", "a/b"), "namespace"},
		"namespace too long":     {"FILE", file("namespace", strings.Repeat("n", 65)), "namespace"},
		"lease without unit":     {"FILE", file("lease", "10"), "lease"},
		"lease too short":        {"FILE", file("lease", "99ms"), "lease"},
		"lease too long":         {"FILE", file("lease", "25h"), "lease"},
		"renew as long as lease": {"FILE", file("lease", "5s", "renew", "5s"), "renew"},
		"sql without dsn":        {"SQL", nil, "dsn"},
		"sql, bad dsn":           {"SQL", map[string]any{"dsn": "nonsense"}, "dsn"},
		"ip with a property":     {"IP", map[string]any{"worker-id": "1"}, "worker-id"},
	} {
		_, err := build(t, c.typ, spi.Host{}, c.props)
		if prop, ok := errors.AsType[*spi.PropError](err); !ok || prop.Name != c.prop {
			t.Errorf("%s\nhave: %v\nwant: a PropError of %s", name, err, c.prop)
		}
	}
}

var errPanic = errors.New("the store's own panic")

// fromProps opens an assigner as a custom factory does.
func fromProps(t *testing.T, store workerid.Store, host spi.Host) (spi.WorkerIDAssigner, error) {
	t.Helper()
	p := must.Get(spi.NewProps(nil, host))(t)
	return workerid.NewAssigner(p, func(string) (workerid.Store, workerid.Info, error) {
		return store, workerid.Info{Name: "PANICKY"}, nil
	})
}

// A store that panics is treated as unavailable: the renewal is repeated in the background, and
// the limit doesn't change.
func TestStore_panics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Bool
		s := &workerid.Hooked{Store: new(memory.Records).Open(), Before: func(context.Context) error {
			if on.Load() {
				panic(errPanic)
			}
			return nil
		}}
		a := must.Get(fromProps(t, s, spi.Host{}))(t)
		l := must.Get(a.AcquireWorkerID(t.Context(), 7))(t)
		limit := l.Limit()
		on.Store(true)
		time.Sleep(time.Hour)
		wantMS(t, "limit", l.Limit(), limit)
		must.Is(t, a.(spi.HealthReporter).Health().Err, errPanic, "health")
		must.Is(t, l.Renew(t.Context(), time.Now().UnixMilli()), errPanic, "Renew")
		must.Is(t, must.Err(a.AcquireWorkerID(t.Context(), 7)), errPanic, "AcquireWorkerID")
		on.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if l.Limit() <= time.Now().UnixMilli() {
			t.Error("the renewal did not continue")
		}
		on.Store(true)
		must.Is(t, l.Release(t.Context(), 0), errPanic, "Release")
		must.Is(t, a.(interface{ Close() error }).Close(), errPanic, "Close")
	})
}

func TestNewAssigner_noStore(t *testing.T) {
	must.Fail(t, must.Err(fromProps(t, nil, spi.Host{})))
}

func TestFileStore_conforms(t *testing.T) {
	testserver.NeedsFlock(t)
	workeridtest.TestStore(t, func(t testing.TB) workeridtest.Namespace {
		dir := filepath.Join(t.TempDir(), "made", "when", "absent")
		return workeridtest.Namespace{
			Open: func() (workerid.Store, workerid.Info) { return workerid.Open(workerid.NewFileStore(dir, "orders")) },
			PutForeign: func(id int64) {
				mustWrite(t, filepath.Join(dir, "orders", fmt.Sprintf("%04d.json", id)), "not ours")
			},
		}
	})
}

func TestFileStore_pathIsAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	mustWrite(t, file, "x")
	a := workerid.Assign(t, workerid.NewFileStore(file, "orders"), workerid.Config{})
	_, err := a.AcquireWorkerID(t.Context(), 7)
	must.Is(t, err, spi.ErrStore)
	must.FailWith(t, err, file)
}

func mustWrite(t testing.TB, file, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.Do(t, os.WriteFile(file, []byte(text), 0o644))
}

// A foreign value in place of a live lease's record ends the lease. The process leases another
// worker ID, and Health reports the damaged one.
func TestFileStore_foreignValueEndsTheLease(t *testing.T) {
	testserver.NeedsFlock(t)
	dir := t.TempDir()
	a := workerid.Assign(t, workerid.NewFileStore(dir, "orders"), workerid.Config{})
	l := mustAcquire(t, a, 9)
	file := filepath.Join(dir, "orders", "0000.json")
	mustWrite(t, file, "not ours")
	err := l.Renew(t.Context(), l.Limit())
	if !errors.Is(err, spi.ErrLeaseLost) || !errors.As(err, new(*workerid.ForeignRecordError)) {
		t.Errorf("Renew\nhave: %v\nwant: spi.ErrLeaseLost by a ForeignRecordError", err)
	}
	must.Equal(t, mustAcquire(t, a, 9).WorkerID(), 1, "the next worker ID")
	if h := a.Health(); len(h.Warnings) != 1 || !strings.Contains(h.Warnings[0], "not ours") {
		t.Errorf("warnings\nhave: %q\nwant: one that shows the value", h.Warnings)
	}
	if have, _ := os.ReadFile(file); string(have) != "not ours" {
		t.Errorf("the file\nhave: %q\nwant: as it was", have)
	}
}
