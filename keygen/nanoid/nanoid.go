// Package nanoid generates the keys of type NANOID: short random strings that need no escaping in a
// URL, like those of https://github.com/ai/nanoid.
//
//	keyGenerators:
//	  short: {type: NANOID}                                         # V1StGXR8_Z5jdHi6B-myT
//	  code:  {type: NANOID, props: {size: 26, alphabet: 0123456789abcdefghjkmnpqrstvwxyz}}
//
// By default, a key has 21 characters out of 64, which is 126 bits. A random UUID has 122 bits.
// Every character is equally likely, whatever the alphabet's length.
//
// Short keys collide sooner. Health warns if size and alphabet have fewer than 100 bits. With b
// bits, the probability that any two of n keys are equal is about n²/2^(b+1).
package nanoid

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/shardkey/shardkey/spi"
)

const (
	defaultSize      = 21
	minSize, maxSize = 2, 255
	fewBits          = 100

	// defaultAlphabet has the 64 characters that need no escaping in a URL.
	defaultAlphabet = "_-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// generator generates random strings. It never waits. Its methods may be called by multiple
// goroutines at once.
type generator struct {
	size     int
	alphabet []rune
	mask     byte // bits of a random byte that select a character
	issued   atomic.Int64
}

func init() {
	spi.RegisterKeyGenerator("NANOID", func(p spi.Props) (spi.KeyGenerator, error) {
		size, err := p.Int("size", defaultSize, minSize, maxSize)
		if err != nil {
			return nil, err
		}
		text := p.String("alphabet", defaultAlphabet)
		if text == "" {
			return nil, p.Wrong("alphabet", "2..256 different characters")
		}
		alphabet, err := parseAlphabet(text)
		if err != nil {
			return nil, err
		}
		mask := byte(1<<bits.Len(uint(len(alphabet)-1)) - 1)
		return &generator{size: int(size), alphabet: alphabet, mask: mask}, nil
	})
}

// parseAlphabet parses an alphabet. It returns an error if the number of characters is out of
// range, or if a character is repeated, not printable or not valid UTF-8.
func parseAlphabet(text string) ([]rune, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("shardkey: NANOID alphabet: expected UTF-8, found %q", text)
	}
	alphabet := []rune(text)
	if len(alphabet) < 2 || len(alphabet) > 256 {
		return nil, fmt.Errorf("shardkey: NANOID alphabet: expected 2..256 characters, found %d", len(alphabet))
	}
	seen := make(map[rune]bool, len(alphabet))
	for _, r := range alphabet {
		switch {
		case seen[r]:
			return nil, fmt.Errorf("shardkey: NANOID alphabet: expected different characters, found %q twice", r)
		case !unicode.IsPrint(r):
			return nil, fmt.Errorf("shardkey: NANOID alphabet: expected printable characters, found %q", r)
		}
		seen[r] = true
	}
	return alphabet, nil
}

// GenerateKeys returns n keys. Each is a string. The error is always nil.
func (g *generator) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	keys := make([]any, max(n, 0))
	for i := range keys {
		keys[i] = g.key()
	}
	g.issued.Add(int64(len(keys)))
	return keys, nil
}

// key returns a random key. It discards random bytes that select no character. Taking them modulo
// the alphabet's length would favor the first characters.
func (g *generator) key() string {
	var random [maxSize]byte
	var text [maxSize * utf8.UTFMax]byte
	key, missing := text[:0], g.size
	for missing > 0 {
		block := random[:missing]
		_, _ = rand.Read(block) // documented never to return an error
		for _, b := range block {
			if i := int(b & g.mask); i < len(g.alphabet) {
				key = utf8.AppendRune(key, g.alphabet[i])
				missing--
			}
		}
	}
	return string(key)
}

// bits returns the number of random bits in a key.
func (g *generator) bits() int {
	return int(float64(g.size) * math.Log2(float64(len(g.alphabet))))
}

// Describe returns the size, the alphabet's length and the number of bits.
func (g *generator) Describe() string {
	return fmt.Sprintf("NANOID of %d characters out of %d, %d bits", g.size, len(g.alphabet), g.bits())
}

// Health reports the number of generated keys, and warns if they have few bits.
func (g *generator) Health() spi.Health {
	h := spi.Health{Issued: g.issued.Load()}
	if g.bits() < fewBits {
		h.Warnings = append(h.Warnings, fmt.Sprintf("shardkey: NANOID keys only have %d random bits, so duplicates are likely; increase size", g.bits()))
	}
	return h
}
