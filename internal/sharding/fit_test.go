package sharding

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/groovy"
)

func mustStrategy(t testing.TB, typ string, props map[string]string, count int) *Strategy {
	t.Helper()
	a, err := Compile(typ, props, []string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("t_order_%d", i)
	}
	return a.Over(names, NamingOf("t_order", names), nil)
}

func countProps(n int64) map[string]string {
	return map[string]string{"sharding-count": strconv.FormatInt(n, 10)}
}

// TestFit_keyPick chooses sequence numbers as the vectors do.
func TestFit_keyPick(t *testing.T) {
	const epoch = 1477929600000
	vectors := loadVectors(t).KeyPick
	if len(vectors) < 100 {
		t.Fatal(len(vectors))
	}
	for _, v := range vectors {
		s := mustStrategy(t, v.Algorithm, countProps(v.Count), int(v.Count))
		f := s.Fit(int(v.Want), 0, nil)
		base := (v.MS-epoch)<<22 | v.Worker<<12
		key, ok := f.Next(base|v.FromSeq, base|4095)
		if v.Key == "" {
			if ok {
				t.Errorf("%s %d of %d from %d\nhave: %d\nwant: none left in the millisecond", v.Algorithm, v.Want, v.Count, v.FromSeq, key)
			}
		} else if !ok || key != base|v.FirstSeq || strconv.FormatInt(key, 10) != v.Key {
			t.Errorf("%s %d of %d from %d\nhave: %d, %v\nwant: %s", v.Algorithm, v.Want, v.Count, v.FromSeq, key, ok, v.Key)
		}
		fits := int64(0)
		for at := base; ; fits++ {
			if key, ok = f.Next(at, base|4095); !ok {
				break
			}
			at = key + 1
		}
		if fits != v.SeqsPerMs {
			t.Errorf("%s %d of %d\nhave: %d numbers of a millisecond\nwant: %d", v.Algorithm, v.Want, v.Count, fits, v.SeqsPerMs)
		}
	}
}

// fitCases are algorithms with the number of their tables.
func fitCases() (cases []struct {
	typ    string
	props  map[string]string
	tables int
}) {
	add := func(typ string, props map[string]string, tables int) {
		cases = append(cases, struct {
			typ    string
			props  map[string]string
			tables int
		}{typ, props, tables})
	}
	for _, n := range []int64{1, 2, 3, 4, 5, 7, 8, 10, 12, 16, 31, 64, 100, 1000, 1024} {
		add("MOD", countProps(n), int(n))
		add("HASH_MOD", countProps(n), int(n))
	}
	for _, expression := range []string{"id % 4", "(id + 3) % 5", "(id % 4).intdiv(2)", "id.intdiv(8) % 3", "(id >> 22) % 4", "id & 7", "Math.abs(id.hashCode()) % 4",
		"Math.abs(id.hashCode() % 6)", "id % 2 == 0 ? 0 : id % 3", "(id - 10) % 4", "(id * 3) % 12", "id % 100000", "(id.hashCode() & 4095) % 256"} {
		add("INLINE", map[string]string{"algorithm-expression": "t_order_${" + expression + "}"}, 12)
	}
	add("COSID_MOD", map[string]string{"mod": "6", "logic-name-prefix": "t_order_"}, 6)
	add("VOLUME_RANGE", map[string]string{"range-lower": "0", "range-upper": "1000", "sharding-volume": "100"}, 12)
	return cases
}

// TestFit_Next compares the keys that fit with those of which Place says so.
func TestFit_Next(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	bases := []int64{0, 1, 1<<31 - 50, 1<<32 - 50, 931430767001669673, math.MaxInt64 - 300}
	for range 6 {
		bases = append(bases, random.Int64N(1<<62))
	}
	for _, c := range fitCases() {
		s := mustStrategy(t, c.typ, c.props, c.tables)
		for range 3 {
			target := random.IntN(c.tables)
			f := s.Fit(target, 0, nil)
			for _, base := range bases {
				const span = 200
				var have, want []int64
				for key := base; key < base+span; key++ {
					if i, err := s.Place([]groovy.Value{groovy.OfLong(key)}); err == nil && i == target && key >= f.period.Min {
						want = append(want, key)
					}
				}
				for at := base; ; {
					key, ok := f.Next(at, base+span-1)
					if !ok {
						break
					}
					have, at = append(have, key), key+1
				}
				if fmt.Sprint(have) != fmt.Sprint(want) {
					t.Fatalf("%s %v, table %d from %d\nhave: %v\nwant: %v", c.typ, c.props, target, base, have, want)
				}
			}
		}
	}
}

// TestFit_Run finds as many keys in a run as it is said to have.
func TestFit_Run(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, c := range fitCases() {
		s := mustStrategy(t, c.typ, c.props, c.tables)
		for range 20 {
			rows := 1 + random.Int64N(5)
			f := s.Fit(random.IntN(c.tables), 0, nil)
			run := f.Run(rows)
			if run == 0 {
				continue
			}
			from := max(random.Int64N(1<<60), f.period.Min)
			at, to := from, from+run-1
			for row := range rows {
				key, ok := f.Next(at, to)
				if !ok {
					t.Fatalf("%s %v from %d\nhave: %d keys in %d numbers\nwant: %d", c.typ, c.props, from, row, run, rows)
				}
				at = key + 1
			}
		}
	}
}

