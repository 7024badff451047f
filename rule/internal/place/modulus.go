package place

import (
	"slices"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// maxModulus bounds the number of remainders that an expression is tried for.
const maxModulus = 1 << 12

// An expression is tried with numbers of so many bits: the sums and products of longer ones may
// overflow.
const (
	longestLong    = 62
	longestInteger = 30
)

// Modulus returns n when the column's remainder modulo n decides on the name, with the number of
// names. Either each remainder has its own name, or n is a power of 2, the least of which the
// remainders make all names equally often. It returns 0 for all other algorithms.
func (a *Algorithm) Modulus() (n, names int64) {
	if m, ok := a.numbers.(*mod); ok && m.start == 0 && m.stop == 0 {
		return m.count, m.count
	}
	made := a.remainders(expr.Long)
	names = int64(len(slices.Compact(slices.Sorted(slices.Values(made)))))
	switch n = int64(len(made)); {
	case n < 2, n != names && n&-n != n, !areEven(made, names):
		return 0, 0
	}
	for n = names; !areEven(made[:n], names); n *= 2 {
	}
	return n, names
}

// areEven reports whether so many different names come equally often.
func areEven(made []string, names int64) bool {
	count := map[string]int64{}
	for _, name := range made {
		count[name]++
	}
	for _, n := range count {
		if n*names != int64(len(made)) {
			return false
		}
	}
	return true
}

// modulus returns n where the remainder modulo n of the column, an integer that is not negative,
// decides on the target; 0 where that is not known.
func (s *Strategy) modulus() int64 {
	switch n := s.numbers.(type) {
	case *mod:
		if n.start == 0 && n.stop == 0 && s.class != expr.String {
			return n.count
		}
	case *hashMod:
		if s.class == expr.Integer {
			return n.count
		}
	}
	class := s.class
	if class == expr.Null {
		class = expr.Long
	}
	return int64(len(s.remainders(class)))
}

// remainders returns the names that an expression makes of 0, 1, … n−1, where it makes the same of
// every number as of the number's remainder modulo n; none where no n up to maxModulus is like
// that.
//
// It tries numbers: all small ones, which show n, and large ones of every length.
func (a *Algorithm) remainders(class expr.Class) []string {
	if a.template == nil || class == expr.String {
		return nil
	}
	name := func(n int64) (string, bool) {
		v, err := expr.OfLong(n).Convert(class)
		if err != nil {
			return "", false
		}
		b, err := a.template.Append(nil, v)
		return string(b), err == nil
	}
	longest := longestLong
	if class == expr.Integer {
		longest = longestInteger
	}
	var names []string
	for tried := 64; tried <= 2*maxModulus; tried *= 2 {
		for len(names) < tried {
			made, ok := name(int64(len(names)))
			if !ok {
				return nil
			}
			names = append(names, made)
		}
		n := 1
		for n <= tried/2 && !slices.Equal(names[n:], names[:tried-n]) {
			n++
		}
		if n <= tried/2 && repeats(names[:n], longest, name) {
			return names[:n]
		}
	}
	return nil
}

// repeats tries numbers of every length up to longest bits.
func repeats(names []string, longest int, name func(int64) (string, bool)) bool {
	random := uint64(0)
	for bits := 8; bits <= longest; bits++ {
		for range 4 {
			random += 0x9e3779b97f4a7c15
			n := int64(random * random >> (64 - bits))
			if made, ok := name(n); !ok || made != names[n%int64(len(names))] {
				return false
			}
		}
	}
	return true
}
