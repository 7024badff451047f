package nanoid

import (
	"context"
	"crypto/rand"
	"errors"
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
	_ spi.KeyGenerator   = (*Generator)(nil)
	_ spi.Describer      = (*Generator)(nil)
	_ spi.HealthReporter = (*Generator)(nil)
)

const (
	// DefaultSize is the length of a key that has no size of its own.
	DefaultSize = 21
	// DefaultAlphabet is the 64 characters that need no escaping in a URL.
	DefaultAlphabet = "_-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

	minSize, maxSize = 2, 255
	fewBits          = 100
)

// Config describes a generator; its zero value is Nano ID's default.
type Config struct {
	// Size is the number of characters, 2..255; zero means [DefaultSize].
	Size int
	// Alphabet is 2..256 different characters; empty means [DefaultAlphabet].
	Alphabet string
	// Rand is the randomness; nil is crypto/rand. It is read by many
	// goroutines at once.
	Rand io.Reader
}

// Generator makes random texts. It is made by [New], never waits, and is used
// by any number of goroutines at once.
type Generator struct {
	size     int
	alphabet []rune
	mask     byte // the bits of a random byte that choose a character
	rand     io.Reader
	issued   atomic.Int64
}

// New makes a generator. It refuses a size or an alphabet out of range, and
// an alphabet with a character that is repeated, is not printable or is
// not UTF-8.
func New(cfg Config) (*Generator, error) {
	if cfg.Size == 0 {
		cfg.Size = DefaultSize
	}
	if cfg.Alphabet == "" {
		cfg.Alphabet = DefaultAlphabet
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	if cfg.Size < minSize || cfg.Size > maxSize {
		return nil, fmt.Errorf("shardkey: NANOID size %d is not in %d..%d", cfg.Size, minSize, maxSize)
	}
	alphabet, err := parseAlphabet(cfg.Alphabet)
	if err != nil {
		return nil, err
	}
	return &Generator{
		size:     cfg.Size,
		alphabet: alphabet,
		mask:     byte(1<<bits.Len(uint(len(alphabet)-1)) - 1),
		rand:     cfg.Rand,
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
func (g *Generator) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	if g.rand == nil {
		return nil, errors.New("shardkey: the nanoid.Generator is zero; make it with New")
	}
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
func (g *Generator) letter(src *source) (rune, error) {
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

// Bits is how many random bits a key has.
func (g *Generator) Bits() int {
	return int(float64(g.size) * math.Log2(float64(len(g.alphabet))))
}

// Describe returns size, alphabet and bits.
func (g *Generator) Describe() string {
	return fmt.Sprintf("NANOID of %d characters out of %d, %d bits", g.size, len(g.alphabet), g.Bits())
}

// Health reports how many keys were made, and warns of few bits.
func (g *Generator) Health() spi.Health {
	h := spi.Health{Issued: g.issued.Load()}
	if g.Bits() < fewBits {
		h.Warnings = append(h.Warnings, fmt.Sprintf("shardkey: NANOID keys have %d random bits only: raise size", g.Bits()))
	}
	return h
}

func init() {
	spi.RegisterKeyGenerator("NANOID", func(p spi.Props) (spi.KeyGenerator, error) {
		size, err := p.Int("size", DefaultSize, minSize, maxSize)
		if err != nil {
			return nil, err
		}
		alphabet := p.String("alphabet", DefaultAlphabet)
		if alphabet == "" {
			return nil, p.Wrong("alphabet", "2..256 different characters")
		}
		g, err := New(Config{Size: int(size), Alphabet: alphabet})
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
