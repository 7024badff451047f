package snowflake

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

func registered(t *testing.T, typ string, host spi.Host, values map[string]any) (*generator, error) {
	t.Helper()
	props, err := spi.NewProps(values, host)
	if err != nil {
		t.Fatal(err)
	}
	return registeredWith(t, typ, props)
}

func registeredWith(t *testing.T, typ string, props spi.Props) (*generator, error) {
	t.Helper()
	g, err := spi.NewKeyGenerator(typ, props)
	if err != nil {
		if g != nil {
			t.Errorf("\nhave: %v beside an error\nwant: nil", g)
		}
		return nil, err
	}
	t.Cleanup(func() { _ = g.(*generator).Close() })
	return g.(*generator), nil
}

func TestProperties_checked(t *testing.T) {
	for _, tt := range []struct {
		typ   string
		props map[string]any
		want  string
	}{
		{"SNOWFLAKE", map[string]any{"worker.id": "123"},
			"SNOWFLAKE 41-10-12 (time-worker-sequence bits), tick 1ms, epoch 2016-11-01T00:00:00Z, worker 123, clock-back wait 10ms, vibration 0..1"},
		{"snowflake", nil,
			"SNOWFLAKE 41-10-12 (time-worker-sequence bits), tick 1ms, epoch 2016-11-01T00:00:00Z, worker 0 (not set), clock-back wait 10ms, vibration 0..1"},
		{"snowflake", map[string]any{"worker-id": "0", "max.vibration.offset": "4095", "max.tolerate.time.difference.milliseconds": "500"},
			"SNOWFLAKE 41-10-12 (time-worker-sequence bits), tick 1ms, epoch 2016-11-01T00:00:00Z, worker 0, clock-back wait 500ms, vibration 0..4095"},
		{"SNOWFLAKE", map[string]any{"worker-id": "15", "layout": "js53", "epoch": "2020-01-01", "clock-back": "Borrow", "max-vibration-offset": "0"},
			"SNOWFLAKE js53 (time-worker-sequence bits), tick 1s, epoch 2020-01-01T00:00:00Z, worker 15, clock-back borrow, vibration 0..0"},
		{"SNOWFLAKE_RING", map[string]any{"worker-id": "1", "layout": "39-16-8", "tick": "10ms", "clock-back": "error"},
			"SNOWFLAKE_RING 39-16-8 (time-worker-sequence bits), tick 10ms, epoch 2016-11-01T00:00:00Z, worker 1, clock-back error, vibration 0..1, ring of 200"},
		{"SNOWFLAKE_RING", map[string]any{"worker-id": "2", "ring-size": "5", "max-tolerate-time-difference-milliseconds": "0"},
			"SNOWFLAKE_RING 41-10-12 (time-worker-sequence bits), tick 1ms, epoch 2016-11-01T00:00:00Z, worker 2, clock-back wait 0s, vibration 0..1, ring of 5"},
	} {
		g, err := registered(t, tt.typ, spi.Host{}, tt.props)
		if err != nil {
			t.Errorf("%v\nhave: %v\nwant: a generator", tt.props, err)
		} else if have := g.Describe(); have != tt.want {
			t.Errorf("%v\nhave: %s\nwant: %s", tt.props, have, tt.want)
		}
	}
}

func TestProperties_refused(t *testing.T) {
	for _, props := range []map[string]any{
		{"worker-id": "1024"},
		{"worker-id": "-1"},
		{"worker-id": "one"},
		{"worker-id": "16", "layout": "js53"},
		{"max-vibration-offset": "4096"},
		{"max-vibration-offset": "-1"},
		{"max-tolerate-time-difference-milliseconds": "-1"},
		{"epoch": "yesterday"},
		{"tick": "10"},
		{"tick": "1ns"},
		{"clock-back": "ignore"},
		{"ring-size": "5"},
		{"worker-id-assigner": "cluster"},
		{"size": "21"},
	} {
		_, err := registered(t, "SNOWFLAKE", spi.Host{}, props)
		var prop *spi.PropError
		if !errors.As(err, &prop) {
			t.Errorf("%v\nhave: %v\nwant: a PropError", props, err)
		}
	}
	for _, props := range []map[string]any{{"ring-size": "1"}, {"ring-size": "65537"}} {
		if _, err := registered(t, "SNOWFLAKE_RING", spi.Host{}, props); err == nil {
			t.Errorf("%v\nhave: no error\nwant: one", props)
		}
	}
	for _, props := range []map[string]any{{"layout": "42-10-12"}, {"layout": "js54"}, {"epoch": "2090-01-01"}, {"layout": "38-10-12"}} {
		if _, err := registered(t, "SNOWFLAKE", spi.Host{}, props); err == nil || !strings.Contains(err.Error(), "SNOWFLAKE: ") {
			t.Errorf("%v\nhave: %v\nwant: an error that names the type", props, err)
		}
	}
}

func TestProperties_assigner(t *testing.T) {
	withAssigner := func(values map[string]any) (*generator, error) {
		find := func(name string) (spi.WorkerIDAssigner, error) {
			if name != "cluster" {
				return nil, errors.New("no such assigner")
			}
			return givenID(77), nil
		}
		props, err := spi.NewProps(values, spi.Host{WorkerIDAssigner: find})
		if err != nil {
			t.Fatal(err)
		}
		return registeredWith(t, "SNOWFLAKE", props)
	}
	g, err := withAssigner(map[string]any{"worker-id-assigner": "cluster"})
	if err != nil {
		t.Fatal(err)
	}
	mustKeys(t, g, 1)
	if have := *g.Health().WorkerID; have != 77 {
		t.Errorf("\nhave: worker %d\nwant: 77", have)
	}
	for _, props := range []map[string]any{{"worker-id-assigner": "other"}, {"worker-id-assigner": "cluster", "worker-id": "1"}} {
		if _, err := withAssigner(props); err == nil {
			t.Errorf("%v\nhave: no error\nwant: one", props)
		}
	}
}

// Clusters whose processes are all worker 0 are the commonest cause of
// duplicate keys.
func TestGenerator_unsetWorkerIDWarnsOnce(t *testing.T) {
	var log bytes.Buffer
	host := spi.Host{Clock: newHandClock(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	g, err := registered(t, "SNOWFLAKE", host, nil)
	if err != nil {
		t.Fatal(err)
	}
	if log.Len() != 0 {
		t.Errorf("\nhave: %s\nwant: nothing before the first key", &log)
	}
	for range 3 {
		if _, err := g.Next(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if have := strings.Count(log.String(), "no worker id is set"); have != 1 {
		t.Errorf("\nhave: %s\nwant: one warning", &log)
	}
	if have := g.Health().Warnings; len(have) != 1 || !strings.Contains(have[0], "no worker id is set") {
		t.Errorf("\nhave: %q\nwant: the warning", have)
	}
}
