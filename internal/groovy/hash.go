package groovy

import (
	"encoding/binary"
	"math/big"
	"time"
)

// HashCode returns what hashCode() returns in Java.
func (v Value) HashCode() (int32, error) {
	switch v.class {
	case Boolean:
		if v.n == 1 {
			return 1231, nil
		}
		return 1237, nil
	case Integer:
		return int32(v.n), nil
	case Long, Double:
		return fold(v.n), nil
	case BigInteger:
		return hashBig(v.big()), nil
	case BigDecimal:
		return hashDecimal(v), nil
	case String:
		return HashString(v.s), nil
	case LocalDate:
		return hashDate(v.x.(time.Time)), nil
	case LocalDateTime:
		return hashDate(v.x.(time.Time)) ^ hashClock(v.x.(time.Time)), nil
	case UUID:
		u := v.x.([16]byte)
		return fold(int64(binary.BigEndian.Uint64(u[:8]) ^ binary.BigEndian.Uint64(u[8:]))), nil
	case Date:
		return fold(v.x.(time.Time).UnixMilli()), nil
	case Null:
		return 0, evalError("null has no hashCode()")
	}
	return 0, evalError("hashCode() of a %s is not understood", v.class)
}

// fold is the hash of a Long.
func fold(n int64) int32 { return int32(n ^ int64(uint64(n)>>32)) }

// HashString is String.hashCode(): over UTF-16 units, each times 31 more.
func HashString(s string) int32 {
	var h int32
	for _, r := range s {
		if r >= 0x10000 {
			r -= 0x10000
			h = 31*h + 0xd800 + r>>10
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + r
	}
	return h
}

func hashBig(n *big.Int) int32 {
	var h int32
	magnitude := n.Bytes()
	for len(magnitude)%4 != 0 {
		magnitude = append([]byte{0}, magnitude...)
	}
	for ; len(magnitude) > 0; magnitude = magnitude[4:] {
		h = 31*h + int32(binary.BigEndian.Uint32(magnitude))
	}
	return h * int32(n.Sign())
}

// hashDecimal is BigDecimal.hashCode(), which for an unscaled value of 64 bits is
// computed without a BigInteger, to the same result.
func hashDecimal(v Value) int32 {
	return 31*hashBig(v.x.(*big.Int)) + int32(v.n)
}

func hashDate(t time.Time) int32 {
	y, m, d := int32(t.Year()), int32(t.Month()), int32(t.Day())
	return y&^0x7ff ^ (y<<11 + m<<6 + d)
}

func hashClock(t time.Time) int32 {
	seconds := t.Hour()*3600 + t.Minute()*60 + t.Second()
	return fold(int64(seconds)*1e9 + int64(t.Nanosecond()))
}
