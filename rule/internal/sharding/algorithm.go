package sharding

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/shardkey/shardkey/rule/internal/expr"
)

// algorithmType has the properties and the constructor of a type. The constructor is nil for a type
// that shardkey doesn't understand.
type algorithmType struct {
	props []string
	make  func(*Strategy, *properties)
}

var types = map[string]algorithmType{
	"MOD":            {[]string{"sharding-count", "start-offset", "stop-offset", "zero-padding"}, newMod},
	"HASH_MOD":       {[]string{"sharding-count", "normalize-numeric-int-range"}, newHashMod},
	"VOLUME_RANGE":   {[]string{"range-lower", "range-upper", "sharding-volume"}, newVolumes},
	"BOUNDARY_RANGE": {[]string{"sharding-ranges"}, newBoundaries},
	"INTERVAL": {[]string{"datetime-pattern", "datetime-lower", "datetime-upper", "sharding-suffix-pattern",
		"datetime-interval-amount", "datetime-interval-unit"}, newInterval},
	"INLINE":        {[]string{"algorithm-expression", "allow-range-query-with-inline-sharding"}, newInline},
	"AUTO_INTERVAL": {[]string{"datetime-lower", "datetime-upper", "sharding-seconds"}, nil},
	"COMPLEX_INLINE": {[]string{"algorithm-expression", "sharding-columns",
		"allow-range-query-with-inline-sharding"}, nil},
	"HINT_INLINE": {[]string{"algorithm-expression"}, nil},
	"COSID_MOD":   {[]string{"mod", "logic-name-prefix"}, nil},
	"COSID_INTERVAL": {[]string{"logic-name-prefix", "datetime-pattern", "datetime-lower", "datetime-upper",
		"sharding-suffix-pattern", "datetime-interval-unit", "datetime-interval-amount", "ts-unit", "zone-id"}, nil},
	"COSID_INTERVAL_SNOWFLAKE": {[]string{"logic-name-prefix", "datetime-pattern", "datetime-lower", "datetime-upper",
		"sharding-suffix-pattern", "datetime-interval-unit", "datetime-interval-amount", "ts-unit", "zone-id", "epoch"}, nil},
}

// Props returns the names of a type's properties. It returns nil for an unknown type, and for
// CLASS_BASED, which may have any property.
func Props(typ string) []string { return types[strings.ToUpper(typ)].props }

// Compile returns the strategy with the algorithm of a type, which has no names yet. The names of the
// properties are in lower case. columns are the sharding columns, of which there must be one, and
// class is its Java class. Null means the class of the value. The error is a [*NotUnderstoodError].
func Compile(typ string, props map[string]string, columns []string, class expr.Class) (*Strategy, error) {
	s, p := &Strategy{Type: strings.ToUpper(typ), class: class}, &properties{values: props}
	known := types[s.Type]
	const supported = "BOUNDARY_RANGE, HASH_MOD, INLINE, INTERVAL, MOD or VOLUME_RANGE"
	right := nearest.Word(s.Type, slices.Sorted(maps.Keys(types)))
	switch {
	case known.props == nil && right != "" && nearest.Distance(s.Type, right) <= 1+len(right)/8:
		p.fail("", "expected the type %s, found %s; did you mean %q?", supported, typ, right)
	case known.make == nil: // also a type of the user's own
		p.unsupported("", "expected the type %s, found %s", supported, typ)
	case len(columns) == 0:
		p.fail("", "shardingColumn is missing")
	case len(columns) > 1:
		p.fail("", "expected one sharding column for %s, found %d", s.Type, len(columns))
	}
	if p.err != nil {
		return nil, p.err
	}
	s.column = columns[0]
	if known.make(s, p); p.err != nil {
		return nil, p.err
	}
	return s, nil
}

// Tables returns the number of actual tables that ShardingSphere creates for an auto table,
// including AUTO_INTERVAL. It returns 0 for a type that has no auto tables. The error is a
// [*NotUnderstoodError].
func Tables(typ string, props map[string]string) (int64, error) {
	switch typ = strings.ToUpper(typ); typ {
	case "AUTO_INTERVAL":
		return secondsTables(&properties{values: props})
	case "MOD", "HASH_MOD", "VOLUME_RANGE", "BOUNDARY_RANGE":
		s, err := Compile(typ, props, []string{"a column"}, expr.Null)
		if err != nil {
			return 0, err
		}
		return s.numbers.tables(), nil
	}
	return 0, nil
}

