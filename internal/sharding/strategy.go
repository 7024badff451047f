package sharding

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/internal/groovy"
)

// Naming is how the numbered names of a table's actual tables, or of data sources,
// are made: a prefix, and a number of at least so many digits.
type Naming struct {
	Prefix string
	Digits int
}

// NamingOf returns the naming of all names of a table. ShardingSphere takes it from
// the first of them, and the number of digits from the shortest. logical is the
// table's logical name, which is part of the prefix; empty for data sources.
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

// Strategy is an algorithm with the names that it chooses from. It never changes
// and may be used by many goroutines at once.
type Strategy struct {
	*Algorithm
	names  []string
	naming Naming

	byName   map[string]int32
	byNumber []int32         // indexes of names by their numbers; none for a number without
	far      map[int64]int32 // those of numbers beyond byNumber
	byStep   []int32         // INTERVAL: by step; also several
	classes  []groovy.Class
}

const (
	none    int32 = -1
	several int32 = -2
)

// Over returns the algorithm with the names that it chooses from, whose naming may
// be that of more names. classes are those of the columns in Java; nil for those
// of the values.
func (a *Algorithm) Over(names []string, naming Naming, classes []groovy.Class) *Strategy {
	s := &Strategy{Algorithm: a, names: names, naming: naming, classes: classes}
	if a.isPrefix {
		s.naming = Naming{Prefix: a.prefix, Digits: 1}
	}
	switch {
	case a.numbers != nil:
		s.number()
	case a.interval != nil:
		s.matchSteps()
	default:
		s.byName = make(map[string]int32, len(names))
		for i, name := range slices.Backward(names) {
			s.byName[strings.ToLower(name)] = int32(i)
		}
		for i, name := range slices.Backward(names) {
			s.byName[name] = int32(i)
		}
		s.numberInline()
	}
	return s
}

// numberInline finds the names that an expression makes of one small integer, so
// that they are found without being written.
func (s *Strategy) numberInline() {
	before, after, ok := s.template.Around()
	if !ok {
		return
	}
	for n := range int64(min(len(s.names)+8, 1<<16)) {
		i, ok := s.byName[before+strconv.FormatInt(n, 10)+after]
		if !ok {
			i = none
		}
		s.byNumber = append(s.byNumber, i)
	}
}

// number finds the number of each name.
func (s *Strategy) number() {
	for i, name := range s.names {
		digits, ok := strings.CutPrefix(name, s.naming.Prefix)
		if !ok || digits == "" {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		switch {
		case err != nil || n < 0 || n >= s.Algorithm.numbers.tables() || s.name(n) != name:
		case n >= int64(4*len(s.names)+64):
			if s.far == nil {
				s.far = map[int64]int32{}
			}
			s.far[n] = int32(i)
		default:
			for int64(len(s.byNumber)) <= n {
				s.byNumber = append(s.byNumber, none)
			}
			s.byNumber[n] = int32(i)
		}
	}
}

// numbered returns the index of the name that has a number; none for none.
func (s *Strategy) numbered(n int64) int32 {
	if n < int64(len(s.byNumber)) {
		return s.byNumber[n]
	}
	if i, ok := s.far[n]; ok {
		return i
	}
	return none
}

// name is the name of a number.
func (s *Strategy) name(n int64) string {
	digits := strconv.FormatInt(n, 10)
	return s.naming.Prefix + strings.Repeat("0", max(0, max(s.width, s.naming.Digits)-len(digits))) + digits
}

func (s *Strategy) matchSteps() {
	s.byStep = make([]int32, max(0, len(s.interval.steps)-1))
	// Names by their last characters, as many as a suffix has.
	ends := map[string]int32{}
	lengths := map[int]bool{}
	for step := range s.byStep {
		suffix := s.interval.name(step)
		if !lengths[len(suffix)] {
			lengths[len(suffix)] = true
			for i, name := range s.names {
				if len(name) < len(suffix) {
					continue
				}
				end := name[len(name)-len(suffix):]
				if _, taken := ends[end]; taken {
					ends[end] = several
				} else {
					ends[end] = int32(i)
				}
			}
		}
		i, ok := ends[suffix]
		if !ok {
			i = none
		}
		s.byStep[step] = i
	}
}

// Names returns the names that the strategy chooses from.
func (s *Strategy) Names() []string { return s.names }

// Place returns the index of the name to which a row belongs that has these values
// in the sharding columns. The error is a [*ValueError] or a [*NoTargetError].
func (s *Strategy) Place(values []groovy.Value) (int, error) {
	for i, v := range values {
		if v.Class() == groovy.Null {
			return 0, &NoTargetError{Type: s.typ, Column: s.columns[i], Reason: "it is NULL"}
		}
		if _, isTime := v.Time(); isTime && !s.takesTimes() {
			return 0, s.valueError(i, v, errors.New("which of Java's classes of times it has is not known"))
		}
	}
	if s.classes != nil {
		return s.converted(values)
	}
	return s.place(values)
}

// converted takes the values for ones of the columns' classes.
func (s *Strategy) converted(values []groovy.Value) (int, error) {
	var buf [4]groovy.Value
	classed := append(buf[:0], values...)
	for i, class := range s.classes {
		if class == groovy.Null {
			continue
		}
		var err error
		if classed[i], err = values[i].Convert(class); err != nil {
			return 0, s.valueError(i, values[i], err)
		}
	}
	return s.place(classed)
}

func (s *Strategy) place(values []groovy.Value) (int, error) {
	switch {
	case s.Algorithm.numbers != nil:
		n, err := s.Algorithm.numbers.number(values[0])
		switch {
		case err != nil:
			return 0, s.valueError(0, values[0], err)
		case s.numbered(n) == none:
			return 0, &NoTargetError{Type: s.typ, Name: s.name(n)}
		}
		return int(s.numbered(n)), nil
	case s.interval != nil:
		return s.placeStep(values[0])
	}
	if n, ok := s.template.Integer(values); ok && n >= 0 && n < int64(len(s.byNumber)) && s.byNumber[n] != none {
		return int(s.byNumber[n]), nil
	}
	var buf [128]byte
	name, err := s.template.Append(buf[:0], values)
	if err != nil {
		return 0, s.valueError(0, values[0], err)
	}
	i, ok := s.byName[string(name)]
	if !ok {
		if i, ok = s.byName[strings.ToLower(string(name))]; !ok {
			return 0, &NoTargetError{Type: s.typ, Name: clip(string(name))}
		}
	}
	return int(i), nil
}

func (s *Strategy) placeStep(v groovy.Value) (int, error) {
	step, err := s.interval.step(v)
	switch {
	case err != nil:
		return 0, s.valueError(0, v, err)
	case step < 0:
		const reason = "it is outside of datetime-lower and datetime-upper"
		return 0, &NoTargetError{Type: s.typ, Column: s.columns[0], Reason: reason}
	case s.byStep[step] == none:
		return 0, &NoTargetError{Type: s.typ, Name: "…" + s.interval.name(step)}
	case s.byStep[step] == several:
		return 0, s.valueError(0, v, fmt.Errorf("several tables end in %q", s.interval.name(step)))
	}
	return int(s.byStep[step]), nil
}

// takesTimes reports whether the algorithm reads the clock of a time, which all of Java's
// classes of times share.
func (s *Strategy) takesTimes() bool {
	_, isSeconds := s.numbers.(*seconds)
	return isSeconds || s.interval != nil
}

func (s *Strategy) valueError(i int, v groovy.Value, err error) error {
	return &ValueError{Type: s.typ, Column: s.columns[i], Value: clip(v.String()), Reason: err.Error()}
}
