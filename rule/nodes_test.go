package rule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// expand returns the data nodes of an expression as "schema.table" or "table".
func expand(text string) ([]string, error) {
	var all []string
	err := dataNodes(text, func(n node) error {
		if n.schema != "" {
			n.table = n.schema + "." + n.table
		}
		all = append(all, n.table)
		return nil
	})
	return all, err
}

func TestDataNodes_expand(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"t", "t"},
		{"", ""},
		{" ds.a , ds.b,, ", "a b"},
		{"ds.app.t", "app.t"},
		{"ds_${0..1}.t_${0..2}", "t_0 t_1 t_2 t_0 t_1 t_2"},
		{`ds.t_${["a", 'b' , 3, 4]}`, "t_a t_b t_3 t_4"},
		{"ds.t_${[1,2]},ds.u", "t_1 t_2 u"},
		{"ds.t_${3..1}", "t_3 t_2 t_1"},
		{"ds.t_${0..<3}", "t_0 t_1 t_2"},
		{"ds.t_${'x'}", "t_x"},
		// As in Groovy.
		{"ds.t_${'00'..'03'}", "t_00 t_01 t_02 t_03"},
		{"ds.t_${'0a'..<'0c'}", "t_0a t_0b"},
		{"ds.t_${0x1..0x3}", "t_1 t_2 t_3"},
		{"ds.t_${[0x1F, 0XA]}", "t_31 t_10"},
		// Octal in Groovy, which is hardly intended.
		{"ds.t_${00..03}", "!"},
		{"ds.t_${[01, 2]}", "!"},
		{"ds.t{00..03}", "!"},
		{"ds.t_${'08'..'12'}", "!"},
		{"ds.t_${'a'..3}", "!"},
		{"ds.t_${0x}", "!"},
		{"ds.t_$->{2021..2022}${(9..10).collect{it.toString().padLeft(2, \"0\")}}", "t_202109 t_202110 t_202209 t_202210"},
		// A missing "$", and the prefixes of ShardingSphere 5.4.
		{"ds_${0..1}.t{0..1}", "t0 t1 t0 t1"},
		{"<GROOVY>ds.t_${0..1}", "t_0 t_1"},
		{"<LITERAL>ds.t_0, ds.t_1", "t_0 t_1"},
		{"ds.\n  t_0,\n  ds.t_1", "!"},
		{"ds.t_0,\n  ds.t_1\n", "t_0 t_1"},
		// Errors.
		{"ds.t_${0..", "!"},
		{"ds.t_${}", "!"},
		{"ds.t_${a..b}", "!"},
		{"ds.t_${0..<0}", "!"},
		{"ds.t_${['a',b]}", "!"},
		{"ds.t_${(1..2).collect{t -> u.toString().padLeft(2,'0')}}", "!"},
		{"ds.t_${[]}", "!"},
		{"ds..t", "!"},
		{"a.b.c.d", "!"},
		{".", "!"},
		{"<INTERVAL>P=t_;SP=yyyyMM", "!"},
		{"<INTERVAL>P=t_;SP=yyyy-Q;DL=2023-1;DU=2023-4", "!"},
		{"<INTERVAL>P=t_;SP=yyyy;DL=2023;DU=2024;DIU=Decades", "!"},
		{"<INTERVAL>P=t_;SP=yyyy;DL=2023;DU=2024;DIA=0", "!"},
		{"<INTERVAL>P=t_;SP=yyyy;DL=2023;DU=2024;X=0", "!"},
		{"<INTERVAL>P=ds.t_;SP=yyyy_MMdd;DIA=1;DIU=Days;DL=2023_1202;DU=2023_1204", "t_2023_1202 t_2023_1203 t_2023_1204"},
		{"<INTERVAL>P=t_;SP=yyyyMM;DIA=2;DIU=MONTHS;DL=202311;DU=202403", "t_202311 t_202401 t_202403"},
		// Closures, steps and letters.
		{"ds.t_${(1..3)*.toString()*.padLeft(2,'0')}", "t_01 t_02 t_03"},
		{"ds.t_${(8..10).collect{ String.format('%02d', it) }}", "!"},
		{"ds.t_${(0..9).step(4)}", "t_0 t_4 t_8"},
		{"ds.t_${(1..3).collect{ it * 2 - 1 }}", "t_1 t_3 t_5"},
		{"ds.t_${'a'..'c'}", "t_a t_b t_c"},
		{"ds.t_${(1..2).collect{}}", "!"},
		{"ds.t_${[[1],[2]]}", "!"},
		{"ds.t_${((((((((((((((((((((((((1))))))))))))))))))))))))}", "!"},
		// Not a name.
		{"ds.t_order_*", "!"},
		{"ds.t_[0-9]+", "!"},
		{"ds.t_${0..1};ds.t_2", "!"},
		{"ds_0.`t_order_1`", "!"},
		{"ds.t_\u200b1", "!"},
		{"ds.t_\x00*\x00", "!"},
		{"ds.t_${0..99999999999999999999}", "!"},
	} {
		all, err := expand(c.text)
		have := strings.Join(all, " ")
		if err != nil {
			have = "!"
		}
		if have != c.want {
			t.Errorf("%s\nhave: %s (%v)\nwant: %s", c.text, have, err, c.want)
		}
	}
}

