package sharding

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/internal/groovy"
)

// volumes is VOLUME_RANGE: one table for what is below lower, one for each volume
// from there, and one from upper on.
type volumes struct{ lower, upper, volume int64 }

func newVolumes(a *Algorithm, p properties) error {
	var v volumes
	var err error
	if v.lower, err = p.integer("range-lower", -most); err != nil {
		return err
	}
	if v.upper, err = p.integer("range-upper", -most); err != nil {
		return err
	}
	if v.volume, err = p.integer("sharding-volume", 1); err != nil {
		return err
	}
	if v.upper-v.lower < v.volume {
		return a.fail("range-upper", "range-upper is less than range-lower and one sharding-volume")
	}
	a.numbers = &v
	return nil
}

func (r *volumes) tables() int64 { return (r.upper-r.lower+r.volume-1)/r.volume + 2 }

func (r *volumes) number(v groovy.Value) (int64, error) {
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

// long is Long.parseLong of the value's text.
func long(v groovy.Value) (int64, error) {
	if v.IsInteger() {
		return v.Int64(), nil
	}
	n, err := strconv.ParseInt(v.String(), 10, 64)
	if err != nil {
		return 0, &groovy.EvalError{Reason: "it is no integer of 64 bits"}
	}
	return n, nil
}

// boundaries is BOUNDARY_RANGE: as many tables in front as there are boundaries
// that the value has reached.
type boundaries []int64

func newBoundaries(a *Algorithm, p properties) error {
	ranges, err := p.text("sharding-ranges")
	if err != nil {
		return err
	}
	var b boundaries
	for one := range strings.SplitSeq(ranges, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(one), 10, 64)
		if err != nil {
			a.odd = "sharding-ranges has " + strconv.Quote(clip(one)) + ", which is no integer: newer versions of ShardingSphere leave it out, older ones refuse it"
			continue
		}
		b = append(b, n)
	}
	if b == nil {
		return a.fail("sharding-ranges", "sharding-ranges is %q: want numbers separated by commas", clip(ranges))
	}
	slices.Sort(b)
	a.numbers = b
	return nil
}

func (b boundaries) tables() int64 { return int64(len(b)) + 1 }

func (b boundaries) number(v groovy.Value) (int64, error) {
	n, err := long(v)
	return int64(sort.Search(len(b), func(i int) bool { return b[i] > n })), err
}

// seconds is AUTO_INTERVAL: one table up to lower, one for each interval after it,
// and the last one for what is later. An interval is open at its beginning and
// closed at its end, and its bounds are those of a quotient rounded to two digits.
type seconds struct {
	lower    time.Time
	interval int64
	count    int64
}

func newSeconds(a *Algorithm, p properties) error {
	s := &seconds{}
	var err error
	if s.interval, err = p.integer("sharding-seconds", 1); err != nil {
		return err
	}
	var bounds [2]time.Time
	for i, name := range []string{"datetime-lower", "datetime-upper"} {
		text := p.values[name]
		if bounds[i], err = time.Parse(time.DateTime, text[:min(len(text), len(time.DateTime))]); err != nil {
			return a.fail(name, "%s is %q: want a time as 2026-01-31 00:00:00", name, clip(text))
		}
	}
	s.lower = bounds[0]
	between := bounds[1].Unix() - bounds[0].Unix()
	if between < 0 {
		return a.fail("datetime-upper", "datetime-upper is before datetime-lower")
	}
	s.count = between/s.interval + 2
	a.numbers = s
	return nil
}

func (s *seconds) tables() int64 { return s.count }

func (s *seconds) number(v groovy.Value) (int64, error) {
	at, err := parseTime(v, time.DateTime)
	if err != nil {
		return 0, err
	}
	since := at.Unix() - s.lower.Unix()
	if since <= 0 {
		return 0, nil
	}
	var buf [32]byte
	quotient := strconv.AppendFloat(buf[:0], float64(since)/float64(s.interval), 'f', 2, 64)
	n := int64(0)
	for _, c := range quotient[:len(quotient)-3] {
		n = 10*n + int64(c-'0')
	}
	if string(quotient[len(quotient)-2:]) != "00" {
		n++
	}
	return min(n, s.count-1), nil
}

// parseTime reads a text that begins with a time of a layout whose digits are as
// many as its own; what comes after that is left out. Of a date it takes the wall
// clock.
func parseTime(v groovy.Value, layout string) (time.Time, error) {
	if t, ok := v.Time(); ok && v.Class() != groovy.LocalDate {
		y, mo, d := t.Date()
		h, mi, s := t.Clock()
		return time.Date(y, mo, d, h, mi, s, t.Nanosecond(), time.UTC), nil
	}
	text := v.String()
	if len(text) > len(layout) {
		text = text[:len(layout)]
	}
	t, err := time.Parse(layout, text)
	if err != nil || len(text) != len(layout) {
		return t, &groovy.EvalError{Reason: "it is no time as " + layout}
	}
	return t, nil
}
