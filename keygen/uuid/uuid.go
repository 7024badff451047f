// Package uuid generates the keys of type UUID: random ones (version 4) and time-ordered ones
// (version 7), as strings or as 16 bytes (https://www.rfc-editor.org/rfc/rfc9562, sections 5.4 and
// 5.7).
//
//	keyGenerators:
//	  uuid:  {type: UUID} # 9f2c…, 32 hex digits, as ShardingSphere's UUIDKeyGenerateAlgorithm
//	  uuid7: {type: UUID, props: {version: 7, format: binary}}
//
// The formats are hex (32 digits, CHAR(32)), canonical (with dashes, CHAR(36)) and binary (16
// bytes, BINARY(16)).
//
// Version 4 has 122 bits of crypto/rand. Goroutines share no state. Random bytes aren't buffered,
// because a cloned virtual machine would use the same bytes again.
//
// Version 7 begins with the time, so that new keys go to the end of an index. The bits below the
// millisecond use method 3 of RFC 9562 (section 6.2):
//
//	48 bits         | 4 |      12 bits         | 2 |  62 bits
//	ms since 1970   | 7 | 1/4096 ms or counter |   |  crypto/rand
//
// The 60 bits of time of a key are larger than those of all earlier keys of the generator. If keys
// are requested faster than 4,096 per millisecond, or if the clock steps back, the time continues
// from the last key's and is ahead of the clock.
package uuid

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/shardkey/shardkey/keygen/internal/tick"
	"github.com/shardkey/shardkey/spi"
)

// generator generates UUIDs. It never waits. Its methods may be called by multiple goroutines at
// once.
type generator struct {
	version string // "4" or "7"
	format  string // hex, canonical or binary
	clock   tick.Clock

	_    [64]byte      // last has its own cache line, because each UUID writes it
	last atomic.Uint64 // version 7: the newest time, in 1/4096 ms since 1970
	_    [56]byte
}

func init() {
	spi.RegisterKeyGenerator("UUID", func(p spi.Props) (spi.KeyGenerator, error) {
		version, err := p.Enum("version", "4", "4", "7")
		if err != nil {
			return nil, err
		}
		format, err := p.Enum("format", "hex", "hex", "canonical", "binary")
		if err != nil {
			return nil, err
		}
		g := &generator{version: version, format: format}
		g.clock.Init(p.Clock(), time.Unix(0, 0), time.Millisecond, math.MaxInt64)
		return g, nil
	})
}

// GenerateKeys returns n UUIDs. Each is a string, or a []byte in the binary format. UUIDs of
// version 7 ascend. The error is [spi.ErrTimeOverflow] for version 7 if the clock is before 1970 or
// after 2262.
func (g *generator) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	n = max(n, 0)
	var first uint64
	ordered := g.version == "7"
	if ordered {
		var err error
		if first, err = g.reserve(uint64(n)); err != nil {
			return nil, err
		}
	}
	made := make([]byte, 16*n)
	_, _ = rand.Read(made) // documented never to return an error
	keys := make([]any, n)
	for i := range keys {
		u := (*uuid.UUID)(made[16*i:])
		if at := first + uint64(i); ordered {
			binary.BigEndian.PutUint64(u[:8], at>>12<<16|7<<12|at&0xfff)
		} else {
			u[6] = u[6]&0x0f | 4<<4
		}
		u[8] = u[8]&0x3f | 0x80 // the variant
		keys[i] = g.formatted(u)
	}
	return keys, nil
}

func (g *generator) formatted(u *uuid.UUID) any {
	switch g.format {
	case "canonical":
		return u.String()
	case "binary":
		b := *u // a copy, so that a key doesn't keep the others of its call in memory
		return b[:]
	}
	var text [32]byte
	hex.Encode(text[:], u[:])
	return string(text[:])
}

// end is the end of Go's nanoseconds, in April 2262, in 1/4096 ms.
const end = math.MaxInt64 / uint64(time.Millisecond) << 12

// reserve reserves n times, in 1/4096 ms since 1970, above all earlier ones. It starts at the
// clock's time, or after the last time if the clock isn't past it. It returns the first reserved
// time.
func (g *generator) reserve(n uint64) (uint64, error) {
	now, err := g.now()
	if err != nil {
		return 0, err
	}
	for {
		last := g.last.Load()
		first := max(now, last+1)
		if first+n > end {
			return 0, fmt.Errorf("%w: UUID version 7: expected a time before April 2262", spi.ErrTimeOverflow)
		}
		if g.last.CompareAndSwap(last, first+n-1) {
			return first, nil
		}
	}
}

// now returns the clock's time in 1/4096 ms since 1970.
func (g *generator) now() (uint64, error) {
	ns := g.clock.Nanos()
	if ns < 0 {
		return 0, fmt.Errorf("%w: UUID version 7: expected a time from 1970 on; check the clock", spi.ErrTimeOverflow)
	}
	ms, rest := uint64(ns)/uint64(time.Millisecond), uint64(ns)%uint64(time.Millisecond)
	return ms<<12 | rest<<12/uint64(time.Millisecond), nil
}

// Describe returns the version and the format.
func (g *generator) Describe() string {
	return fmt.Sprintf("UUID version %s, format %s", g.version, g.format)
}

// Health reports, for version 7, how far the newest key is ahead of the clock. Keys aren't counted,
// because goroutines would contend for the counter.
func (g *generator) Health() spi.Health {
	if g.version != "7" {
		return spi.Health{}
	}
	clock := new(spi.ClockHealth)
	if now, err := g.now(); err == nil && g.last.Load() > now {
		clock.Ahead = time.Duration((g.last.Load()-now)>>12) * time.Millisecond
	}
	return spi.Health{Clock: clock}
}