func TestDataNodes_errorsStayShort(t *testing.T) {
	long := strings.Repeat("ü", 5000)
	for _, text := range []string{
		"${" + long + "}", "${" + long, "${[" + long + "]}", "${" + long + "..1}", "ds.${'" + long + "'}.a.b", long + "{",
		"ds.t" + strings.Repeat("${1}", 1<<16),
		"ds." + strings.Repeat("t", 1<<16) + "_${*}",
		"ds.t_${" + strings.Repeat("(", 1<<16) + "1" + strings.Repeat(")", 1<<16) + "}",
		"ds.t_${" + strings.Repeat("1+", 1<<16) + "1}" + strings.Repeat("x", 300),
	} {
		if _, err := expand(text); err == nil || len(err.Error()) > 400 {
			t.Errorf("%.40s…\nhave: %.500v\nwant: a short error", text, err)
		}
	}
}

func TestDataNodes_areBounded(t *testing.T) {
	for _, text := range []string{
		"ds.t_${0..1048576}",
		"ds_${0..1024}.t_${0..1023}",
		"${0..1023}.${0..1023}.${0..1023}.${0..1023}",
		strings.Repeat("ds.t_${0..524288},", 2),
	} {
		count := 0
		err := dataNodes(text, func(node) error { count++; return nil })
		if !errors.Is(err, errTooManyNodes) || count > maxNodes {
			t.Errorf("%.40s\nhave: %d nodes, %v\nwant: %v", text, count, err, errTooManyNodes)
		}
	}
	count := 0
	err := dataNodes("ds_${0..1023}.t_${0..1023}", func(node) error { count++; return nil })
	if err != nil || count != maxNodes {
		t.Errorf("have: %d nodes, %v\nwant: %d", count, err, maxNodes)
	}
}

// TestDataNodes_agreeWithASimpleExpander generates random combinations of strings, ranges and
// lists, and compares their expansion with the result of a simple expander.
func TestDataNodes_agreeWithASimpleExpander(t *testing.T) {
	const seed = 1
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		text, want := "ds.", []string{""}
		for i := range 1 + rnd.IntN(3) {
			part, values := randomPart(rnd, i == 0)
			text += part
			var next []string
			for _, w := range want {
				for _, v := range values {
					next = append(next, w+v)
				}
			}
			want = next
		}
		if have, err := expand(text); err != nil || !slices.Equal(have, want) {
			t.Fatalf("seed %d: %s\nhave: %v, %v\nwant: %v", seed, text, have, err, want)
		}
	}
}

func randomPart(rnd *rand.Rand, first bool) (text string, values []string) {
	open := []string{"${", "$->{"}[rnd.IntN(2)]
	switch kind := rnd.IntN(3); {
	case first || kind == 0:
		text = fmt.Sprintf("t%d_", rnd.IntN(100))
		return text, []string{text}
	case kind == 1:
		a, n := rnd.IntN(120), 1+rnd.IntN(12)
		for i := range n {
			values = append(values, strconv.Itoa(a+i))
		}
		return fmt.Sprintf("%s%d..%d}", open, a, a+n-1), values
	}
	var items []string
	for range 1 + rnd.IntN(4) {
		v := fmt.Sprintf("%c%d", 'a'+rnd.IntN(26), rnd.IntN(10))
		items = append(items, "'"+v+"'")
		if !slices.Contains(values, v) { // a duplicate item of a list counts once
			values = append(values, v)
		}
	}
	return open + "[" + strings.Join(items, ", ") + "]}", values
}
