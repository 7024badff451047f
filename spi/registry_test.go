package spi_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

// keys is a generator that records whether it was closed.
type keys struct{ closed bool }

func (*keys) GenerateKeys(context.Context, spi.Column, int) ([]any, error) { return nil, nil }

func (k *keys) Close() error { k.closed = true; return nil }

func TestNewKeyGenerator_errorsHaveOnePrefix(t *testing.T) {
	made := new(keys)
	register := func(typ string, g spi.KeyGenerator, err error) {
		spi.RegisterKeyGenerator(typ, func(p spi.Props) (spi.KeyGenerator, error) {
			_, propErr := p.Int("n", 1, 1, 9)
			return g, errors.Join(err, propErr)
		})
	}
	register("T_MADE", made, nil)
	register("T_NIL", nil, nil)
	register("T_NIL_POINTER", (*keys)(nil), nil)
	register("T_BROKEN", nil, errors.New("shardkey: layout: too wide"))
	for _, c := range []struct {
		typ, prop, value string
		want             string
	}{
		{"t_none", "n", "1", `shardkey: unknown key generator type "t_none"; registered: `},
		{"t_made", "n", "10", `shardkey: key generator T_MADE: property "n": expected an integer in 1..9, found "10"`},
		{"t_made", "m", "1", `shardkey: key generator T_MADE: unknown property "m"; known: n`},
		{"t_nil", "n", "1", "shardkey: key generator T_NIL: the factory returned nil"},
		{"t_nil_pointer", "n", "1", "shardkey: key generator T_NIL_POINTER: the factory returned nil"},
		{"t_broken", "n", "1", "shardkey: key generator T_BROKEN: layout: too wide"},
	} {
		props := must.Get(spi.NewProps(map[string]any{c.prop: c.value}, spi.Host{}))(t)
		g, err := spi.NewKeyGenerator(c.typ, props)
		if g != nil || err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Count(err.Error(), "shardkey:") != 1 {
			t.Errorf("%s\nhave: %v, %v\nwant: %s", c.typ, g, err, c.want)
		}
	}
	must.Equal(t, made.closed, true, "a generator whose properties were refused is closed")
}

func TestProps_workerIDAssignersComeFromTheRule(t *testing.T) {
	values, asked := map[string]any{"worker.id.assigner": "cluster"}, ""
	props := must.Get(spi.NewProps(values, spi.Host{}))(t)
	must.FailWith(t, must.Err(props.WorkerIDAssigner("worker-id-assigner")), "no workerIdAssigners")
	props = must.Get(spi.NewProps(values, spi.Host{WorkerIDAssigner: func(name string) (spi.WorkerIDAssigner, error) {
		asked = name
		return nil, nil
	}}))(t)
	if _, err := props.WorkerIDAssigner("worker-id-assigner"); err != nil || asked != "cluster" {
		t.Errorf("have: %q, %v\nwant: cluster", asked, err)
	}
	if a, err := props.WorkerIDAssigner("other"); a != nil || err != nil {
		t.Errorf("have: %v, %v\nwant: none without the property", a, err)
	}
}

func TestStoreError_text(t *testing.T) {
	kind, cause := errors.New("kind"), errors.New("cause")
	for want, e := range map[string]*spi.StoreError{
		"shardkey: REDIS at h:1: cause":                   {Store: "REDIS at h:1", Cause: cause},
		"shardkey: REDIS at h:1: cause; do it":            {Store: "REDIS at h:1", Cause: cause, Advice: "do it"},
		"shardkey: REDIS at h:1: no number: cause; do it": {Store: "REDIS at h:1", Detail: "no number", Cause: cause, Advice: "do it"},
		"shardkey: REDIS at h:1: the row is bad; fix it.": {Store: "REDIS at h:1", Detail: "the row is bad", Kind: kind, Advice: "fix it."},
	} {
		if e.Error() != want || !errors.Is(e, spi.ErrStore) || errors.Is(e, kind) != (e.Kind != nil) || errors.Is(e, cause) != (e.Cause != nil) {
			t.Errorf("have: %v\nwant: %s", e, want)
		}
	}
}

