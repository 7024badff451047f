package sharding

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// Naming specifies how the numbered names of actual tables or data sources are formed: a prefix and
// a number with at least Digits digits.
type Naming struct {
	Prefix string
	Digits int
}

// NamingOf returns the naming of the names of a table. As in ShardingSphere, the prefix comes from
// the first name, and the number of digits from the shortest. logical is the table's logical name,
// which is part of the prefix. It is empty for data sources.
func NamingOf(logical string, names []string) Naming {
	if len(names) == 0 {
		return Naming{}
	}
	first, kept := names[0], 0
	if len(first) >= len(logical) && strings.EqualFold(first[:len(logical)], logical) {
		kept = len(logical)
	}
	n := Naming{Prefix: first[:kept] + strings.TrimRight(first[kept:], "0123456789")}
	shortest := slices.MinFunc(names, func(a, b string) int { return len(a) - len(b) })
	n.Digits = max(0, len(shortest)-len(n.Prefix))
	return n
}

// Strategy is an algorithm and the names that it chooses from. It never changes and may be used by
// multiple goroutines at once.
type Strategy struct {
	*Algorithm
	names  []string
	naming Naming
	class  expr.Class // Java class of the column; Null means the class of the value

	byNumber map[int64]int // indexes of the names, by number
	byName   map[string]int
	byEnd    map[string]int // INTERVAL: indexes of the names, by their ends; or several
}

// several stands for the index if several names have the same end.
const several = -1

// Over returns a strategy that chooses from the names. naming may be the naming of more names than
// these. class is the Java class of the column, and Null means the class of the value.
func (a *Algorithm) Over(names []string, naming Naming, class expr.Class) *Strategy {
	s := &Strategy{Algorithm: a, names: names, naming: naming, class: class}
	switch {
	case a.numbers != nil:
		s.number()
	case a.interval != nil:
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
	return s
}

// number sets byNumber from the names.
func (s *Strategy) number() {
	s.byNumber = make(map[int64]int, len(s.names))
	for i, name := range s.names {
		n, err := strconv.ParseInt(strings.TrimPrefix(name, s.naming.Prefix), 10, 64)
		if err == nil && n >= 0 && n < s.Algorithm.numbers.tables() && s.name(n) == name {
			s.byNumber[n] = i
		}
	}
}

// matchEnds sets byEnd from the names. An end has as many characters as the name of a step.
func (s *Strategy) matchEnds() {
	s.byEnd = make(map[string]int, len(s.names))
	length := len(s.interval.name(0))
	for i, name := range s.names {
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
	return s.naming.Prefix + strings.Repeat("0", max(0, max(s.width, s.naming.Digits)-len(digits))) + digits
}

// Names returns the names that the strategy chooses from.
func (s *Strategy) Names() []string { return s.names }

// Place returns the index of the name that a row belongs to, for a value of the sharding column.
// The error is a [*ValueError] or a [*NoTargetError].
func (s *Strategy) Place(v expr.Value) (int, error) {
	if v.Class() == expr.Null {
		return 0, &NoTargetError{Type: s.typ, Column: s.column, Reason: "the value is NULL"}
	}
	v, err := v.Convert(s.class)
	switch {
	case err != nil:
		return 0, s.valueError(v, err)
	case s.interval != nil:
		return s.placeStep(v)
	case v.Class() == expr.Time:
		return 0, s.valueError(v, errTime)
	case s.template != nil:
		return s.placeName(v)
	}
	n, err := s.Algorithm.numbers.number(v)
	if err != nil {
		return 0, s.valueError(v, err)
	}
	i, ok := s.byNumber[n]
	if !ok {
		return 0, &NoTargetError{Type: s.typ, Name: s.name(n)}
	}
	return i, nil
}

var errTime = &expr.Error{Reason: "the Java class of a time isn't known"}

func (s *Strategy) placeName(v expr.Value) (int, error) {
	var buf [128]byte
	name, err := s.template.Append(buf[:0], v)
	if err != nil {
		return 0, s.valueError(v, err)
	}
	i, ok := s.named(name)
	if !ok {
		return 0, &NoTargetError{Type: s.typ, Name: expr.Clip(string(name))}
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
		return 0, s.valueError(v, err)
	}
	if step < 0 {
		const reason = "the value is not between datetime-lower and datetime-upper"
		return 0, &NoTargetError{Type: s.typ, Column: s.column, Reason: reason}
	}
	end := s.interval.name(step)
	switch i, ok := s.byEnd[end]; {
	case !ok:
		return 0, &NoTargetError{Type: s.typ, Name: "…" + end}
	case i == several:
		return 0, s.valueError(v, fmt.Errorf("several tables end in %q", end))
	default:
		return i, nil
	}
}

func (s *Strategy) valueError(v expr.Value, err error) error {
	return &ValueError{Type: s.typ, Column: s.column, Value: expr.Clip(v.String()), Reason: err.Error()}
}

// NotUnderstoodError is the error for an algorithm that has an unknown type, or properties that are
// wrong or unknown.
type NotUnderstoodError struct {
	Prop   string // the property at fault; empty if it is the type
	Reason string // what is wrong; it continues an error message
	// Wrong reports whether it is a mistake, which ShardingSphere doesn't accept either.
	Wrong bool
	Err   error // the cause, an [*expr.Error], or nil
}

func (e *NotUnderstoodError) Error() string { return e.Reason }

func (e *NotUnderstoodError) Unwrap() error { return e.Err }

// ValueError is the error for a value for which the result of an algorithm isn't known. The row may
// belong to any of the names.
type ValueError struct {
	Type   string // type of the algorithm
	Column string
	Value  string // the value, shortened
	Reason string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("cannot apply %s to the value of %s: %s", e.Type, e.Column, e.Reason)
}

// NoTargetError is the error for values that belong to none of the strategy's names.
type NoTargetError struct {
	Type   string // type of the algorithm
	Column string // the column whose value has no table; empty if Name is set
	Reason string // why the value has no table
	// Name is the computed name that doesn't exist, or its end. It may contain the value, so Error
	// shows it only for algorithms that number the names.
	Name string
}

func (e *NoTargetError) Error() string {
	if e.Column != "" {
		return fmt.Sprintf("%s has no table for the value of %s: %s", e.Type, e.Column, e.Reason)
	}
	if e.Type == "INLINE" || e.Type == "INTERVAL" {
		return e.Type + " selects a name that does not exist"
	}
	return fmt.Sprintf("%s selects %q, which does not exist", e.Type, e.Name)
}
