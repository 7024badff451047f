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
	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/keygen/internal/tick"
	"github.com/shardkey/shardkey/spi"
)

var (
	_ spi.KeyGenerator   = (*Generator)(nil)
	_ spi.Describer      = (*Generator)(nil)
	_ spi.HealthReporter = (*Generator)(nil)
)

// Format is how a UUID is written into its column.
type Format int

const (
	// FormatHex is 32 lower-case hex digits, a string.
	FormatHex Format = iota
	// FormatCanonical is the same in groups of 8-4-4-4-12 with dashes, a string.
	FormatCanonical
	// FormatBinary is the 16 bytes themselves, a []byte.
	FormatBinary
)

// String is the format as it is written in a rule.
func (f Format) String() string {
	switch f {
	case FormatHex:
		return "hex"
	case FormatCanonical:
		return "canonical"
	case FormatBinary:
		return "binary"
	}
	return fmt.Sprintf("Format(%d)", int(f))
}

// Config describes a generator. The zero Config makes ShardingSphere's UUIDs:
// version 4, in hex.
type Config struct {
	// Version is 4 (random) or 7 (time-ordered); zero means 4.
	Version int
	// Format is the form of the keys; zero means [FormatHex].
	Format Format
	// Clock is version 7's time; nil is the system's.
	Clock spi.Clock
	// Rand is the randomness; nil is crypto/rand. It is read by many
	// goroutines at once.
	Rand io.Reader
}

// Generator makes UUIDs. It is made by [New], never waits, and is used by any
// number of goroutines at once.
type Generator struct {
	cfg   Config
	clock tick.Clock

	_    [64]byte      // last has a cache line of its own; each UUID writes it
	last atomic.Uint64 // version 7: the newest time, in 1/4096 ms since 1970
	_    [56]byte
}

// New makes a generator. It refuses versions other than 4 and 7.
func New(cfg Config) (*Generator, error) {
	if cfg.Version == 0 {
		cfg.Version = 4
	}
	if cfg.Clock == nil {
		cfg.Clock = spi.SystemClock
	}
	if cfg.Clock != spi.SystemClock {
		cfg.Clock = guard.NewClock(cfg.Clock)
	}
	switch {
	case cfg.Version != 4 && cfg.Version != 7:
		return nil, fmt.Errorf("shardkey: UUID version %d is not made here: use 4 (random) or 7 (time-ordered)", cfg.Version)
	case cfg.Format < FormatHex || cfg.Format > FormatBinary:
		return nil, fmt.Errorf("shardkey: UUID %v is not known: use FormatHex, FormatCanonical or FormatBinary", cfg.Format)
	}
	g := &Generator{cfg: cfg}
	g.clock.Init(cfg.Clock, time.Unix(0, 0), time.Millisecond, math.MaxInt64)
	return g, nil
}

// UUID makes one UUID. Its only errors are those of Config.Rand, and version
// 7's [spi.ErrTimeOverflow] when the clock is before 1970 or after 2262.
func (g *Generator) UUID() (uuid.UUID, error) {
	var u uuid.UUID
	random := u[:]
	if g.cfg.Version == 7 {
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
// [FormatBinary]. Those of version 7 ascend.
func (g *Generator) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	if n == 1 {
		u, err := g.UUID()
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

func (g *Generator) random(b []byte) error {
	if g.cfg.Rand == nil {
		_, err := rand.Read(b) // by contract it never fails
		return err
	}
	if err := readFull(g.cfg.Rand, b); err != nil {
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
func (g *Generator) stamp(made []byte) error {
	n := len(made) / 16
	var at uint64
	if g.cfg.Version == 7 {
		var err error
		if at, err = g.reserve(uint64(n)); err != nil {
			return err
		}
	}
	for i := range n {
		u := (*uuid.UUID)(made[16*i:])
		if g.cfg.Version == 7 {
			putTime(u, at+uint64(i))
		} else {
			u[6] = u[6]&0x0f | 4<<4
		}
		u[8] = u[8]&0x3f | 0x80
	}
	return nil
}

func (g *Generator) format(u *uuid.UUID) any {
	switch g.cfg.Format {
	case FormatCanonical:
		return u.String()
	case FormatBinary:
		b := *u
		return b[:]
	}
	var text [32]byte
	hex.Encode(text[:], u[:])
	return string(text[:])
}

// Describe returns version and format.
func (g *Generator) Describe() string {
	return fmt.Sprintf("UUID version %d, format %s", g.cfg.Version, g.cfg.Format)
}

// Health reports for version 7 how far the newest key is ahead of the clock. Keys
// are not counted: goroutines would meet at the counter, and nowhere else.
func (g *Generator) Health() spi.Health {
	var h spi.Health
	if g.cfg.Version != 7 {
		return h
	}
	last := g.last.Load()
	if now, err := g.now(); err == nil && last > now {
		h.Borrowed = time.Duration((last-now)>>12) * time.Millisecond
	}
	return h
}

// end is the time that Go's nanoseconds end with, in 1/4096 ms: in April 2262.
const end = math.MaxInt64 / int64(time.Millisecond) << 12

// reserve takes n times, in 1/4096 ms since 1970, that are above all taken
// before: the clock's, or the ones after the last when the clock is not
// above it. It returns the first.
func (g *Generator) reserve(n uint64) (uint64, error) {
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
func (g *Generator) now() (uint64, error) {
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
		format, err := p.Enum("format", FormatHex.String(), FormatHex.String(), FormatCanonical.String(), FormatBinary.String())
		if err != nil {
			return nil, err
		}
		cfg := Config{Version: int(version[0] - '0'), Clock: p.Clock()}
		for _, f := range []Format{FormatHex, FormatCanonical, FormatBinary} {
			if f.String() == format {
				cfg.Format = f
			}
		}
		g, err := New(cfg)
		if err != nil {
			return nil, err
		}
		return g, nil
	})
}
