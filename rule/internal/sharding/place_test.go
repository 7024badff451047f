package sharding

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule/internal/expr"
)

func mustStrategy(t testing.TB, typ string, props map[string]string, count int) *Strategy {
	t.Helper()
	a := must.Get(Compile(typ, props, []string{"id"}))(t)
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("t_order_%d", i)
	}
	return a.Over(names, NamingOf("t_order", names), expr.Null)
}

func countProps(n int64) map[string]string {
	return map[string]string{"sharding-count": strconv.FormatInt(n, 10)}
}

// TestPlace_ofKeys increments the sequence number until a key belongs to the table, as the vectors
// do.
func TestPlace_ofKeys(t *testing.T) {
	const epoch = 1477929600000
	vectors := loadVectors(t).KeyPick
	if len(vectors) < 100 {
		t.Fatal(len(vectors))
	}
	for _, v := range vectors {
		s := mustStrategy(t, v.Algorithm, countProps(v.Count), int(v.Count))
		base := (v.MS-epoch)<<22 | v.Worker<<12
		first, fits := "", int64(0)
		for seq := range int64(4096) {
			i, err := s.Place(expr.OfLong(base | seq))
			if err != nil || i != int(v.Want) {
				continue
			}
			if fits++; first == "" && seq >= v.FromSeq {
				first = strconv.FormatInt(base|seq, 10)
			}
		}
		if first != v.Key || fits != v.SeqsPerMs {
			t.Errorf("%s %d of %d from %d\nhave: %s, %d of a millisecond\nwant: %s, %d", v.Algorithm, v.Want, v.Count, v.FromSeq, first, fits, v.Key, v.SeqsPerMs)
		}
	}
}

// TestPlace_withoutAllocation checks that placing integers and short strings allocates no memory.
func TestPlace_withoutAllocation(t *testing.T) {
	for _, c := range []struct {
		typ, prop, value string
		of               expr.Value
	}{
		{"MOD", "sharding-count", "16", expr.OfLong(123456789)},
		{"HASH_MOD", "sharding-count", "16", expr.OfLong(123456789)},
		{"HASH_MOD", "sharding-count", "16", expr.OfString("order-123456789")},
		{"INLINE", "algorithm-expression", "t_order_${id % 16}", expr.OfLong(123456789)},
		{"INLINE", "algorithm-expression", "t_order_${Math.abs(id.hashCode()) % 16}", expr.OfString("order-123456789")},
		{"INLINE", "algorithm-expression", "t_order_${id.intdiv(10) % 4 + 1}", expr.OfLong(123456789)},
	} {
		s := mustStrategy(t, c.typ, map[string]string{c.prop: c.value}, 16)
		n := testing.AllocsPerRun(100, func() { must.Get(s.Place(c.of))(t) })
		if n != 0 {
			t.Errorf("%s %s: have: %v allocations\nwant: none", c.typ, c.value, n)
		}
	}
}

func BenchmarkPlace(b *testing.B) {
	for _, c := range [][3]string{
		{"MOD", "sharding-count", "16"}, {"HASH_MOD", "sharding-count", "16"},
		{"INLINE", "algorithm-expression", "t_order_${id % 16}"},
		{"INLINE", "algorithm-expression", "t_order_${Math.abs(id.hashCode()) % 16}"},
	} {
		s := mustStrategy(b, c[0], map[string]string{c[1]: c[2]}, 16)
		b.Run(c[0]+" "+c[2], func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				if _, err := s.Place(expr.OfLong(int64(i))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
