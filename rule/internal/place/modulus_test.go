package place

import (
	"testing"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

func TestStrategy_modulus(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64 // 0 means none
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
		if have := s.modulus(); have != c.want {
			t.Errorf("%s\nhave: %d\nwant: %d", c.text, have, c.want)
		}
	}
	if have := newInlineStrategy(t, "t_${k % 8}", expr.Integer).modulus(); have != 8 {
		t.Errorf("of an Integer\nhave: %d\nwant: 8", have)
	}
	if have := newInlineStrategy(t, "t_${k % 8}", expr.String).modulus(); have != 0 {
		t.Errorf("of a String\nhave: %d\nwant: 0", have)
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
