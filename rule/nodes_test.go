package rule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
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
	for _, c := range cases.Read(t, "testdata/nodes.txt", 2) {
		want, text := c[0], c[1]
		all, err := expand(text)
		have := strings.Join(all, " ")
		if err != nil {
			have = "!"
		}
		must.Equal(t, have, want, text, err)
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
