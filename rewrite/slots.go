package rewrite

import (
	"slices"
	"sort"
)

// slots are the places of a statement's keys, one a row. Texts can have
// millions of rows: what is the same for all of them is not stored.
type slots struct {
	at     []uint32   // where the key goes
	ends   []uint32   // the end of the text that it replaces; nil: none
	kinds  []SlotKind // nil: all Fill
	before []uint32   // the user's placeholders before at; nil: none
}

func (s *slots) kind(i int) SlotKind {
	if s.kinds == nil {
		return Fill
	}
	return s.kinds[i]
}

func (s *slots) params(i int) int {
	if s.before == nil {
		return 0
	}
	return int(s.before[i])
}

func (s *slots) end(i int) int {
	if s.ends == nil {
		return int(s.at[i])
	}
	return int(s.ends[i])
}

// fills counts the Fill rows.
func (s *slots) fills() int {
	if s.kinds == nil {
		return len(s.at)
	}
	n := 0
	for _, k := range s.kinds {
		if k == Fill {
			n++
		}
	}
	return n
}

// fillsBefore counts the Fill rows whose key stands before the user's
// placeholder i. The columns are in the order of the text.
func (s *slots) fillsBefore(i int) int {
	rows := len(s.at)
	if s.before != nil {
		rows = sort.Search(rows, func(row int) bool { return int(s.before[row]) > i })
	}
	if s.kinds == nil {
		return rows
	}
	n := 0
	for _, k := range s.kinds[:rows] {
		if k == Fill {
			n++
		}
	}
	return n
}

// add appends a slot, and widens the columns that it is the first to need.
func (s *slots) add(at, end int, kind SlotKind, before int) {
	n := len(s.at)
	s.at = append(s.at, uint32(at))
	if s.ends == nil && end != at {
		s.ends = append(make([]uint32, 0, cap(s.at)), s.at[:n]...)
	}
	if s.ends != nil {
		s.ends = append(s.ends, uint32(end))
	}
	if s.kinds == nil && kind != Fill {
		s.kinds = make([]SlotKind, n, cap(s.at))
	}
	if s.kinds != nil {
		s.kinds = append(s.kinds, kind)
	}
	if s.before == nil && before != 0 {
		s.before = make([]uint32, n, cap(s.at))
	}
	if s.before != nil {
		s.before = append(s.before, uint32(before))
	}
}

// grow makes room for n more slots.
func (s *slots) grow(n int) {
	s.at = slices.Grow(s.at, n)
	if s.ends != nil {
		s.ends = slices.Grow(s.ends, n)
	}
	if s.kinds != nil {
		s.kinds = slices.Grow(s.kinds, n)
	}
	if s.before != nil {
		s.before = slices.Grow(s.before, n)
	}
}

// equal tells whether two readings of a text fill the same places.
func (s *slots) equal(o *slots) bool {
	if len(s.at) != len(o.at) {
		return false
	}
	for i := range s.at {
		if s.at[i] != o.at[i] || s.end(i) != o.end(i) || s.kind(i) != o.kind(i) || s.params(i) != o.params(i) {
			return false
		}
	}
	return true
}
