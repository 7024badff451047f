package driver

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// readyKeys is a generator that says whether it is ready.
type readyKeys struct {
	textKeys
	err error
}

func (g *readyKeys) Ready(ctx context.Context) error {
	if g.err == nil {
		return ctx.Err()
	}
	return g.err
}

// healthyKeys has health, and does not say whether it is ready.
type healthyKeys struct {
	textKeys
	err error
}

func (g *healthyKeys) Health() spi.Health { return spi.Health{Err: g.err} }

type panickingKeys struct{ textKeys }

func (panickingKeys) Ready(context.Context) error { panic("boom") }

func TestReady_namesGeneratorAndTables(t *testing.T) {
	asked, healthy := &readyKeys{}, &healthyKeys{}
	table := func(name, generator string) rule.TableConfig {
		return rule.TableConfig{Name: name, KeyConfig: rule.KeyConfig{Column: "id", Generator: generator}}
	}
	r, err := rule.New(rule.Config{
		Tables: []rule.TableConfig{table("a", "asked"), table("b", "healthy"), table("c", "ASKED"), table("d", "plain"), table("e", "asked"), table("f", "asked")},
		Generators: map[string]rule.GeneratorConfig{
			"asked": {Generator: asked}, "healthy": {Generator: healthy}, "plain": {Generator: textKeys{}},
			"unused": {Generator: &readyKeys{err: errFake}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	db, c := idleDB(t, r)
	if err := c.Ready(t.Context()); err != nil {
		t.Errorf("have: %v\nwant: ready", err)
	}
	asked.err = spi.ErrLeaseLost
	err = c.Ready(t.Context())
	var not *NotReadyError
	if !errors.As(err, &not) || !errors.Is(err, spi.ErrLeaseLost) || not.Generator != "asked" || strings.Join(not.Tables, " ") != "a c e f" {
		t.Errorf("have: %v\nwant: a NotReadyError for asked", err)
	}
	if want := "shardkey: not ready: generator asked makes no keys for a, c, e and 1 more: worker-id lease lost"; err.Error() != want {
		t.Errorf("\nhave: %v\nwant: %s", err, want)
	}
	healthy.err = spi.ErrStore
	if err := c.Ready(t.Context()); !errors.Is(err, spi.ErrStore) || !errors.Is(err, spi.ErrLeaseLost) || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("have: %v\nwant: both", err)
	}
	asked.err, healthy.err = nil, nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Ready(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("have: %v\nwant: the context's error", err)
	}
	noError(t, db.Close())
	if err := c.Ready(t.Context()); !errors.Is(err, spi.ErrClosed) {
		t.Errorf("have: %v\nwant: spi.ErrClosed", err)
	}
}

func TestReady_panicIsAnError(t *testing.T) {
	r := must(rule.New(rule.Config{
		Tables:     []rule.TableConfig{{Name: "t", KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}}},
		Generators: map[string]rule.GeneratorConfig{"g": {Generator: panickingKeys{}}},
	}))(t)
	_, c := idleDB(t, r)
	var not *NotReadyError
	if err := c.Ready(t.Context()); !errors.As(err, &not) || !strings.Contains(err.Error(), "panicked: boom") {
		t.Errorf("have: %v\nwant: the panic", err)
	}
}