// secondsTables returns the number of AUTO_INTERVAL's tables: one up to the lower bound, one for
// each interval after it, and one for later times.
func secondsTables(p *properties) (int64, error) {
	seconds := p.integer("sharding-seconds", 1, most)
	lower, upper := p.time("datetime-lower", len(time.DateTime), time.DateTime), p.time("datetime-upper",
		len(time.DateTime), time.DateTime)
	between := upper.Unix() - lower.Unix()
	if between < 0 {
		p.fail("datetime-upper", "datetime-upper is before datetime-lower")
	}
	if p.err != nil {
		return 0, p.err
	}
	return between/seconds + 2, nil
}

func (p *properties) time(name string, most int, layout string) time.Time {
	text := p.values[name]
	t, err := time.Parse(layout, text[:min(len(text), most)])
	if err != nil {
		p.fail(name, "%s: expected a time in the format %s, found %q", name, layout, expr.Clip(text))
	}
	return t
}

// properties are the properties of an algorithm, with methods to parse them.
type properties struct {
	values map[string]string
	err    error // the first error
}

// fail records a mistake in the property prop, or in the type if prop is empty.
func (p *properties) fail(prop, format string, args ...any) {
	if p.err == nil {
		p.err = &NotUnderstoodError{Prop: prop, Reason: fmt.Sprintf(format, args...), Wrong: true}
	}
}

// unsupported is like fail, for what ShardingSphere accepts.
func (p *properties) unsupported(prop, format string, args ...any) {
	if p.err == nil {
		p.err = &NotUnderstoodError{Prop: prop, Reason: fmt.Sprintf(format, args...)}
	}
}

// most bounds the integers in properties, so that the sum of two doesn't overflow.
const most = 1 << 61

func (p *properties) text(name string) string {
	text := p.values[name]
	if text == "" {
		p.fail(name, "%s is missing", name)
	}
	return text
}

func (p *properties) integer(name string, least, most int64) int64 {
	text, ok := p.values[name]
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	switch {
	case !ok:
		p.fail(name, "%s is missing", name)
	case err != nil || n < least || n > 1<<61:
		p.fail(name, "%s: expected an integer of at least %d, found %q", name, least, expr.Clip(text))
	case n > most:
		p.fail(name, "%s: expected at most %d, found %d", name, most, n)
	}
	return n
}

// count parses a property that is an int in Java. If the property is missing, count returns def,
// unless def is negative.
func (p *properties) count(name string, least, def int64) int64 {
	if _, ok := p.values[name]; !ok && def >= 0 {
		return def
	}
	return p.integer(name, least, 1<<31-1)
}

// isTrue parses a property as Java's Boolean.parseBoolean does.
func (p *properties) isTrue(name string) bool { return strings.EqualFold(p.values[name], "true") }

func newInline(s *Strategy, p *properties) {
	const name = "algorithm-expression"
	text := strings.TrimSpace(p.text(name))
	if kind, rest, ok := strings.Cut(strings.TrimPrefix(text, "<"), ">"); ok && text[0] == '<' {
		text, kind = rest, strings.ToUpper(kind)
		switch {
		case kind != "GROOVY" && kind != "LITERAL":
			p.unsupported(name, "the expression <%s> is not supported", expr.Clip(kind))
		case kind == "LITERAL" && strings.ContainsAny(text, "{$\\\"\n"):
			p.unsupported(name, "<LITERAL> with special characters is not supported")
		}
	}
	if p.err != nil {
		return
	}
	var err error
	if s.template, err = expr.Compile(text, s.column); err == nil {
		err = tried(s.template)
	}
	var e *expr.Error
	switch wrong := errors.As(err, &e) && e.Wrong; {
	case wrong:
		p.err = &NotUnderstoodError{Prop: name, Wrong: true,
			Reason: fmt.Sprintf("%s: %v; the sharding column is %s", name, err, s.column)}
	case err != nil:
		p.err = &NotUnderstoodError{Prop: name, Reason: name + ": " + err.Error()}
	case s.template.IsConstant():
		p.fail(name, "%s doesn't use the sharding column %s", name, s.column)
	}
}

// tried evaluates an expression for several values. If there is no result for any of them, it returns
// the first error, or the first mistake.
func tried(t *expr.Template) (first error) {
	for _, v := range []expr.Value{expr.OfLong(20240131000001), expr.OfInt(1), expr.OfString("20240131000001"),
		expr.OfString("1"), expr.OfString("2024-01-31 00:00:01")} {
		_, err := t.Append(nil, v)
		if err == nil {
			return nil
		}
		if e := (*expr.Error)(nil); first == nil || errors.As(err, &e) && e.Wrong {
			first = err
		}
	}
	return first
}
