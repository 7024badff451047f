package sharding

import (
	"testing"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

func TestStrategy_geneWay(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64 // the modulus of the number; 0 means none
	}{
		{"t", 1},
		{"t_${k % 4}", 4},
		{"t_${k % 4 + 1}", 4},
		{"t_${(k + 7) % 12}", 12},
		{"t_${(k - 7) % 12}", 0}, // negative below 7
		{"t_${(k * 2) % 12}", 6},
		{"t_${k % 2}_${k % 3}", 6},
		{"t_${(k % 4).intdiv(2) + 1}", 4},
		{"t_${k.intdiv(10) % 4}", 40},
		{"t_${k.intdiv(100) % 4}", 400},
		{"t_${(k.intdiv(16) + k) % 16}", 256},
		{"t_${Math.abs(k) % 5}", 5},
		{"t_${Math.floorMod(k, 6)}", 6},
		{"t_${k & 6}", 8},
		{"t_${(k >> 2) & 1}", 8},
		{"t_${(k >> 3) % 3}", 24},
		{"t_${k % 4096}", 4096},
		{"t_${(k % 64).toString().padLeft(2, '0')}", 64},
		{"t_${k % 2 == 0 ? '' : '_' + k % 2}", 2},
		{"t_${k > 10 ? k % 4 : 0}", 0},
		{"t_${k > 1000000000000 ? 1 : 0}", 0},
		{"t_${k}", 0},
		{"t_${k.hashCode() % 4}", 0},
		{"t_${k.toString().substring(1)}", 0},
		{"t_${-k % 4}", 4},
		{"t_${k % 2000000}", 0},
		{"t_${k ^ 3}", 0},
	} {
		s := newInlineStrategy(t, c.text, expr.Null)
		if way, have := s.ShardBitsWay(); have != c.want || way.IsHash() && have > 1 {
			t.Errorf("%s\nhave: %d, %v\nwant: %d", c.text, have, way, c.want)
		}
	}
	for _, c := range []struct {
		text  string
		class expr.Class
		want  int64
	}{{"t_${k % 8}", expr.Integer, 8}, {"t_${k % 8}", expr.String, 0}, {"t_${Math.abs(k.hashCode()) % 8}", expr.String, 8}} {
		if _, have := newInlineStrategy(t, c.text, c.class).ShardBitsWay(); have != c.want {
			t.Errorf("%s of a %s\nhave: %d\nwant: %d", c.text, c.class, have, c.want)
		}
	}
}

func newInlineStrategy(t *testing.T, expression string, class expr.Class) *Strategy {
	t.Helper()
	a, err := Compile("INLINE", map[string]string{"algorithm-expression": expression}, []string{"k"})
	if err != nil {
		t.Fatal(err)
	}
	return a.Over([]string{"t_0"}, Naming{}, class)
}
