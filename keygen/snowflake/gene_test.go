package snowflake

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/shardingtest"
	"github.com/shardkey/shardkey/spi"
)

func TestGene_properties(t *testing.T) {
	for _, tt := range []struct {
		props map[string]any
		want  string // in the error
	}{
		{map[string]any{"gene-column": "user_id", "gene-bits": "4"}, ""},
		{map[string]any{"gene-column": " user_id ", "gene-bits": 12}, ""},
		{map[string]any{"gene-column": "user_id", "gene-bits": 15, "layout": "js53"}, ""},
		{map[string]any{"gene-column": "user_id", "gene-bits": 16, "layout": "41-4-18"}, ""},
		{map[string]any{"gene-column": "user_id", "gene-bits": 17, "layout": "41-4-18"}, "an integer in 1..16"},
		{map[string]any{"gene-column": "user_id"}, "gene-bits beside it, 1 to 12"},
		{map[string]any{"gene-bits": 4}, "beside gene-bits"},
		{map[string]any{"gene-column": "", "gene-bits": 4}, "beside gene-bits"},
		{map[string]any{"gene-column": " "}, "beside gene-bits"},
		{map[string]any{"gene-column": "user_id", "gene-bits": 0}, "an integer in 1..12"},
		{map[string]any{"gene-column": "user_id", "gene-bits": 13}, "an integer in 1..12"},
		{map[string]any{"gene-column": "user_id", "gene-bits": "four"}, "an integer in 1..12"},
		{map[string]any{"gene-column": "user_id", "gene-bits": 9, "layout": "41-14-8"}, "an integer in 1..8"},
		{map[string]any{"gene-column": "user_id", "gene-bits": 1, "layout": "41-10-0"}, "no sequence"},
		{map[string]any{"gene-column": "user_id", "gene-bits": 4, "gene-colum": "user_id"}, "gene-colum"},
	} {
		for _, typ := range []string{"SNOWFLAKE", "SNOWFLAKE_RING"} {
			props := map[string]any{"worker-id": "5"}
			for name, value := range tt.props {
				props[name] = fmt.Sprint(value)
			}
			p, err := spi.NewProps(props, spi.Host{})
			if err != nil {
				t.Fatal(err)
			}
			g, err := spi.NewKeyGenerator(typ, p)
			if tt.want != "" {
				var prop *spi.PropError
				if !errors.As(err, &prop) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v\nhave: %v\nwant: %s", tt.props, err, tt.want)
				}
				continue
			}
			if err != nil {
				t.Errorf("%v\nhave: %v", tt.props, err)
				continue
			}
			column, bits := g.(spi.GeneKeyGenerator).Gene()
			if column != "user_id" || fmt.Sprint(bits) != strings.TrimSpace(fmt.Sprint(tt.props["gene-bits"])) ||
				!strings.Contains(g.(spi.Describer).Describe(), fmt.Sprintf("lowest %d bits the gene of user_id", bits)) {
				t.Errorf("%v\nhave: %s, %d, %s", tt.props, column, bits, g.(spi.Describer).Describe())
			}
		}
	}
	for _, cfg := range []Config{{GeneBits: 4}, {GeneColumn: "u"}, {GeneColumn: "u", GeneBits: -1}, {GeneColumn: "u", GeneBits: 13}, {GeneColumn: "u", GeneBits: 5, Layout: Layout{TimeBits: 41, SequenceBits: 4}}} {
		if g, err := New(cfg); err == nil || g != nil {
			t.Errorf("%+v\nhave: no error", cfg)
		}
	}
}

// A generator whose keys carry a gene makes none without its row.
func TestGene_noKeysWithoutRows(t *testing.T) {
	g := mustNew(t, Config{WorkerID: 3, GeneColumn: "user_id", GeneBits: 4})
	_, err := g.Next(t.Context())
	_, boxed := g.GenerateKeys(t.Context(), spi.Column{}, 1)
	for _, err := range []error{err, boxed, g.GenerateInt64Keys(t.Context(), spi.Column{}, make([]int64, 3))} {
		if err == nil || !strings.Contains(err.Error(), "the gene of column user_id") {
			t.Errorf("have: %v\nwant: an error", err)
		}
	}
	key := fittingKeys(t, g, 1, shardingtest.Mod(16, 9))[0]
	parts, err := g.DecodeKey(key)
	if err != nil || parts.Gene != 9 || parts.GeneBits != 4 || parts.Sequence&15 != 9 || Gene(key, 4) != 9 || Gene(key, 3) != 1 || Gene(key, 0) != 0 || Gene(1<<63-1, 62) != 1<<62-1 {
		t.Errorf("have: %+v, %v", parts, err)
	}
	if parts, _ := mustNew(t, Config{WorkerID: 3}).DecodeKey(key); parts.GeneBits != 0 || parts.Gene != 0 {
		t.Errorf("have: %+v\nwant: no gene", parts)
	}
}

// TestGene_noKeyTwiceWhateverTheBits takes keys of generators that share a worker id and
// differ in their gene bits, some of which are closed and opened with other bits,
// while the clock steps: as when one rule replaces another.
func TestGene_noKeyTwiceWhateverTheBits(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 13))
		clock := newHandClock()
		ring := []int{1, 200}[seed%2]
		open := func() *Generator {
			cfg := Config{Clock: clock, WorkerID: 7, RingSize: ring, ClockBack: ClockBackBorrow, MaxVibrationOffset: rnd.IntN(17) - 1}
			if bits := rnd.IntN(13); bits > 0 {
				cfg.GeneColumn, cfg.GeneBits = "user_id", bits
			}
			return mustNew(t, cfg)
		}
		generators := []*Generator{open(), open(), open()}
		seen := map[int64]bool{}
		for range 400 {
			i := rnd.IntN(len(generators))
			g := generators[i]
			keys, gene := make([]int64, 1+rnd.IntN(4)), int64(0)
			var err error
			if bits := g.cfg.GeneBits; bits > 0 {
				gene = rnd.Int64N(1 << bits)
				err = g.GenerateFittingKeys(t.Context(), spi.Column{}, keys, shardingtest.Mod(1<<bits, gene))
			} else {
				err = g.GenerateInt64Keys(t.Context(), spi.Column{}, keys)
			}
			if err != nil {
				t.Fatal(err)
			}
			for j, key := range keys {
				if seen[key] || j > 0 && key <= keys[j-1] || Gene(key, g.cfg.GeneBits) != gene {
					t.Fatalf("seed %d, %d bits, gene %d\nhave: %v, seen: %v", seed, g.cfg.GeneBits, gene, keys, seen[key])
				}
				seen[key] = true
			}
			switch rnd.IntN(8) {
			case 0:
				clock.step(time.Duration(rnd.IntN(5)) * ms)
			case 1:
				clock.step(-time.Duration(rnd.IntN(9)) * ms)
			case 2:
				_ = g.Close()
				generators[i] = open()
			}
		}
	}
}
