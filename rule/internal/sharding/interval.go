package sharding

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// interval is INTERVAL: one step for each period from lower on. The table of a step is a table
// whose name ends with the formatted beginning of the step.
type interval struct {
	layout string
	steps  []time.Time // the beginnings of the steps, and the end of the last one
	suffix string      // the layout of the ends of table names
}

// maxSteps bounds the steps of an interval.
const maxSteps = 1 << 16

// stepUnits are functions that add a number of Java's ChronoUnits to a time, by the unit's name in
// upper case.
var stepUnits = map[string]func(t time.Time, n int) time.Time{
	"YEARS":   func(t time.Time, n int) time.Time { return plusMonths(t, 12*n) },
	"MONTHS":  plusMonths,
	"WEEKS":   func(t time.Time, n int) time.Time { return t.AddDate(0, 0, 7*n) },
	"DAYS":    func(t time.Time, n int) time.Time { return t.AddDate(0, 0, n) },
	"HOURS":   func(t time.Time, n int) time.Time { return t.Add(time.Duration(n) * time.Hour) },
	"MINUTES": func(t time.Time, n int) time.Time { return t.Add(time.Duration(n) * time.Minute) },
	"SECONDS": func(t time.Time, n int) time.Time { return t.Add(time.Duration(n) * time.Second) },
}

// otherUnits are the ChronoUnits that aren't in stepUnits.
var otherUnits = strings.Fields("NANOS MICROS MILLIS HALF_DAYS DECADES CENTURIES MILLENNIA ERAS FOREVER")

// Step returns the function that adds n units to a time, or nil for an unknown unit.
func Step(unit string) func(t time.Time, n int) time.Time { return stepUnits[strings.ToUpper(unit)] }

// plusMonths adds months as Java does: if the resulting month is too short, the result is its last
// day.
func plusMonths(t time.Time, n int) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	h, m, s := t.Clock()
	return time.Date(first.Year(), first.Month(), min(t.Day(), last), h, m, s, t.Nanosecond(), time.UTC)
}

func newInterval(s *Strategy, p *properties) {
	iv := &interval{}
	s.interval = iv
	pattern := p.text("datetime-pattern")
	var ok bool
	iv.layout, ok = DateLayout(pattern)
	if !ok || len(iv.layout) != len(pattern) || !strings.HasPrefix(iv.layout, "2006") {
		p.unsupported("datetime-pattern", "datetime-pattern: expected yyyy, MM, dd, HH, mm, ss and SSS, beginning with the year, "+
			"found %q", expr.Clip(pattern))
	}
	lower := p.time("datetime-lower", math.MaxInt, iv.layout)
	if p.values["datetime-upper"] == "" {
		p.unsupported("datetime-upper", "datetime-upper is missing; ShardingSphere uses the time of its start")
	}
	upper := p.time("datetime-upper", math.MaxInt, iv.layout)
	suffix := p.text("sharding-suffix-pattern")
	if iv.suffix, ok = DateLayout(suffix); !ok {
		p.unsupported("sharding-suffix-pattern", "sharding-suffix-pattern %q is not supported", expr.Clip(suffix))
	}
	amount := p.count("datetime-interval-amount", 1, 1)
	unit := strings.ToUpper(cmp.Or(p.values["datetime-interval-unit"], "DAYS"))
	next := Step(unit)
	switch {
	case next == nil && !slices.Contains(otherUnits, unit):
		p.fail("datetime-interval-unit", "expected a unit such as DAYS or MONTHS, found %q", expr.Clip(unit))
	case next == nil || amount > 1_000_000:
		p.unsupported("datetime-interval-unit", "a step of %d %s is not supported", amount, expr.Clip(unit))
	}
	if !strings.Contains(iv.layout, "15") && !strings.Contains("YEARS MONTHS WEEKS DAYS", unit) ||
		!strings.Contains(iv.layout, "02") && !strings.Contains("YEARS MONTHS", unit) ||
		!strings.Contains(iv.layout, "01") && unit != "YEARS" {
		p.unsupported("datetime-interval-unit", "a step of %s is shorter than the precision of datetime-pattern", unit)
	}
	for at := lower; p.err == nil; at = next(at, int(amount)) {
		if iv.steps = append(iv.steps, at); at.After(upper) {
			return
		}
		if len(iv.steps) > maxSteps {
			p.unsupported("datetime-upper", "there are more than %d steps from datetime-lower to datetime-upper", maxSteps)
		}
	}
}

// step returns the index of the step that contains the value, or -1 if none does. The error is an
// [*expr.Error].
func (iv *interval) step(v expr.Value) (int, error) {
	at, err := iv.parse(v)
	if err != nil {
		return 0, err
	}
	if len(iv.layout) < len(time.DateTime) {
		at, _ = time.Parse(iv.layout, at.Format(iv.layout)) // drop the parts of the time that the pattern doesn't have
	}
	i := sort.Search(len(iv.steps), func(i int) bool { return iv.steps[i].After(at) })
	if i == len(iv.steps) {
		return -1, nil
	}
	return i - 1, nil
}

// parse returns the time of a value. It parses the beginning of a string, as long as the pattern.
// Minutes and seconds may be missing.
func (iv *interval) parse(v expr.Value) (time.Time, error) {
	if v.Class() == expr.Time {
		return v.Clock(), nil
	}
	layout, text := iv.layout, v.String()
	if short := layout[:min(len(text), len(layout))]; strings.Contains(short, "15") {
		layout = short
	}
	t, err := time.Parse(layout, text[:min(len(text), len(layout))])
	if err != nil {
		return t, &expr.Error{Reason: "expected a time in the format " + layout}
	}
	return t, nil
}

// name returns the end of the names of a step's tables.
func (iv *interval) name(step int) string { return iv.steps[step].Format(iv.suffix) }

var (
	datePattern = regexp.MustCompile(`^(?:yyyy|yy|MM|dd|HH|mm|ss|[.,]SSS|[-_ /.:,])*$`)
	// otherForm matches letters that have another meaning in Java if they are repeated, such as MMM for
	// the name of a month.
	otherForm = regexp.MustCompile(`y{5}|M{3}|d{3}|H{3}|m{3}|s{3}`)
	layoutOf  = strings.NewReplacer("yyyy", "2006", "yy", "06", "MM", "01", "dd", "02", "HH", "15", "mm", "04", "ss", "05", "SSS", "000")
)

// DateLayout returns the layout of package time for a date pattern of Java. ok is false if the
// pattern isn't understood.
func DateLayout(pattern string) (layout string, ok bool) {
	return layoutOf.Replace(pattern), datePattern.MatchString(pattern) && !otherForm.MatchString(pattern)
}
