package uuid

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/shardkey/shardkey/keygen/internal/tick"
	"github.com/shardkey/shardkey/spi"
)

var (
	_ spi.KeyGenerator   = (*generator)(nil)
	_ spi.Describer      = (*generator)(nil)
	_ spi.HealthReporter = (*generator)(nil)
)

// Formats of a UUID in its column.
const (
	hexFormat       = "hex"       // 32 lower-case hex digits, a string
	canonicalFormat = "canonical" // the same in groups of 8-4-4-4-12 with dashes, a string
	binaryFormat    = "binary"    // the 16 bytes, a []byte
)

// config describes a generator.
type config struct {
	version int    // 4 (random) or 7 (time-ordered)
	format  string // one of the formats
	clock   spi.Clock
	rand    io.Reader // nil is crypto/rand
}

// generator generates UUIDs. It never waits, and any number of goroutines may use it.
type generator struct {
	cfg   config
	clock tick.Clock

	_    [64]byte      // last has a cache line of its own; each UUID writes it
	last atomic.Uint64 // version 7: the newest time, in 1/4096 ms since 1970
	_    [56]byte
}

func newGenerator(cfg config) *generator {
	g := &generator{cfg: cfg}
	g.clock.Init(cfg.clock, time.Unix(0, 0), time.Millisecond, math.MaxInt64)
	return g
}

// uuid makes one UUID. Its only errors are those of the random source, and version
// 7's [spi.ErrTimeOverflow] when the clock is before 1970 or after 2262.
func (g *generator) uuid() (uuid.UUID, error) {
	var u uuid.UUID
	random := u[:]
	if g.cfg.version == 7 {
		random = u[8:] // the rest is time
	}
	err := g.random(random)
	if err == nil {
		err = g.stamp(u[:])
	}
	if err != nil {
		return uuid.Nil, err
	}
	return u, nil
}

// chunk is how many UUIDs are made of one read of randomness.
const chunk = 64

// GenerateKeys makes n UUIDs, each a string, or a []byte of its own for
// the binary format. Those of version 7 ascend.
func (g *generator) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	if n == 1 {
		u, err := g.uuid()
		if err != nil {
			return nil, err
		}
		return []any{g.format(&u)}, nil
	}
	keys := make([]any, 0, max(n, 0))
	var block [chunk * 16]byte
	for len(keys) < n {
		made := block[:16*min(n-len(keys), chunk)]
		if err := g.random(made); err != nil {
			return nil, err
		}
		if err := g.stamp(made); err != nil {
			return nil, err
		}
		for i := 0; i < len(made); i += 16 {
			keys = append(keys, g.format((*uuid.UUID)(made[i:])))
		}
	}
	return keys, nil
}

func (g *generator) random(b []byte) error {
	if g.cfg.rand == nil {
		_, err := rand.Read(b) // by contract it never fails
		return err
	}
	if err := readFull(g.cfg.rand, b); err != nil {
		return fmt.Errorf("shardkey: UUID: no randomness: %w", err)
	}
	return nil
}

// readFull keeps b on its owner's stack: only the copy is the reader's.
func readFull(r io.Reader, b []byte) error {
	buf := make([]byte, len(b))
	_, err := io.ReadFull(r, buf)
	copy(b, buf)
	return err
}

// stamp makes UUIDs of blocks of 16 random bytes: it writes version, variant
// and, in version 7, the time.
func (g *generator) stamp(made []byte) error {
	n := len(made) / 16
	var at uint64
	if g.cfg.version == 7 {
		var err error
		if at, err = g.reserve(uint64(n)); err != nil {
			return err
		}
	}
	for i := range n {
		u := (*uuid.UUID)(made[16*i:])
		if g.cfg.version == 7 {
			putTime(u, at+uint64(i))
		} else {
			u[6] = u[6]&0x0f | 4<<4
		}
		u[8] = u[8]&0x3f | 0x80
	}
	return nil
}

func (g *generator) format(u *uuid.UUID) any {
	switch g.cfg.format {
	case canonicalFormat:
		return u.String()
	case binaryFormat:
		b := *u
		return b[:]
	}
	var text [32]byte
	hex.Encode(text[:], u[:])
	return string(text[:])
}

// Describe returns version and format.
func (g *generator) Describe() string {
	return fmt.Sprintf("UUID version %d, format %s", g.cfg.version, g.cfg.format)
}

// Health reports for version 7 how far the newest key is ahead of the clock. Keys
// are not counted: goroutines would meet at the counter, and nowhere else.
func (g *generator) Health() spi.Health {
	if g.cfg.version != 7 {
		return spi.Health{}
	}
	h := spi.Health{Borrowed: new(time.Duration)}
	last := g.last.Load()
	if now, err := g.now(); err == nil && last > now {
		*h.Borrowed = time.Duration((last-now)>>12) * time.Millisecond
	}
	return h
}

// end is the time that Go's nanoseconds end with, in 1/4096 ms: in April 2262.
const end = math.MaxInt64 / int64(time.Millisecond) << 12

// reserve takes n times, in 1/4096 ms since 1970, that are above all taken
// before: the clock's, or the ones after the last when the clock is not
// above it. It returns the first.
func (g *generator) reserve(n uint64) (uint64, error) {
	now, err := g.now()
	if err != nil {
		return 0, err
	}
	for {
		last := g.last.Load()
		first := max(now, last+1)
		if first+n > uint64(end) {
			return 0, fmt.Errorf("%w: UUID version 7 has no time left after the year 2262", spi.ErrTimeOverflow)
		}
		if g.last.CompareAndSwap(last, first+n-1) {
			return first, nil
		}
	}
}

// now is the clock's time in 1/4096 ms since 1970.
func (g *generator) now() (uint64, error) {
	ns := g.clock.Nanos()
	if ns < 0 {
		return 0, fmt.Errorf("%w: UUID version 7 has none before 1970, and the clock says so", spi.ErrTimeOverflow)
	}
	ms, rest := uint64(ns)/uint64(time.Millisecond), uint64(ns)%uint64(time.Millisecond)
	return ms<<12 | rest<<12/uint64(time.Millisecond), nil
}

// putTime writes 48 bits of milliseconds, the version and 12 bits below them.
func putTime(u *uuid.UUID, at uint64) {
	binary.BigEndian.PutUint64(u[:8], at>>12<<16|7<<12|at&0xfff)
}

func init() {
	spi.RegisterKeyGenerator("UUID", func(p spi.Props) (spi.KeyGenerator, error) {
		version, err := p.Enum("version", "4", "4", "7")
		if err != nil {
			return nil, err
		}
		format, err := p.Enum("format", hexFormat, hexFormat, canonicalFormat, binaryFormat)
		if err != nil {
			return nil, err
		}
		return newGenerator(config{version: int(version[0] - '0'), format: format, clock: p.Clock()}), nil
	})
}
