package nanoid

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/shardkey/shardkey/spi"
)

// config describes a generator; zero fields are the defaults.
type config struct {
	size     int
	alphabet string
	rand     io.Reader
}

func mustNew(t testing.TB, cfg config) *generator {
	t.Helper()
	if cfg.rand == nil {
		cfg.rand = rand.Reader
	}
	g, err := newGenerator(cmp.Or(cfg.size, defaultSize), cmp.Or(cfg.alphabet, defaultAlphabet), cfg.rand)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func mustKeys(t testing.TB, g spi.KeyGenerator, n int) []string {
	t.Helper()
	keys, err := g.GenerateKeys(context.Background(), spi.Column{}, n)
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = key.(string)
	}
	return texts
}

func TestGenerator_characters(t *testing.T) {
	for _, tt := range []struct {
		cfg  config
		rand string
		want string
	}{
		{config{size: 4}, "\x00\x01\x3f\x40", "[_-Z_]"},
		{config{size: 3, alphabet: "abc"}, "\x03\x00\x07\x01\xfb\xfa", "[abc]"}, // 3 is thrown away
		{config{size: 2, alphabet: "ab"}, "\x02\x03\x00\x01", "[ab ab]"},
		{config{size: 2, alphabet: "éß日"}, "\x01\x02\x00\x00", "[ß日 éé]"},
	} {
		// One byte at a time: short reads are no reason to lose any.
		tt.cfg.rand = iotest.OneByteReader(strings.NewReader(tt.rand))
		n := strings.Count(tt.want, " ") + 1
		if have := fmt.Sprint(mustKeys(t, mustNew(t, tt.cfg), n)); have != tt.want {
			t.Errorf("\nhave: %s\nwant: %s", have, tt.want)
		}
	}
}

func TestGenerator_unbiased(t *testing.T) {
	const alphabet, draws = "0123456789", 200_000
	g := mustNew(t, config{alphabet: alphabet, size: 200})
	count := map[rune]int{}
	for _, key := range mustKeys(t, g, draws/200) {
		for _, r := range key {
			count[r]++
		}
	}
	// Each count has a standard deviation of 134; 6 of them never happen.
	for _, r := range alphabet {
		if have := count[r]; have < draws/10-800 || have > draws/10+800 {
			t.Errorf("%c\nhave: %d\nwant: %d ± 800", r, have, draws/10)
		}
	}
}

func TestProperties_checked(t *testing.T) {
	for _, tt := range []struct {
		props map[string]any
		size  int
		set   string
	}{
		{nil, 21, defaultAlphabet},
		{map[string]any{"size": "255"}, 255, defaultAlphabet},
		{map[string]any{"size": "30", "alphabet": "01"}, 30, "01"},
	} {
		g, err := registered(t, tt.props)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range mustKeys(t, g, 50) {
			if utf8.RuneCountInString(key) != tt.size || strings.Trim(key, tt.set) != "" {
				t.Errorf("\nhave: %q\nwant: %d characters out of %q", key, tt.size, tt.set)
			}
		}
	}
	for _, bad := range []map[string]any{
		{"size": "1"}, {"size": "256"}, {"size": "x"}, {"alphabet": ""}, {"alphabet": "a"}, {"alphabet": "aba"},
		{"alphabet": "a\n"}, {"alphabet": "a\xff"}, {"version": "4"},
	} {
		if g, err := registered(t, bad); err == nil {
			t.Errorf("%q\nhave: %v\nwant: an error", bad, g)
		}
	}
}

func registered(t *testing.T, values map[string]any) (spi.KeyGenerator, error) {
	t.Helper()
	props, err := spi.NewProps(values, spi.Host{})
	if err != nil {
		t.Fatal(err)
	}
	return spi.NewKeyGenerator("Nanoid", props)
}

func TestNew_refuses(t *testing.T) {
	var many []rune
	for r := 'Ā'; len(many) < 257; r++ {
		many = append(many, r)
	}
	for _, alphabet := range []string{"a", "aa", string(many)} {
		if _, err := newGenerator(defaultSize, alphabet, nil); err == nil || !strings.HasPrefix(err.Error(), "shardkey: NANOID") {
			t.Errorf("%q\nhave: %v\nwant: an error", alphabet, err)
		}
	}
	mustNew(t, config{alphabet: string(many[:256])})
}

func TestGenerator_randomnessFails(t *testing.T) {
	g := mustNew(t, config{rand: iotest.ErrReader(io.ErrClosedPipe)})
	if keys, err := g.GenerateKeys(context.Background(), spi.Column{}, 2); !errors.Is(err, io.ErrClosedPipe) || keys != nil {
		t.Errorf("\nhave: %v, %v\nwant: ErrClosedPipe", keys, err)
	}
}

func TestGenerator_unique(t *testing.T) {
	g := mustNew(t, config{})
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
	if have := g.Health().Issued; have != 64*500 {
		t.Errorf("\nhave: %d issued\nwant: %d", have, 64*500)
	}
}

func TestHealth_warnsOfFewBits(t *testing.T) {
	for _, tt := range []struct {
		cfg  config
		bits int
		warn int
	}{{config{}, 126, 0}, {config{size: 8}, 48, 1}, {config{size: 100, alphabet: "01"}, 100, 0}} {
		g := mustNew(t, tt.cfg)
		if g.bits() != tt.bits || len(g.Health().Warnings) != tt.warn {
			t.Errorf("\nhave: %d bits, warnings %q\nwant: %d bits, %d warnings", g.bits(), g.Health().Warnings, tt.bits, tt.warn)
		}
	}
}

func BenchmarkGenerateKeys(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := mustNew(b, config{})
			b.ReportAllocs()
			for b.Loop() {
				mustKeys(b, g, n)
			}
		})
	}
}
