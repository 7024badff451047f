package sharding

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// Missing returns a name that the algorithm selects for some values, but that isn't among the
// strategy's names. of is the number of values that the selection depends on, for example the
// modulus. Missing returns "" if there is no such name, or if the selection depends on more than a
// remainder.
func (s *Strategy) Missing() (name string, of int64) {
	selected, of := s.selected()
	if selected == nil {
		return "", 0
	}
	for name := range selected {
		if s.indexOf(name) < 0 {
			return name, of
		}
	}
	return "", of
}

// selected returns the names that an algorithm with remainders selects, or nil.
func (s *Strategy) selected() (names iter.Seq[string], of int64) {
	switch s.numbers.(type) {
	case *mod, *hashMod:
		of = s.numbers.tables()
		return func(yield func(string) bool) {
			for n := int64(0); n < of && yield(s.name(n)); n++ {
			}
		}, of
	}
	if s.template == nil {
		return nil, 0
	}
	if of, names = s.template.Remainders(s.samples()); names != nil {
		return names, of
	}
	if period := s.period(); period != nil {
		return slices.Values(period), int64(len(period))
	}
	return nil, 0
}

// samples are values of the column: large numbers, and strings with hashes of both signs. Small
// numbers may not occur, for example those below 1000 with (id - 1000) % 4.
func (s *Strategy) samples() (values []expr.Value) {
	for i := int64(1); i < 32; i++ {
		for _, v := range []expr.Value{expr.OfString("u" + strconv.FormatInt(i*i*7919, 10)), expr.OfLong(i << (i + 24))} {
			if v, err := v.Convert(s.class); err == nil {
				values = append(values, v)
			}
		}
	}
	return values
}

// indexOf returns the index of a name that the algorithm has computed, or -1.
func (s *Strategy) indexOf(name string) int {
	if s.template == nil {
		n, err := strconv.ParseInt(strings.TrimPrefix(name, s.naming.Prefix), 10, 64)
		if i, ok := s.byNumber[n]; ok && err == nil {
			return i
		}
		return -1
	}
	for _, name := range []string{name, strings.ToLower(name)} {
		if i, ok := s.byName[name]; ok {
			return i
		}
	}
	return -1
}
