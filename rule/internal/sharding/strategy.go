package sharding

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// Strategy is a sharding algorithm of a column, and the names that it chooses from. After [Strategy.Over]
// it never changes, and may be used by multiple goroutines at once.
type Strategy struct {
	Type   string   // the algorithm's type in upper case
	Odd    string   // a warning about a property that is probably a mistake, or ""
	Names  []string // the names that the strategy chooses from
	column string
	class  expr.Class // Java class of the column; Null means the class of the value

	// Exactly one of these three is set.
	numbers  numbering
	template *expr.Template
	interval *interval

	// Numbered names consist of a prefix and a number with at least these digits.
	prefix string
	digits int
	width  int // a property's minimum number of digits

	byNumber map[int64]int // indexes of the names, by number
	byName   map[string]int
	byEnd    map[string]int // INTERVAL: indexes of the names, by their ends; or several
}

// several stands for the index if several names have the same end.
const several = -1

// Over sets the names that the strategy chooses from. logical is the logical name of their table, or
// empty for data sources.
func (s *Strategy) Over(logical string, names []string) {
	s.Names = names
	s.prefix, s.digits = numbered(logical, names)
	switch {
	case s.numbers != nil:
		s.number()
	case s.interval != nil:
		s.matchEnds()
	default:
		s.byName = make(map[string]int, len(names))
		for i, name := range slices.Backward(names) {
			s.byName[strings.ToLower(name)] = i
		}
		for i, name := range slices.Backward(names) {
			s.byName[name] = i
		}
	}
}

// numbered returns the prefix of numbered names and their least number of digits. As in
// ShardingSphere, the prefix comes from the first name, and the number of digits from the shortest.
// A logical name is part of the prefix.
func numbered(logical string, names []string) (prefix string, digits int) {
	if len(names) == 0 {
		return "", 0
	}
	first, kept := names[0], 0
	if len(first) >= len(logical) && strings.EqualFold(first[:len(logical)], logical) {
		kept = len(logical)
	}
	prefix = first[:kept] + strings.TrimRight(first[kept:], "0123456789")
	shortest := slices.MinFunc(names, func(a, b string) int { return len(a) - len(b) })
	return prefix, max(0, len(shortest)-len(prefix))
}

// number sets byNumber from the names.
func (s *Strategy) number() {
	s.byNumber = make(map[int64]int, len(s.Names))
	for i, name := range s.Names {
		n, err := strconv.ParseInt(strings.TrimPrefix(name, s.prefix), 10, 64)
		if err == nil && n >= 0 && n < s.numbers.tables() && s.name(n) == name {
			s.byNumber[n] = i
		}
	}
}

// matchEnds sets byEnd from the names. An end has as many characters as the name of a step.
func (s *Strategy) matchEnds() {
	s.byEnd = make(map[string]int, len(s.Names))
	length := len(s.interval.name(0))
	for i, name := range s.Names {
		if len(name) < length {
			continue
		}
		end := name[len(name)-length:]
		if _, taken := s.byEnd[end]; taken {
			i = several
		}
		s.byEnd[end] = i
	}
}

func (s *Strategy) name(n int64) string {
	digits := strconv.FormatInt(n, 10)
	return s.prefix + strings.Repeat("0", max(0, max(s.width, s.digits)-len(digits))) + digits
}

// Place returns the index of the name that a row belongs to, for a value of the sharding column.
// The error is a [*PlaceError].
func (s *Strategy) Place(v expr.Value) (int, error) {
	if v.Class() == expr.Null {
		return 0, s.noTable("the value is NULL")
	}
	v, err := v.Convert(s.class)
	switch {
	case err != nil:
		return 0, s.unknown(err)
	case s.interval != nil:
		return s.placeStep(v)
	case v.Class() == expr.Time:
		return 0, s.unknown(errTime)
	case s.template != nil:
		return s.placeName(v)
	}
	n, err := s.numbers.number(v)
	if err != nil {
		return 0, s.unknown(err)
	}
	i, ok := s.byNumber[n]
	if !ok {
		return 0, s.NoName(s.name(n))
	}
	return i, nil
}

var errTime = &expr.Error{Reason: "the Java class of a time isn't known"}

func (s *Strategy) placeName(v expr.Value) (int, error) {
	var buf [128]byte
	name, err := s.template.Append(buf[:0], v)
	if err != nil {
		return 0, s.unknown(err)
	}
	i, ok := s.named(name)
	if !ok {
		return 0, s.NoName(string(name))
	}
	return i, nil
}

// named returns the index of a name that the expression has computed.
func (s *Strategy) named(name []byte) (i int, ok bool) {
	if i, ok = s.byName[string(name)]; !ok {
		i, ok = s.byName[strings.ToLower(string(name))]
	}
	return i, ok
}

func (s *Strategy) placeStep(v expr.Value) (int, error) {
	step, err := s.interval.step(v)
	if err != nil {
		return 0, s.unknown(err)
	}
	if step < 0 {
		return 0, s.noTable("the value is not between datetime-lower and datetime-upper")
	}
	end := s.interval.name(step)
	switch i, ok := s.byEnd[end]; {
	case !ok:
		return 0, s.NoName(end)
	case i == several:
		return 0, s.unknown(fmt.Errorf("several tables end in %q", end))
	default:
		return i, nil
	}
}

// PlaceError is the error for a value that belongs to none of the strategy's names, or whose place
// can't be computed.
type PlaceError struct {
	Column string // the column whose value is at fault; empty if a computed name doesn't exist
	Reason string
	// Unknown reports whether the result of the algorithm isn't known, so that the row may belong to
	// any of the names.
	Unknown bool
}

func (pe *PlaceError) Error() string { return pe.Reason }

func (s *Strategy) unknown(err error) error {
	reason := fmt.Sprintf("cannot apply %s to the value of %s: %v", s.Type, s.column, err)
	return &PlaceError{Column: s.column, Reason: reason, Unknown: true}
}

func (s *Strategy) noTable(why string) error {
	return &PlaceError{Column: s.column, Reason: fmt.Sprintf("%s has no table for the value of %s: %s", s.Type, s.column, why)}
}

// NoName returns the error for a computed name that doesn't exist. It shows the name only for
// algorithms that number the names, because others may copy the value.
func (s *Strategy) NoName(name string) error {
	if s.numbers == nil {
		return &PlaceError{Reason: s.Type + " selects a name that does not exist"}
	}
	return &PlaceError{Reason: fmt.Sprintf("%s selects %q, which does not exist", s.Type, name)}
}

// NotUnderstoodError is the error for an algorithm that has an unknown type, or properties that are
// wrong or unknown.
type NotUnderstoodError struct {
	Prop   string // the property at fault; empty if it is the type
	Reason string // what is wrong; it continues an error message
	// Wrong reports whether it is a mistake, which ShardingSphere doesn't accept either.
	Wrong bool
}

func (e *NotUnderstoodError) Error() string { return e.Reason }
