package sharding

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule/internal/expr"
)

// TestPlace_more checks cases that the vectors don't cover.
func TestPlace_more(t *testing.T) {
	monthly := "datetime-pattern=yyyy-MM-dd HH:mm:ss,datetime-lower=2024-01-31 00:00:00,datetime-upper=2024-06-01 00:00:00,sharding-suffix-pattern=MMdd,datetime-interval-unit=months"
	weekly := "datetime-pattern=yyyy-MM-dd,datetime-lower=2024-01-01,datetime-upper=2024-02-01,sharding-suffix-pattern=yyyyMMdd,datetime-interval-unit=Weeks"
	for _, c := range []struct {
		typ, props, names string
		value             any
		want              string
	}{
		// Adding months one by one ends at the last day of short months, as in Java.
		{"INTERVAL", monthly, "t_0131 t_0229 t_0329 t_0429", "2024-03-28 23:59:59", "t_0229"},
		{"INTERVAL", monthly, "t_0131 t_0229 t_0329 t_0429", "2024-03-29 00:00:00", "t_0329"},
		{"INTERVAL", monthly, "t_0131 t_0229 t_0329 t_0429", "2024-03-29", "expected a time in the format"},
		{"INTERVAL", monthly, "t_0131 t_0229 t_0329 t_0429", "2024-03-29 00:00", "t_0329"},
		{"INTERVAL", monthly, "t_0131 t_0229", "2024-03-29 00:00:00", `selects a name that does not exist`},
		{"INTERVAL", monthly, "t_0131 u_0131", "2024-01-31 00:00:00", `several tables end in "0131"`},
		{"INTERVAL", weekly, "t_20240101 t_20240108", "2024-01-14 23:00:00", "t_20240108"},
		{"INTERVAL", weekly, "t_20240101 t_20240108", time.Date(2024, 1, 7, 23, 59, 0, 0, time.FixedZone("", 3600)), "t_20240101"},
		{"INTERVAL", weekly, "t_20240101 t_20240108", 5, "expected a time in the format"},
		// The algorithm's numbers can be much larger than the number of names.
		{"MOD", "sharding-count=1000000", "t_5 t_70000 t_999999", 1_070_000, "t_70000"},
		{"MOD", "sharding-count=1000000", "t_5 t_70000 t_999999", -1, "t_999999"},
		{"MOD", "sharding-count=1000000", "t_5 t_70000 t_999999", 70_001, `selects "t_70001"`},
		{"MOD", "sharding-count=4", "t_0 t_1 t_2 t_3", "99999999999999999999999999", "t_3"},
		{"MOD", "sharding-count=4", "t_0 t_1 t_2 t_3", "-99999999999999999999999999", "t_1"},
		{"MOD", "sharding-count=4", "t_0 t_1 t_2 t_3", "x1", "is not an integer"},
		{"MOD", "sharding-count=4", "t_0 t_1 t_2 t_3", time.Now(), "the Java class of a time"},
		{"HASH_MOD", "sharding-count=4", "t_0 t_1 t_2 t_3", nil, "the value is NULL"},
		{"INLINE", "algorithm-expression=T_${k % 4}", "t_0 t_1 t_2 t_3", 6, "t_2"}, // names are case-insensitive
		{"INLINE", "algorithm-expression=<GROOVY>t_${k % 4}", "t_0 t_1 t_2 t_3", 6, "t_2"},
		{"INLINE", "algorithm-expression=<LITERAL>t_1", "t_0 t_1 t_2 t_3", 6, "t_1"},
		{"INLINE", "algorithm-expression=t_${k}", "t_0 t_1", strings.Repeat("x", 1000), "selects a name that does not exist"},
	} {
		s := must.Get(Compile(c.typ, propsOf(c.props), []string{"k"}, expr.Null))(t, c.typ, c.props)
		names := strings.Fields(c.names)
		s.Over("t", names)
		v, _ := expr.Of(c.value)
		i, err := s.Place(v)
		have := ""
		if err == nil {
			have = names[i]
		} else {
			have = err.Error()
		}
		if err == nil && have != c.want || err != nil && !strings.Contains(have, c.want) || len(have) > 400 {
			t.Errorf("%s %s of %v\nhave: %s\nwant: %s", c.typ, c.props, c.value, have, c.want)
		}
	}
}

// propsOf returns the properties of a list like "a=b,c=d".
func propsOf(list string) map[string]string {
	props := map[string]string{}
	for one := range strings.SplitSeq(list, ",") {
		if name, value, ok := strings.Cut(one, "="); ok {
			props[name] = value
		}
	}
	return props
}

func TestCompile_whatIsNotUnderstood(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/errors.txt", 4) {
		typ, props, prop, want := c[0], propsOf(c[1]), c[2], c[3]
		_, err := Compile(typ, props, []string{"k"}, expr.Null)
		if e, ok := errors.AsType[*NotUnderstoodError](err); !ok || e.Prop != prop || !strings.Contains(e.Reason, want) {
			t.Errorf("%s %s\nhave: %+v\nwant: %s: %s", typ, props, err, prop, want)
		}
	}
	_, err := Compile("MOD", map[string]string{"sharding-count": "2"}, nil, expr.Null)
	must.FailWith(t, err, "shardingColumn is missing")
}

// TestGene_vectors computes the shard bits of the vectors' columns, and compares them with the bits
// in the vectors' keys.
func TestGene_vectors(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/vectors.json"))(t)
	var file struct {
		GeneKeys []struct {
			ShardColumn       any
			Gene              int64
			GeneBits          int
			Key               string
			KeyMod, ColumnMod map[string]int64
		}
	}
	if err := json.Unmarshal(data, &file); err != nil || len(file.GeneKeys) < 20 {
		t.Fatal(len(file.GeneKeys), err)
	}
	for _, v := range file.GeneKeys {
		g := must.Get(NewShardBits("user_id", v.GeneBits, ShardBitsWay{}))(t)
		value, _ := expr.Of(v.ShardColumn)
		if n, isNumber := v.ShardColumn.(float64); isNumber {
			value = expr.OfLong(int64(n))
		}
		gene, err := g.Of(value)
		key, _ := strconv.ParseInt(v.Key, 10, 64)
		if err != nil || gene != v.Gene || key&(1<<v.GeneBits-1) != gene {
			t.Errorf("%+v\nhave: %d, %v", v, gene, err)
		}
		for text, want := range v.ColumnMod {
			if n, _ := strconv.ParseInt(text, 10, 64); n <= 1<<v.GeneBits && (gene%n != want || v.KeyMod[text] != want) {
				t.Errorf("%+v modulo %d\nhave: %d", v, n, gene%n)
			}
		}
	}
}

func TestStrategy_geneWay(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/moduli.txt", 2) {
		want, text := c[0], c[1]
		if way, have := newInlineStrategy(t, text, expr.Null).ShardBitsWay(); fmt.Sprint(have) != want || way.Hash && have > 1 {
			t.Errorf("%s\nhave: %d, %v\nwant: %s", text, have, way, want)
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
	return must.Get(Compile("INLINE", map[string]string{"algorithm-expression": expression}, []string{"k"}, class))(t)
}

func mustStrategy(t testing.TB, typ string, props map[string]string, count int) *Strategy {
	t.Helper()
	s := must.Get(Compile(typ, props, []string{"id"}, expr.Null))(t)
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("t_order_%d", i)
	}
	s.Over("t_order", names)
	return s
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
		must.Equal(t, n, 0, c.typ, c.value, "allocations")
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
