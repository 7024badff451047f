package sharding

import "github.com/shardkey/shardkey/internal/groovy"

// maxModulus bounds the number of remainders that an expression is tried for.
const maxModulus = 1 << 12

// An expression is tried with numbers of so many bits: the sums and products of longer ones may
// overflow.
const (
	longestLong    = 62
	longestInteger = 30
)

// Modulus returns n when column i is all that the algorithm uses of a row, or one
// of several, and its remainder modulo n decides on the name: each makes a name of
// its own, of which there are then n, or n is a power of 2 and the least of which the
// remainders make all names equally often. It is 0 when it is not like that.
func (a *Algorithm) Modulus(i int) (n, names int64) {
	if m, ok := a.numbers.(*mod); ok && m.start == 0 && m.stop == 0 {
		return m.count, m.count
	}
	if a.template == nil {
		return 0, 0
	}
	// The other columns are the same, whatever they are.
	values := make([]groovy.Value, len(a.columns))
	for j := range values {
		values[j] = groovy.OfLong(1)
	}
	made := a.remainders(i, groovy.Long, values)
	if len(made) < 2 {
		return 0, 0
	}
	count := map[string]int64{}
	var even int64 // the least power of 2 at which all names that were there came equally often
	for r, name := range made {
		if count[name] == 0 {
			even = 0
		}
		count[name]++
		if n := int64(r) + 1; even == 0 && n&-n == n && equal(count) {
			even = n
		}
	}
	n = int64(len(made))
	switch names = int64(len(count)); {
	case names == n:
		return n, names
	case n&-n == n && equal(count):
		return even, names
	}
	return 0, 0
}

// equal reports whether all counts are the same.
func equal(counts map[string]int64) bool {
	first := int64(-1)
	for _, n := range counts {
		if first < 0 {
			first = n
		}
		if n != first {
			return false
		}
	}
	return true
}

// modulus returns n where the remainder modulo n of the strategy's only column, an
// integer that is not negative, decides on the target; 0 where that is not known.
func (s *Strategy) modulus() int64 {
	class := groovy.Long
	if s.classes != nil && s.classes[0] != groovy.Null {
		class = s.classes[0]
	}
	if class != groovy.Long && class != groovy.Integer {
		return 0
	}
	switch n := s.numbers.(type) {
	case *mod:
		if n.start == 0 && n.stop == 0 {
			return n.count
		}
	case *hashMod:
		if class == groovy.Integer {
			return n.count
		}
	}
	if s.template == nil || len(s.columns) > 1 {
		return 0
	}
	return int64(len(s.remainders(0, class, make([]groovy.Value, 1))))
}

// remainders returns the names that an expression makes of 0, 1, … n−1 in column i, where
// it makes the same of every number as of the number's remainder modulo n; none where no
// n up to maxModulus is like that. The other columns are those of values.
//
// It tries numbers: all small ones, which show n, and large ones of every length.
func (a *Algorithm) remainders(i int, class groovy.Class, values []groovy.Value) []string {
	longest := longestLong
	if class == groovy.Integer {
		longest = longestInteger
	}
	var b []byte
	name := func(n int64) (string, bool) {
		var err error
		if values[i], err = groovy.OfLong(n).Convert(class); err != nil {
			return "", false
		}
		b, err = a.template.Append(b[:0], values)
		return string(b), err == nil
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
		if n := period(names); n <= tried/2 && repeats(names[:n], longest, name) {
			return names[:n]
		}
	}
	return nil
}

// period returns the least n for which each name is the same as the one n before.
func period(names []string) int {
	// border[i] is the length of the longest beginning of names[:i+1] that is its end too.
	border := make([]int, len(names))
	for i := 1; i < len(names); i++ {
		n := border[i-1]
		for n > 0 && names[n] != names[i] {
			n = border[n-1]
		}
		if names[n] == names[i] {
			n++
		}
		border[i] = n
	}
	return len(names) - border[len(names)-1]
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