func TestHealth_jsonLeavesOutWhatIsNotSet(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, c := range []struct {
		name   string
		health spi.Health
		want   string
	}{
		{"nothing", spi.Health{}, `{}`},
		// A pointer to 0 is a worker ID, and nil is none.
		{"worker 0", spi.Health{WorkerID: new(int64(0))}, `{"workerId":0}`},
		{"a figure of 0 is one", spi.Health{Waits: new(int64), Clock: &spi.ClockHealth{Steps: new(int64)}}, `{"waits":0,"clockSteps":0,"borrowedSeconds":0}`},
		{"errors have texts", spi.Health{
			Err:       errors.New("shardkey: key store: refused"),
			LastError: errors.New("shardkey: closed"), LastErrorTime: at,
			Errors: map[string]int64{"store": 2},
		}, `{"error":"shardkey: key store: refused","errors":{"store":2},"lastErrorTime":"2026-02-03T04:05:06Z","lastError":"shardkey: closed"}`},
		{"durations are seconds", spi.Health{Waits: new(int64(2)), Waited: 1500 * time.Millisecond,
			Lease:   &spi.LeaseHealth{Limit: at, Length: 10 * time.Second, Renewals: 3},
			Segment: &spi.SegmentHealth{Left: new(int64(7)), Size: 100, Fetches: 2, FetchTime: time.Millisecond}},
			`{"waits":2,"leaseLimit":"2026-02-03T04:05:06Z","leaseRenewals":3,"leasesLost":0,"segmentLeft":7,"segmentSize":100,"fetches":2,` +
				`"waitedSeconds":1.5,"leaseSeconds":10,"fetchSeconds":0.001}`},
	} {
		have, err := json.Marshal(map[string]spi.Health{"g": c.health})
		if want := `{"g":` + c.want + `}`; err != nil || string(have) != want {
			t.Errorf("%s\nhave: %s, %v\nwant: %s", c.name, have, err, want)
		}
	}
}

// readTLS reads the TLS properties, and the files that they name.
func readTLS(t *testing.T, values map[string]any) (config *tls.Config, on bool, err error) {
	t.Helper()
	p := must.Get(spi.NewProps(values, spi.Host{}))(t)
	open, err := p.TLS()
	if err != nil || open == nil {
		return nil, false, err
	}
	config, err = open()
	return config, true, err
}

func TestTLS_modes(t *testing.T) {
	for _, c := range []struct {
		values       map[string]any
		on, insecure bool
	}{
		{nil, false, false},
		{map[string]any{"tls": "false"}, false, false},
		{map[string]any{"tls": "FALSE"}, false, false},
		{map[string]any{"tls": "true"}, true, false},
		{map[string]any{"tls": "True"}, true, false},
		{map[string]any{"tls": "skip-verify"}, true, true},
	} {
		config, on, err := readTLS(t, c.values)
		if err != nil || on != c.on || (config != nil) != c.on || config != nil && config.InsecureSkipVerify != c.insecure {
			t.Errorf("%v\nhave: %v, on: %v, %v\nwant: on: %v, unchecked: %v", c.values, config, on, err, c.on, c.insecure)
		}
	}
}

func TestTLS_refused(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	must.Do(t, os.WriteFile(text, []byte("no PEM"), 0o600))
	for _, c := range []struct {
		values map[string]any
		want   string
		prop   bool // refused before a file is read
	}{
		{map[string]any{"tls": ""}, "skip-verify", true},
		{map[string]any{"tls": "true", "tls-cert": "c.pem"}, "both tls-cert and", true},
		{map[string]any{"tls": "true", "tls-key": "k.pem"}, "or neither", true},
		{map[string]any{"tls-cert": "c.pem", "tls-key": "k.pem"}, "tls: true next to it", true},
		{map[string]any{"tls": text}, "no certificate", false},
		{map[string]any{"tls": text + "2"}, fs.ErrNotExist.Error(), false},
		{map[string]any{"tls": "true", "tls-cert": text, "tls-key": text}, "tls-cert", false},
	} {
		_, on, err := readTLS(t, c.values)
		if on == c.prop || errors.As(err, new(*spi.PropError)) != c.prop || err == nil ||
			!strings.Contains(err.Error(), c.want) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v\nhave: %v\nwant: an error with %q", c.values, err, c.want)
		}
	}
}

// An invalid address is shown unless it may contain a password.
func TestProps_wrongAddress(t *testing.T) {
	for address, c := range map[string]struct{ valid, shown bool }{
		"10.0.0.1:6379":                {true, true},
		"[::1]:6379":                   {true, true},
		"redis.example:6379":           {true, true},
		"redis.example":                {false, true},
		"redis.example:port":           {false, true},
		"http://redis.example:1":       {false, true},
		"redis://:hidden@host:6379":    {false, false},
		"hidden@host:6379":             {false, false},
		"host:6379,password=hidden":    {false, false},
		"user:12/hidden@host:6379":     {false, false},
		"host:6379?password=hidden":    {false, false},
		"https://user:hidden@host:1/x": {false, false},
	} {
		p := must.Get(spi.NewProps(map[string]any{"addr": address}, spi.Host{}))(t)
		if err := p.CheckAddress("addr", address, "host:port"); (err == nil) != c.valid {
			t.Errorf("%s\nhave: %v\nwant: valid %v", address, err, c.valid)
		}
		err := p.CheckAddress("addr", "", "host:port")
		bad, ok := errors.AsType[*spi.PropError](err)
		if !ok || (bad.Value == address) != c.shown || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s\nhave: %v\nwant: shown %v", address, err, c.shown)
		}
	}
}
