package workerid_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	_ "github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

func build(t *testing.T, typ string, host spi.Host, props map[string]any) (spi.WorkerIDAssigner, error) {
	t.Helper()
	p, err := spi.NewProps(props, host)
	if err != nil {
		t.Fatal(err)
	}
	a, err := spi.NewWorkerIDAssigner(typ, p)
	if c, ok := a.(interface{ Close() error }); ok {
		t.Cleanup(func() { _ = c.Close() })
	}
	return a, err
}

func TestProperties_typesAreRegistered(t *testing.T) {
	have := strings.Join(spi.WorkerIDAssignerTypes(), " ")
	for _, typ := range []string{"STATIC", "FILE", "SQL", "IP", "HOSTNAME"} {
		if !strings.Contains(have, typ) {
			t.Errorf("have: %s\nwant: %s among them", have, typ)
		}
	}
}

func TestProperties_accepted(t *testing.T) {
	dsn := "u:secret-word@tcp(127.0.0.1:1)/app"
	for name, c := range map[string]struct {
		typ   string
		host  spi.Host
		props map[string]any
		want  string // in the description
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
		"static without id":       {"STATIC", nil, "worker-id"},
		"static, negative":        {"STATIC", map[string]any{"worker-id": "-1"}, "worker-id"},
		"static, a word":          {"STATIC", map[string]any{"worker-id": "seven"}, "worker-id"},
		"static with lease":       {"STATIC", map[string]any{"worker-id": "1", "lease": "10s"}, "lease"},
		"file without path":       {"FILE", nil, "path"},
		"file with dsn":           {"FILE", file("dsn", "x"), "dsn"},
		"namespace empty":         {"FILE", file("namespace", ""), "namespace"},
		"namespace up":            {"FILE", file("namespace", ".."), "namespace"},
		"namespace with a slash":  {"FILE", file("namespace", "a/b"), "namespace"},
		"namespace too long":      {"FILE", file("namespace", strings.Repeat("n", 65)), "namespace"},
		"lease without unit":      {"FILE", file("lease", "10"), "lease"},
		"lease too short":         {"FILE", file("lease", "99ms"), "lease"},
		"lease too long":          {"FILE", file("lease", "25h"), "lease"},
		"renew as long as lease":  {"FILE", file("lease", "5s", "renew", "5s"), "renew"},
		"renew longer than lease": {"FILE", file("renew", "11s"), "renew"},
		"sql without dsn":         {"SQL", nil, "dsn"},
		"sql, bad dsn":            {"SQL", map[string]any{"dsn": "nonsense"}, "dsn"},
		"sql, bad table":          {"SQL", map[string]any{"dsn": "u@tcp(h:1)/d", "table": "a.b.c"}, "table"},
		"ip with a property":      {"IP", map[string]any{"worker-id": "1"}, "worker-id"},
		"hostname with one":       {"HOSTNAME", map[string]any{"namespace": "a"}, "namespace"},
	} {
		_, err := build(t, c.typ, spi.Host{}, c.props)
		var prop *spi.PropError
		if !errors.As(err, &prop) || prop.Name != c.prop {
			t.Errorf("%s\nhave: %v\nwant: a PropError of %s", name, err, c.prop)
		}
	}
}

func TestStatic_isNotLeased(t *testing.T) {
	a, err := build(t, "STATIC", spi.Host{}, map[string]any{"worker-id": "7"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := a.AcquireWorkerID(t.Context(), 7)
	if err != nil || l.WorkerID() != 7 || l.Floor() != 0 || l.Limit() != math.MaxInt64 {
		t.Errorf("have: %v, %v\nwant: worker id 7 without limit", l, err)
	}
	if err := errors.Join(l.Renew(t.Context(), 1<<60), l.Release(t.Context(), 5)); err != nil {
		t.Error(err)
	}
	if _, err := a.AcquireWorkerID(t.Context(), 6); !errors.Is(err, spi.ErrNoWorkerID) || !strings.Contains(err.Error(), "0..6") {
		t.Errorf("have: %v\nwant: spi.ErrNoWorkerID that names 0..6", err)
	}
	if h := a.(spi.HealthReporter).Health(); *h.WorkerID != 7 || len(h.Warnings) != 1 {
		t.Errorf("have: %+v\nwant: worker id 7 with a warning", h)
	}
}
