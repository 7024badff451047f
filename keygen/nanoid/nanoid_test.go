package nanoid

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

// newNanoid returns a generator. pairs alternates names and values of properties.
func newNanoid(pairs ...string) (*generator, error) {
	values := map[string]any{}
	for pair := range slices.Chunk(pairs, 2) {
		values[pair[0]] = pair[1]
	}
	props, propsErr := spi.NewProps(values, spi.Host{})
	g, err := spi.NewKeyGenerator("Nanoid", props)
	made, _ := g.(*generator)
	return made, errors.Join(propsErr, err)
}

func mustNew(t testing.TB, pairs ...string) *generator {
	t.Helper()
	return must.Get(newNanoid(pairs...))(t)
}

func mustKeys(t testing.TB, g spi.KeyGenerator, n int) []any {
	t.Helper()
	keys := must.Get(g.GenerateKeys(context.Background(), spi.Column{}, n))(t)
	must.Equal(t, len(keys), n, "keys")
	return keys
}

// Each random byte selects a character or is discarded.
func TestGenerator_characters(t *testing.T) {
	random := rand.Reader
	t.Cleanup(func() { rand.Reader = random })
	for _, tt := range []struct {
		props []string
		rand  string
		want  string
	}{
		{[]string{"size", "4"}, "\x00\x01\x3f\x40", "[_-Z_]"},
		{[]string{"size", "3", "alphabet", "abc"}, "\x03\x00\x07\x01\xfb\xfa", "[abc]"},
		{[]string{"size", "2", "alphabet", "ab"}, "\x02\x03\x00\x01", "[ab ab]"},
		{[]string{"size", "2", "alphabet", "éß日"}, "\x01\x02\x00\x00", "[ß日 éé]"},
	} {
		rand.Reader = strings.NewReader(tt.rand)
		must.Equal(t, fmt.Sprint(mustKeys(t, mustNew(t, tt.props...), strings.Count(tt.want, " ")+1)), tt.want)
	}
}

func TestGenerator_unbiased(t *testing.T) {
	const alphabet, draws = "0123456789", 200_000
	g := mustNew(t, "alphabet", alphabet, "size", "200")
	count := map[rune]int{}
	for _, key := range mustKeys(t, g, draws/200) {
		for _, r := range key.(string) {
			count[r]++
		}
	}
	// Each count has a standard deviation of 134. A deviation of six times that practically never
	// happens.
	for _, r := range alphabet {
		if have := count[r]; have < draws/10-800 || have > draws/10+800 {
			t.Errorf("%c\nhave: %d\nwant: %d ± 800", r, have, draws/10)
		}
	}
}

func TestProperties(t *testing.T) {
	var many []rune
	for r := 'Ā'; len(many) < 257; r++ {
		many = append(many, r)
	}
	for _, tt := range []struct {
		props    []string
		size     int
		alphabet string
		describe string
		warnings int
	}{
		{nil, 21, defaultAlphabet, "NANOID of 21 characters out of 64, 126 bits", 0},
		{[]string{"size", "255"}, 255, defaultAlphabet, "NANOID of 255 characters out of 64, 1530 bits", 0},
		{[]string{"size", "8"}, 8, defaultAlphabet, "NANOID of 8 characters out of 64, 48 bits", 1},
		{[]string{"size", "100", "alphabet", "01"}, 100, "01", "NANOID of 100 characters out of 2, 100 bits", 0},
		{[]string{"alphabet", string(many[:256])}, 21, string(many[:256]), "NANOID of 21 characters out of 256, 168 bits", 0},
	} {
		g := mustNew(t, tt.props...)
		if have := g.Describe(); have != tt.describe || len(g.Health().Warnings) != tt.warnings {
			t.Errorf("\nhave: %s, warnings %q\nwant: %s, %d warnings", have, g.Health().Warnings, tt.describe, tt.warnings)
		}
		for _, key := range mustKeys(t, g, 50) {
			if key := key.(string); utf8.RuneCountInString(key) != tt.size || strings.Trim(key, tt.alphabet) != "" {
				t.Errorf("\nhave: %q\nwant: %d characters out of %q", key, tt.size, tt.alphabet)
			}
		}
	}
	for _, bad := range [][]string{
		{"size", "1"}, {"size", "256"}, {"size", "x"}, {"alphabet", ""}, {"alphabet", "a"}, {"alphabet", "aa"}, {"alphabet", "aba"},
		{"alphabet", "a\n"}, {"alphabet", "a\xff"}, {"alphabet", string(many)}, {"version", "4"},
	} {
		if g, err := newNanoid(bad...); err == nil || !strings.HasPrefix(err.Error(), "shardkey: key generator NANOID: ") {
			t.Errorf("%q\nhave: %v, %v\nwant: an error", bad, g, err)
		}
	}
}

func TestGenerator_unique(t *testing.T) {
	g := mustNew(t)
	var seen sync.Map
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for _, key := range mustKeys(t, g, 500) {
				if _, dup := seen.LoadOrStore(key, true); dup {
					t.Errorf("%q came twice", key)
				}
			}
		})
	}
	wg.Wait()
	must.Equal(t, g.Health().Issued, 64*500, "issued")
}

func BenchmarkGenerateKeys(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := mustNew(b)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = g.GenerateKeys(b.Context(), spi.Column{}, n)
			}
		})
	}
}
