package spi_test

import (
	"context"
	"errors"
	"strings"
	"testing"

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
	if !made.closed {
		t.Error("have: a generator left open after its properties were refused\nwant: closed")
	}
}

func TestProps_workerIDAssignersComeFromTheRule(t *testing.T) {
	values, asked := map[string]any{"worker.id.assigner": "cluster"}, ""
	props := must.Get(spi.NewProps(values, spi.Host{}))(t)
	if _, err := props.WorkerIDAssigner("worker-id-assigner"); err == nil || !strings.Contains(err.Error(), "no workerIdAssigners") {
		t.Errorf("have: %v\nwant: an error without assigners", err)
	}
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
