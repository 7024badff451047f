package nanoid

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"math/bits"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/shardkey/shardkey/spi"
)

var (
	_ spi.KeyGenerator   = (*generator)(nil)
	_ spi.Describer      = (*generator)(nil)
	_ spi.HealthReporter = (*generator)(nil)
)

const (
	// defaultSize is the length of a key without the property size.
	defaultSize = 21
	// defaultAlphabet is the 64 characters that need no escaping in a URL.
	defaultAlphabet = "_-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

	minSize, maxSize = 2, 255
	fewBits          = 100
)

// generator generates random strings. It never waits, and any number of goroutines may
// use it.
type generator struct {
	size     int
	alphabet []rune
	mask     byte // the bits of a random byte that choose a character
	rand     io.Reader
	issued   atomic.Int64
}

// newGenerator returns a generator of keys of size characters out of alphabet. It refuses
// an alphabet out of range, and one with a character that is repeated, is not printable
// or is not UTF-8.
func newGenerator(size int, alphabet string, random io.Reader) (*generator, error) {
	characters, err := parseAlphabet(alphabet)
	if err != nil {
		return nil, err
	}
	return &generator{
		size:     size,
		alphabet: characters,
		mask:     byte(1<<bits.Len(uint(len(characters)-1)) - 1),
		rand:     random,
	}, nil
}

func parseAlphabet(text string) ([]rune, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("shardkey: NANOID alphabet %q is not UTF-8", text)
	}
	alphabet := []rune(text)
	if len(alphabet) < 2 || len(alphabet) > 256 {
		return nil, fmt.Errorf("shardkey: NANOID alphabet has %d characters: want 2..256", len(alphabet))
	}
	seen := make(map[rune]bool, len(alphabet))
	for _, r := range alphabet {
		switch {
		case seen[r]:
			return nil, fmt.Errorf("shardkey: NANOID alphabet has %q twice: it would come twice as often", r)
		case !unicode.IsPrint(r):
			return nil, fmt.Errorf("shardkey: NANOID alphabet has %q, which cannot be printed", r)
		}
		seen[r] = true
	}
	return alphabet, nil
}

// GenerateKeys makes n texts, each a string.
func (g *generator) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	n = max(n, 0)
	src := source{rand: g.rand, want: n * g.size}
	keys := make([]any, n)
	var text [maxSize * utf8.UTFMax]byte
	for i := range keys {
		key := text[:0]
		for range g.size {
			r, err := g.letter(&src)
			if err != nil {
				return nil, err
			}
			key = utf8.AppendRune(key, r)
		}
		keys[i] = string(key)
	}
	g.issued.Add(int64(n))
	return keys, nil
}

// letter throws random bytes away until one chooses a character: taking them
// modulo the alphabet's length would favour the first characters.
func (g *generator) letter(src *source) (rune, error) {
	for {
		b, err := src.next()
		if err != nil {
			return 0, fmt.Errorf("shardkey: NANOID: no randomness: %w", err)
		}
		if i := int(b & g.mask); i < len(g.alphabet) {
			return g.alphabet[i], nil
		}
	}
}

// bits is how many random bits a key has.
func (g *generator) bits() int {
	return int(float64(g.size) * math.Log2(float64(len(g.alphabet))))
}

// Describe returns size, alphabet and bits.
func (g *generator) Describe() string {
	return fmt.Sprintf("NANOID of %d characters out of %d, %d bits", g.size, len(g.alphabet), g.bits())
}

// Health reports how many keys were made, and warns of few bits.
func (g *generator) Health() spi.Health {
	h := spi.Health{Issued: g.issued.Load()}
	if g.bits() < fewBits {
		h.Warnings = append(h.Warnings, fmt.Sprintf("shardkey: NANOID keys have %d random bits only: raise size", g.bits()))
	}
	return h
}

func init() {
	spi.RegisterKeyGenerator("NANOID", func(p spi.Props) (spi.KeyGenerator, error) {
		size, err := p.Int("size", defaultSize, minSize, maxSize)
		if err != nil {
			return nil, err
		}
		alphabet := p.String("alphabet", defaultAlphabet)
		if alphabet == "" {
			return nil, p.Wrong("alphabet", "2..256 different characters")
		}
		g, err := newGenerator(int(size), alphabet, rand.Reader)
		if err != nil {
			return nil, err
		}
		return g, nil
	})
}

// source hands out random bytes one by one and reads them in blocks. Nothing
// is kept from one call of GenerateKeys to the next.
type source struct {
	rand io.Reader
	want int // bytes that will be asked for, at least
	buf  []byte
	pos  int
}

const (
	minBlock = 64
	maxBlock = 4096
)

func (s *source) next() (byte, error) {
	if s.pos == len(s.buf) {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	b := s.buf[s.pos]
	s.pos++
	return b, nil
}

func (s *source) fill() error {
	if s.buf == nil {
		s.buf = make([]byte, max(minBlock, min(s.want, maxBlock)))
	}
	s.pos = 0
	n, err := io.ReadAtLeast(s.rand, s.buf, 1)
	s.buf = s.buf[:n]
	return err
}
