package sharding

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/internal/groovy"
)

// Algorithm is a sharding algorithm with its properties. It never changes.
type Algorithm struct {
	typ     string
	columns []string
	ignored []string
	odd     string

	// One of the three is set.
	numbers  numbering
	template *groovy.Template
	interval *interval

	width    int    // of a number, with zeros in front
	prefix   string // COSID_MOD's own, in place of that of the names
	isPrefix bool
}

// numbering gives each value the number of its table.
type numbering interface {
	// number returns the table's number, in 0..tables()-1.
	number(v groovy.Value) (int64, error)
	// tables returns how many tables there are.
	tables() int64
}

// algorithmType is what is known of a type: its properties, and how it is made.
type algorithmType struct {
	isAuto bool // for auto tables
	props  []string
	make   func(*Algorithm, properties) error
}

var types = map[string]algorithmType{
	"MOD":            {true, []string{"sharding-count", "start-offset", "stop-offset", "zero-padding"}, newMod},
	"HASH_MOD":       {true, []string{"sharding-count", "normalize-numeric-int-range"}, newHashMod},
	"VOLUME_RANGE":   {true, []string{"range-lower", "range-upper", "sharding-volume"}, newVolumes},
	"BOUNDARY_RANGE": {true, []string{"sharding-ranges"}, newBoundaries},
	"AUTO_INTERVAL":  {true, []string{"datetime-lower", "datetime-upper", "sharding-seconds"}, newSeconds},
	"INTERVAL": {false, []string{"datetime-pattern", "datetime-lower", "datetime-upper", "sharding-suffix-pattern",
		"datetime-interval-amount", "datetime-interval-unit"}, newInterval},
	"INLINE":         {false, []string{"algorithm-expression", "allow-range-query-with-inline-sharding"}, newInline},
	"COMPLEX_INLINE": {false, []string{"algorithm-expression", "sharding-columns", "allow-range-query-with-inline-sharding"}, newInline},
	"COSID_MOD":      {false, []string{"mod", "logic-name-prefix"}, newCosIDMod},
}

// others are the properties of the types that are not computed.
var others = map[string][]string{
	"HINT_INLINE": {"algorithm-expression"},
	"COSID_INTERVAL": {"logic-name-prefix", "datetime-pattern", "datetime-lower", "datetime-upper", "sharding-suffix-pattern",
		"datetime-interval-unit", "datetime-interval-amount", "ts-unit", "zone-id"},
	"COSID_INTERVAL_SNOWFLAKE": {"logic-name-prefix", "datetime-pattern", "datetime-lower", "datetime-upper", "sharding-suffix-pattern",
		"datetime-interval-unit", "datetime-interval-amount", "ts-unit", "zone-id", "epoch"},
}

// Props returns the names of a type's properties; nil for a type that is not known,
// or may have any (CLASS_BASED).
func Props(typ string) []string {
	typ = strings.ToUpper(typ)
	if known, ok := types[typ]; ok {
		return known.props
	}
	return others[typ]
}

// Compile makes an algorithm. The names of properties are in lower case; columns
// are the sharding columns. The error is a [*NotUnderstoodError].
func Compile(typ string, props map[string]string, columns []string) (*Algorithm, error) {
	a := &Algorithm{typ: strings.ToUpper(typ), columns: columns}
	known, ok := types[a.typ]
	switch {
	case !ok:
		return nil, a.fail("", "the type %s is none of %s", typ, strings.Join(slices.Sorted(maps.Keys(types)), ", "))
	case len(columns) == 0:
		return nil, a.fail("", "it has no sharding column")
	case len(columns) > 1 && a.typ != "COMPLEX_INLINE":
		return nil, a.fail("", "%s takes one sharding column, not %d", a.typ, len(columns))
	}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if !slices.Contains(known.props, name) {
			a.ignored = append(a.ignored, name)
		}
	}
	if err := known.make(a, properties{a, props}); err != nil {
		return nil, err
	}
	return a, nil
}

// Type returns the algorithm's type in upper case.
func (a *Algorithm) Type() string { return a.typ }

// Columns returns the sharding columns.
func (a *Algorithm) Columns() []string { return a.columns }

// IsAuto reports whether the algorithm is one for auto tables.
func (a *Algorithm) IsAuto() bool { return types[a.typ].isAuto }

// Tables returns how many tables the algorithm makes of an auto table; 0 when it
// is not one for auto tables.
func (a *Algorithm) Tables() int64 {
	if !a.IsAuto() {
		return 0
	}
	return a.numbers.tables()
}

// Ignored returns the properties that the algorithm does not have, sorted;
// ShardingSphere ignores them.
func (a *Algorithm) Ignored() []string { return a.ignored }

// Odd returns what is understood but likely not what was meant; empty for nothing.
func (a *Algorithm) Odd() string { return a.odd }

func (a *Algorithm) fail(prop, format string, args ...any) error {
	return &NotUnderstoodError{Type: a.typ, Prop: prop, Reason: fmt.Sprintf(format, args...)}
}

// properties are an algorithm's.
type properties struct {
	of     *Algorithm
	values map[string]string
}

// most bounds the numbers of properties, so that sums of two do not overflow.
const most = 1 << 61

func (p properties) text(name string) (string, error) {
	text, ok := p.values[name]
	if !ok || text == "" {
		return "", p.of.fail(name, "it has no %s", name)
	}
	return text, nil
}

func (p properties) integer(name string, least int64) (int64, error) {
	text, ok := p.values[name]
	if !ok {
		return 0, p.of.fail(name, "it has no %s", name)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < least || n > most {
		return 0, p.of.fail(name, "%s is %q: want an integer", name, clip(text))
	}
	return n, nil
}

// count is an integer that Java holds in an int, with a default.
func (p properties) count(name string, least, def int64) (int64, error) {
	if _, ok := p.values[name]; !ok && def >= 0 {
		return def, nil
	}
	n, err := p.integer(name, least)
	if err == nil && n > 1<<31-1 {
		err = p.of.fail(name, "%s is %d: want at most 2147483647", name, n)
	}
	return n, err
}

// isTrue reads a property as Boolean.parseBoolean does.
func (p properties) isTrue(name string) bool { return strings.EqualFold(p.values[name], "true") }

// clip shortens a text for an error.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
