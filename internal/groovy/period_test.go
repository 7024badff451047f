package groovy

import (
	"math/rand/v2"
	"testing"
)

func TestTemplate_Period(t *testing.T) {
	for _, c := range []struct {
		text string
		mod  int64 // 0 for none
		min  int64
	}{
		{"t", 1, 0},
		{"t_${k % 4}", 4, 0},
		{"t_${k % 4 + 1}", 4, 0},
		{"t_${(k + 7) % 12}", 12, 0},
		{"t_${(k - 7) % 12}", 12, 7},
		{"t_${(k * 2) % 12}", 6, 0},
		{"t_${k % 2}_${k % 3}", 6, 0},
		{"t_${(k % 4).intdiv(2) + 1}", 4, 0},
		{"t_${k.intdiv(10) % 4}", 40, 0},
		{"t_${(k / 10).intValue() % 4}", 40, 0},
		{"t_${((long)(k / 10)) % 4}", 40, 0},
		{"t_${(k.intdiv(16) + k) % 16}", 256, 0},
		{"t_${Math.abs(k) % 5}", 5, 0},
		{"t_${Math.floorMod(k, 6)}", 6, 0},
		{"t_${k.abs() % 5}", 5, 0},
		{"t_${k.longValue() % 5}", 5, 0},
		{"t_${Long.valueOf(k) % 5}", 5, 0},
		{"t_${k & 6}", 8, 0},
		{"t_${3 & k}", 4, 0},
		{"t_${(k >> 2) & 1}", 8, 0},
		{"t_${(k >> 3) % 3}", 24, 0},
		{"t_${(k % 64).toString().padLeft(2, '0')}", 64, 0},
		{"t_${String.format('%02d', k % 64)}", 64, 0},
		{"t_${k % 2 == 0 ? '' : '_' + k % 2}", 2, 0},
		{"t_${k > 10 ? k % 4 : 0}", 4, 11},
		{"t_${((k as long) % 4) as String}", 4, 0},
		{"t_${['a', 'b', 'c'][(int) (k % 3)]}", 3, 0},
		{"t_${(k + other) % 4}", 4, 0},
		{"t_${k % other}", 9, 0},
		{"t_${k}", 0, 0},
		{"t_${k.hashCode() % 4}", 0, 0},
		{"t_${k.toString().substring(1)}", 0, 0},
		{"t_${k * k % 4}", 0, 0},
		{"t_${-k % 4}", 0, 0},
		{"t_${k % 2000000}", 0, 0},
		{"t_${k ^ 3}", 0, 0},
	} {
		template, err := Compile(c.text, []string{"other", "k"})
		if err != nil {
			t.Fatal(err)
		}
		values := []Value{OfInt(9), {}}
		p, ok := template.Period(1, Long, values)
		if ok != (c.mod != 0) || ok && (p.Mod != c.mod || p.Min != c.min) {
			t.Errorf("%s\nhave: %+v, %v\nwant: modulus %d from %d", c.text, p, ok, c.mod, c.min)
		}
		if !ok {
			continue
		}
		textOf := func(k int64) string {
			values[1] = OfLong(k)
			b, err := template.Append(nil, values)
			if err != nil {
				t.Fatalf("%s of %d: %v", c.text, k, err)
			}
			return string(b)
		}
		random := rand.New(rand.NewPCG(1, 2))
		span := p.Max - p.Min - p.Mod
		for i := range 2000 {
			k := p.Min + random.Int64N(span)
			if i%2 == 0 {
				k = p.Min + random.Int64N(1000)
			}
			if a, b := textOf(k), textOf(k+p.Mod); a != b {
				t.Fatalf("%s\nhave: %s of %d, %s of %d\nwant: one text, %d apart", c.text, a, k, b, k+p.Mod, p.Mod)
			}
			if a, b := textOf(k), textOf(k%p.Mod+(p.Min+p.Mod-1)/p.Mod*p.Mod); a != b {
				t.Fatalf("%s\nhave: %s of %d, %s of its least\nwant: one text", c.text, a, k, b)
			}
		}
	}
}
