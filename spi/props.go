package spi

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Props are the properties of one generator or assigner, as its rule gives
// them. Names match without case, and "worker-id" and "worker.id" are the same
// name. The zero Props has no properties.
//
// Each getter takes the default that holds when the property is absent, and
// returns a [*PropError] that names the property, its value and what is right.
// A property that a factory has not asked for by any getter is unknown:
// [NewKeyGenerator] refuses it.
type Props struct {
	values map[string]prop
	asked  map[string]string // normalised name → name as asked
	host   Host
}

type prop struct {
	name  string
	value string   // a list's items joined by commas
	list  []string // nil for a scalar
}

// Host is what surrounds a generator: the connector that it makes keys for.
// Its zero value serves: no connector, the system's clock, the default logger.
type Host struct {
	// DSN is the connector's own data source, in go-sql-driver/mysql's form,
	// without the wrapper's parameters; empty when it is not known.
	DSN string
	// Clock is the time to live by; nil is SystemClock.
	Clock Clock
	// Logger takes the few lines that are logged; nil is slog.Default().
	Logger *slog.Logger
	// WorkerIDAssigner gives the rule's assigner of that name; nil when the
	// rule has none. The assigner belongs to the rule, which closes it.
	WorkerIDAssigner func(name string) (WorkerIDAssigner, error)
}

// NewProps makes Props of names and values. A value is a string, as YAML
// scalars are, or a []string. Two names that are the same but for spelling are
// an error.
func NewProps(values map[string]any, host Host) (Props, error) {
	p := Props{values: map[string]prop{}, asked: map[string]string{}, host: host}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		key := propKey(name)
		if other, dup := p.values[key]; dup {
			return Props{}, &PropError{Name: name, Want: fmt.Sprintf("it once; it is there as %q too", other.name)}
		}
		switch v := values[name].(type) {
		case string:
			p.values[key] = prop{name: name, value: v}
		case []string:
			p.values[key] = prop{name: name, value: strings.Join(v, ","), list: v}
		default:
			return Props{}, &PropError{Name: name, Want: fmt.Sprintf("a text or a list of texts, not a %T", v)}
		}
	}
	return p, nil
}

func propKey(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), ".", "-")
}

// Clock is the host's clock, the system's by default.
func (p Props) Clock() Clock {
	if p.host.Clock == nil {
		return SystemClock
	}
	return p.host.Clock
}

// Logger is the host's logger, slog's default by default.
func (p Props) Logger() *slog.Logger {
	if p.host.Logger == nil {
		return slog.Default()
	}
	return p.host.Logger
}

// HostDSN is the connector's own data source, empty when not known.
func (p Props) HostDSN() string { return p.host.DSN }

// WorkerIDAssigner is the rule's assigner that the property names. It is nil
// without the property.
func (p Props) WorkerIDAssigner(name string) (WorkerIDAssigner, error) {
	v, ok := p.get(name)
	if !ok {
		return nil, nil
	}
	if p.host.WorkerIDAssigner == nil {
		return nil, p.wrong(name, "the name of a worker-id assigner; the rule has no workerIdAssigners")
	}
	return p.host.WorkerIDAssigner(v)
}

// Has tells whether the property is given.
func (p Props) Has(name string) bool {
	_, ok := p.get(name)
	return ok
}

// String returns a text.
func (p Props) String(name, def string) string {
	if v, ok := p.get(name); ok {
		return v
	}
	return def
}

// Secret returns a text that no error, log or description may show.
func (p Props) Secret(name string) string { return p.String(name, "") }

// List returns the items of a list, or of a text with commas between them,
// without the blanks around them. It is nil when the property is absent.
func (p Props) List(name string) []string {
	v, ok := p.get(name)
	if !ok {
		return nil
	}
	list := p.values[propKey(name)].list
	if list == nil {
		list = strings.Split(v, ",")
	}
	items := make([]string, len(list))
	for i, item := range list {
		items[i] = strings.TrimSpace(item)
	}
	return items
}

// Int returns an integer in min..max.
func (p Props) Int(name string, def, min, max int64) (int64, error) {
	v, ok := p.get(name)
	if !ok {
		return def, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	if err != nil || n < min || n > max {
		return 0, p.wrong(name, fmt.Sprintf("an integer in %d..%d", min, max))
	}
	return n, nil
}

// Bool returns true or false.
func (p Props) Bool(name string, def bool) (bool, error) {
	v, ok := p.get(name)
	if !ok {
		return def, nil
	}
	switch strings.ToLower(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, p.wrong(name, "true or false")
}

// Duration returns a time span in min..max, written as Go does ("10s",
// "1h30m"). A bare number is refused: it has no unit.
func (p Props) Duration(name string, def, min, max time.Duration) (time.Duration, error) {
	v, ok := p.get(name)
	if !ok {
		return def, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < min || d > max {
		return 0, p.wrong(name, fmt.Sprintf("a duration in %v..%v, as \"10s\"", min, max))
	}
	return d, nil
}

// Time returns a point in time, written in RFC 3339 ("2016-11-01T00:00:00Z")
// or as a date ("2016-11-01"), which is midnight UTC.
func (p Props) Time(name string, def time.Time) (time.Time, error) {
	v, ok := p.get(name)
	if !ok {
		return def, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, v); err == nil {
			return t, nil
		}
	}
	return time.Time{}, p.wrong(name, "a time with its zone, as 2016-11-01T00:00:00Z")
}

// Enum returns one of the allowed words, which match without case.
func (p Props) Enum(name, def string, allowed ...string) (string, error) {
	v, ok := p.get(name)
	if !ok {
		return def, nil
	}
	for _, a := range allowed {
		if strings.EqualFold(a, v) {
			return a, nil
		}
	}
	return "", p.wrong(name, "one of "+strings.Join(allowed, ", "))
}

// Wrong makes the error for a property whose value a factory refuses. It shows
// the value; for a secret use [PropError] itself.
func (p Props) Wrong(name, want string) error { return p.wrong(name, want) }

func (p Props) wrong(name, want string) error {
	e := &PropError{Name: name, Want: want}
	if given, ok := p.values[propKey(name)]; ok {
		e.Name, e.Value = given.name, given.value
	}
	return e
}

func (p Props) get(name string) (string, bool) {
	key := propKey(name)
	if p.asked != nil {
		p.asked[key] = name
	}
	v, ok := p.values[key]
	return v.value, ok
}

// unknown is the error for the first property that nobody has asked for.
func (p Props) unknown() error {
	for _, key := range slices.Sorted(maps.Keys(p.values)) {
		if _, ok := p.asked[key]; !ok {
			known := slices.Sorted(maps.Values(p.asked))
			return &PropError{Name: p.values[key].name, Unknown: true, Known: known}
		}
	}
	return nil
}
