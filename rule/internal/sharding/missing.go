package sharding

import (
	"slices"
	"strconv"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// Missing returns a name that the algorithm selects for some values, but that isn't among the
// strategy's names. of is the number of values that the selection depends on, for example the
// modulus. Missing returns "" if there is no such name, or if the selection depends on more than a
// remainder.
func (s *Strategy) Missing() (name string, of int64) {
	switch s.numbers.(type) {
	case *mod, *hashMod:
		of = s.numbers.tables()
		for n := range of {
			if _, ok := s.byNumber[n]; !ok {
				return s.name(n), of
			}
		}
		return "", of
	}
	if s.template == nil {
		return "", 0
	}
	of, names := s.template.Remainders(s.samples())
	if names == nil {
		period := s.period()
		of, names = int64(len(period)), slices.Values(period)
	}
	for name := range names {
		if _, ok := s.named([]byte(name)); !ok {
			return name, of
		}
	}
	return "", of
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