func TestFit_whatIsKnown(t *testing.T) {
	for _, c := range []struct {
		typ, prop, value string
		target           int
		mod              int64
		residues         string
		share            float64
		empty            bool
	}{
		{"MOD", "sharding-count", "16", 5, 16, "[5]", 1. / 16, false},
		{"INLINE", "algorithm-expression", "t_order_${id % 4 + 1}", 3, 4, "[2]", .25, false},
		{"INLINE", "algorithm-expression", "t_order_${(id % 4).intdiv(2)}", 1, 4, "[2 3]", .5, false},
		{"INLINE", "algorithm-expression", "t_order_${id % 4}", 5, 4, "[]", 0, true},
		{"INLINE", "algorithm-expression", "t_order_3", 3, 1, "[0]", 1, false},
		{"HASH_MOD", "sharding-count", "8", 5, 0, "[]", .125, false},
		{"HASH_MOD", "sharding-count", "6", 5, 0, "[]", 1. / 6, false},
		{"MOD", "sharding-count", "100000", 5, 0, "[]", 0, false},
	} {
		s := mustStrategy(t, c.typ, map[string]string{c.prop: c.value}, 16)
		f := s.Fit(c.target, 0, nil)
		mod, residues := f.Modulus()
		if mod != c.mod || fmt.Sprint(residues) != c.residues || f.Share() != c.share || f.Empty() != c.empty {
			t.Errorf("%s %s, table %d\nhave: %d %v, %v, %v\nwant: %d %s, %v, %v", c.typ, c.value, c.target,
				mod, residues, f.Share(), f.Empty(), c.mod, c.residues, c.share, c.empty)
		}
	}
}

// TestPlace_withoutAllocation places integers and short texts.
func TestPlace_withoutAllocation(t *testing.T) {
	for _, c := range []struct {
		typ, prop, value string
		of               groovy.Value
	}{
		{"MOD", "sharding-count", "16", groovy.OfLong(123456789)},
		{"HASH_MOD", "sharding-count", "16", groovy.OfLong(123456789)},
		{"HASH_MOD", "sharding-count", "16", groovy.OfString("order-123456789")},
		{"INLINE", "algorithm-expression", "t_order_${id % 16}", groovy.OfLong(123456789)},
		{"INLINE", "algorithm-expression", "t_order_${Math.abs(id.hashCode()) % 16}", groovy.OfString("order-123456789")},
		{"INLINE", "algorithm-expression", "t_order_${id.intdiv(10) % 4 + 1}", groovy.OfLong(123456789)},
	} {
		s := mustStrategy(t, c.typ, map[string]string{c.prop: c.value}, 16)
		n := testing.AllocsPerRun(100, func() {
			var values [1]groovy.Value
			values[0] = c.of
			if _, err := s.Place(values[:]); err != nil {
				t.Fatal(err)
			}
		})
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
				values := [1]groovy.Value{groovy.OfLong(int64(i))}
				if _, err := s.Place(values[:]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFit(b *testing.B) {
	for _, typ := range []string{"MOD", "HASH_MOD"} {
		for _, n := range []int64{2, 16, 100, 1024} {
			f := mustStrategy(b, typ, countProps(n), int(n)).Fit(1, 0, nil)
			b.Run(fmt.Sprint(typ, " ", n), func(b *testing.B) {
				b.ReportAllocs()
				for i := range b.N {
					if _, ok := f.Next(931430767001669632+int64(i)<<22, math.MaxInt64); !ok {
						b.Fatal("none")
					}
				}
			})
		}
	}
}

// TestNewFit_twoStrategies has keys that choose the data source as well as the
// table.
func TestNewFit_twoStrategies(t *testing.T) {
	for _, c := range []struct {
		database, table string // types
		props           string // of the table's
		period          int64  // 0 for none
		share           float64
	}{
		{"MOD", "MOD", "sharding-count=6", 12, 1. / 12},
		{"MOD", "INLINE", "algorithm-expression=t_order_${id.intdiv(4) % 3}", 12, 1. / 12},
		{"MOD", "HASH_MOD", "sharding-count=6", 0, 0},
		{"HASH_MOD", "HASH_MOD", "sharding-count=8", 0, .125},
		{"MOD", "VOLUME_RANGE", "range-lower=0,range-upper=1000,sharding-volume=200", 0, 0},
	} {
		database := mustStrategy(t, c.database, countProps(4), 4)
		props := map[string]string{}
		for one := range strings.SplitSeq(c.props, ",") {
			name, value, _ := strings.Cut(one, "=")
			props[name] = value
		}
		table := mustStrategy(t, c.table, props, 7)
		has := func(key int64) bool {
			values := []groovy.Value{groovy.OfLong(key)}
			d, err1 := database.Place(values)
			i, err2 := table.Place(values)
			return err1 == nil && err2 == nil && d == 1 && i == 1
		}
		f := NewFit(has, database.Uses(0, nil), table.Uses(0, nil))
		if mod, _ := f.Modulus(); mod != c.period || f.Share() != c.share {
			t.Errorf("%v\nhave: period %d, share %v", c, mod, f.Share())
		}
		var have, want []int64
		for key := range int64(300) {
			if has(key) {
				want = append(want, key)
			}
		}
		for at := int64(0); ; {
			key, ok := f.Next(at, 299)
			if !ok {
				break
			}
			have, at = append(have, key), key+1
		}
		if fmt.Sprint(have) != fmt.Sprint(want) || len(have) == 0 {
			t.Errorf("%v\nhave: %v\nwant: %v", c, have, want)
		}
	}
}
