package place

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// Algorithm is a sharding algorithm over one column, with its properties. It never changes.
type Algorithm struct {
	typ     string
	column  string
	ignored []string
	odd     string

	// One of the three is set.
	numbers  numbering
	template *expr.Template
	interval *interval

	width int // of a number, with zeros in front
}

// algorithmType is a type's properties, and its constructor, which is nil for a type that is not
// understood.
type algorithmType struct {
	props []string
	make  func(*Algorithm, *properties)
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

// Props returns the names of a type's properties; nil for an unknown type, and for one that may
// have any (CLASS_BASED).
func Props(typ string) []string { return types[strings.ToUpper(typ)].props }

// Compile makes an algorithm. The names of properties are in lower case. The error is a
// [*NotUnderstoodError].
func Compile(typ string, props map[string]string, columns []string) (*Algorithm, error) {
	a, p := &Algorithm{typ: strings.ToUpper(typ)}, &properties{values: props}
	known := types[a.typ]
	switch {
	case known.make == nil:
		p.fail("", "the type %s is none of BOUNDARY_RANGE, HASH_MOD, INLINE, INTERVAL, MOD, VOLUME_RANGE", typ)
	case len(columns) == 0:
		p.fail("", "it has no sharding column")
	case len(columns) > 1:
		p.fail("", "%s takes one sharding column, not %d", a.typ, len(columns))
	}
	if p.err != nil {
		return nil, p.err
	}
	a.column = columns[0]
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if !slices.Contains(known.props, name) {
			a.ignored = append(a.ignored, name)
		}
	}
	if known.make(a, p); p.err != nil {
		return nil, p.err
	}
	return a, nil
}

// Tables returns the number of actual tables that ShardingSphere makes of an auto table, also for
// AUTO_INTERVAL; 0 for a type without auto tables. The error is a [*NotUnderstoodError].
func Tables(typ string, props map[string]string) (int64, error) {
	switch typ = strings.ToUpper(typ); typ {
	case "AUTO_INTERVAL":
		return secondsTables(&properties{values: props})
	case "MOD", "HASH_MOD", "VOLUME_RANGE", "BOUNDARY_RANGE":
		a, err := Compile(typ, props, []string{"a column"})
		if err != nil {
			return 0, err
		}
		return a.numbers.tables(), nil
	}
	return 0, nil
}

// secondsTables counts AUTO_INTERVAL's tables: one up to the lower bound, one for each interval
// after it, and one for later times.
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

// time reads the beginning of a property, of so many bytes.
func (p *properties) time(name string, most int, layout string) time.Time {
	text := p.values[name]
	t, err := time.Parse(layout, text[:min(len(text), most)])
	if err != nil {
		p.fail(name, "%s is %q: want a time as %s", name, clip(text), layout)
	}
	return t
}

// Type returns the algorithm's type in upper case.
func (a *Algorithm) Type() string { return a.typ }

// Ignored returns the properties that the algorithm does not have, sorted; ShardingSphere ignores
// them.
func (a *Algorithm) Ignored() []string { return a.ignored }

// Odd returns a warning about a property that is probably a mistake; empty for none.
func (a *Algorithm) Odd() string { return a.odd }

// properties are an algorithm's.
type properties struct {
	values map[string]string
	err    error // the first one
}

// fail notes what is wrong with a property, or with the type.
func (p *properties) fail(prop, format string, args ...any) {
	if p.err == nil {
		p.err = &NotUnderstoodError{Prop: prop, Reason: fmt.Sprintf(format, args...)}
	}
}

// most bounds the numbers of properties, so that sums of two do not overflow.
const most = 1 << 61

func (p *properties) text(name string) string {
	text := p.values[name]
	if text == "" {
		p.fail(name, "it has no %s", name)
	}
	return text
}

func (p *properties) integer(name string, least, most int64) int64 {
	text, ok := p.values[name]
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	switch {
	case !ok:
		p.fail(name, "it has no %s", name)
	case err != nil || n < least || n > 1<<61:
		p.fail(name, "%s is %q: want an integer", name, clip(text))
	case n > most:
		p.fail(name, "%s is %d: want at most %d", name, n, most)
	}
	return n
}

// count is an integer that Java holds in an int, with a default unless that is negative.
func (p *properties) count(name string, least, def int64) int64 {
	if _, ok := p.values[name]; !ok && def >= 0 {
		return def
	}
	return p.integer(name, least, 1<<31-1)
}

// isTrue reads a property as Boolean.parseBoolean does.
func (p *properties) isTrue(name string) bool { return strings.EqualFold(p.values[name], "true") }

// clip shortens a text for an error.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
