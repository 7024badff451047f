package place

import (
	"slices"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// maxModulus bounds the moduli that remainders tries.
const maxModulus = 1 << 12

// The largest numbers that remainders tries, in bits. Sums and products of larger numbers may
// overflow.
const (
	longestLong    = 62
	longestInteger = 30
)

// Modulus returns n if the column's remainder modulo n determines the name, and the number of
// names. Either each remainder has its own name, or n is the smallest power of 2 with which all
// names are equally frequent. For other algorithms both results are 0.
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

// areEven reports whether made has this number of different names, all equally frequent.
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

// modulus returns n if the target of each non-negative integer depends only on the integer modulo
// n. It returns 0 if no such n is known.
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

// remainders returns the names for 0, 1, … n−1, where n is the smallest number such that the name
// depends only on the column modulo n. It returns nil if no n up to maxModulus is found.
//
// It evaluates the expression for all small numbers, which show n, and for large numbers of every
// length.
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

// repeats reports whether the names repeat for numbers of every length up to longest bits.
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
