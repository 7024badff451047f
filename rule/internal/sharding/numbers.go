package sharding

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

type numbering interface {
	// number returns the number of the table, from 0 to tables()-1. The error is an [*expr.Error].
	number(v expr.Value) (int64, error)
	// tables returns the number of tables.
	tables() int64
}

// mod is MOD: the value modulo count, which is never negative.
type mod struct {
	count       int64
	start, stop int64 // number of characters cut off at the start and at the end of the value's string
}

func newMod(s *Strategy, p *properties) {
	m := &mod{count: p.count("sharding-count", 1, -1), start: p.count("start-offset", 0, 0),
		stop: p.count("stop-offset", 0, 0)}
	if p.isTrue("zero-padding") {
		s.width = len(strconv.FormatInt(m.count-1, 10))
	}
	s.numbers = m
}

func (m *mod) tables() int64 { return m.count }

func (m *mod) number(v expr.Value) (int64, error) {
	if v.Class() != expr.String && m.start == 0 && m.stop == 0 {
		return floorMod(v.Int64(), m.count), nil // the low 64 bits
	}
	s := v.String()
	if m.start > 0 || m.stop > 0 {
		var err error
		if s, err = expr.Substring(s, m.start, int64(expr.Length(s))-m.stop); err != nil {
			return 0, err
		}
	}
	return remainder(s, m.count)
}

func floorMod(n, m int64) int64 {
	if n %= m; n < 0 {
		n += m
	}
	return n
}

// remainder returns the integer in s, which can have any length, modulo m.
func remainder(s string, m int64) (n int64, err error) {
	digits := s
	if s != "" && (s[0] == '-' || s[0] == '+') {
		digits = s[1:]
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, &expr.Error{Reason: "the value is not an integer"}
	}
	for _, c := range []byte(digits) {
		n = (10*n + int64(c-'0')) % m
	}
	if s[0] == '-' {
		n = -n
	}
	return floorMod(n, m), nil
}

// hashMod is HASH_MOD: the absolute hash modulo count.
type hashMod struct {
	count int64
	// normalize makes the hash of a Long equal to the hash of the same Integer, if it fits in one.
	normalize bool
}

func newHashMod(s *Strategy, p *properties) {
	s.numbers = &hashMod{p.count("sharding-count", 1, -1), p.isTrue("normalize-numeric-int-range")}
}

func (hm *hashMod) tables() int64 { return hm.count }

func (hm *hashMod) number(v expr.Value) (int64, error) {
	if hm.normalize && v.Class() == expr.Long && v.Int64() == int64(int32(v.Int64())) {
		v = expr.OfInt(int32(v.Int64()))
	}
	h, err := v.Hash()
	return max(int64(h), -int64(h)) % hm.count, err
}

// volumes is VOLUME_RANGE: one table for values below lower, one for each volume from lower on, and
// one for values from upper on.
type volumes struct{ lower, upper, volume int64 }

func newVolumes(s *Strategy, p *properties) {
	v := &volumes{p.integer("range-lower", -most, most), p.integer("range-upper", -most, most),
		p.integer("sharding-volume", 1, most)}
	if v.upper-v.lower < v.volume {
		p.fail("range-upper", "range-upper is less than range-lower plus sharding-volume")
	}
	s.numbers = v
}

func (r *volumes) tables() int64 { return (r.upper-r.lower+r.volume-1)/r.volume + 2 }

func (r *volumes) number(v expr.Value) (int64, error) {
	switch n, err := long(v); {
	case err != nil:
		return 0, err
	case n < r.lower:
		return 0, nil
	case n >= r.upper:
		return r.tables() - 1, nil
	default:
		return (n-r.lower)/r.volume + 1, nil
	}
}

// long returns the value as Long.parseLong of its string.
func long(v expr.Value) (int64, error) {
	if v.IsInteger() {
		return v.Int64(), nil
	}
	n, err := strconv.ParseInt(v.String(), 10, 64)
	if err != nil {
		return 0, &expr.Error{Reason: "the value is not a 64-bit integer"}
	}
	return n, nil
}

// boundaries is BOUNDARY_RANGE: the number of a value's table is the number of boundaries that are
// less than or equal to the value.
type boundaries []int64

func newBoundaries(s *Strategy, p *properties) {
	ranges := p.text("sharding-ranges")
	var b boundaries
	for one := range strings.SplitSeq(ranges, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(one), 10, 64)
		if err != nil {
			s.Odd = "sharding-ranges has " + strconv.Quote(expr.Clip(one)) + ", which is not an integer; " +
				"newer versions of ShardingSphere ignore it, older ones refuse it"
			continue
		}
		b = append(b, n)
	}
	if b == nil {
		p.fail("sharding-ranges", "sharding-ranges: expected integers separated by commas, found %q", expr.Clip(ranges))
	}
	slices.Sort(b)
	s.numbers = b
}

func (b boundaries) tables() int64 { return int64(len(b)) + 1 }

func (b boundaries) number(v expr.Value) (int64, error) {
	n, err := long(v)
	return int64(sort.Search(len(b), func(i int) bool { return b[i] > n })), err
}
