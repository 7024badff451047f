package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones by name, also where the machine has none
)

// parseZone reads the name of a time zone, or how far it is from UTC.
func parseZone(name string) (*time.Location, error) {
	if t, err := time.Parse("-07:00", name); err == nil {
		_, offset := t.Zone()
		return time.FixedZone(name, offset), nil
	}
	if strings.EqualFold(name, "utc") {
		return time.UTC, nil
	}
	if strings.EqualFold(name, "local") || name == "" {
		return time.Local, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, usagef("-tz %s is not a time zone: write a name, as Asia/Shanghai, or +08:00, UTC, Local", quoted(name))
	}
	return zone, nil
}

// localForms are times without a zone, the second of them to be had in words.
var localForms = []string{
	"2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04",
}

// span is a time as somebody types it: a moment, or where only a day is said,
// that day.
type span struct {
	from, until time.Time // the same for a moment
}

const timeHelp = `A time is a day, which begins at midnight (2026-01-31, today, yesterday), a local
time ("2026-01-31 10:00"), one with its zone (2026-01-31T12:00:00Z), now, or a
duration before now (-24h, -90m, -7d, -2w).`

// parseSpan reads a time in a zone. after is the time that +24h counts from.
func parseSpan(text string, now, after time.Time, zone *time.Location) (span, error) {
	now = now.In(zone)
	switch word := strings.ToLower(text); word {
	case "now":
		return span{now, now}, nil
	case "today":
		return day(now, 0), nil
	case "yesterday":
		return day(now, -1), nil
	case "tomorrow":
		return day(now, 1), nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return day(t, 0), nil
	}
	for _, form := range localForms {
		if t, err := time.ParseInLocation(form, text, zone); err == nil {
			return span{t, t}, nil
		}
	}
	for _, form := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04Z07:00"} {
		if t, err := time.Parse(form, text); err == nil {
			return span{t, t}, nil
		}
	}
	if d, ok := parseDuration(text); ok {
		t := now.Add(d)
		if d >= 0 {
			t = after.Add(d)
		}
		return span{t, t}, nil
	}
	return span{}, fmt.Errorf("%s is not a time: write a day, as 2026-01-31 or yesterday, a time, as \"2026-01-31 10:00\" or 2026-01-31T12:00:00Z, or a duration before now, as -24h or -7d", quoted(text))
}

// day is the day of a time, or one some days later, in the time's zone.
func day(t time.Time, later int) span {
	y, m, d := t.Date()
	return span{time.Date(y, m, d+later, 0, 0, 0, 0, t.Location()), time.Date(y, m, d+later+1, 0, 0, 0, 0, t.Location())}
}

var daysAndWeeks = regexp.MustCompile(`^([0-9]{1,6})([dw])`)

// parseDuration reads a duration with its sign, as Go writes them, with days and
// weeks of 24 hours each day in front.
func parseDuration(text string) (time.Duration, bool) {
	if text == "" || text[0] != '-' && text[0] != '+' {
		return 0, false
	}
	rest, sum := text[1:], 0.0
	for {
		m := daysAndWeeks.FindStringSubmatch(rest)
		if m == nil {
			break
		}
		n, _ := strconv.Atoi(m[1]) // it has digits, and few
		if m[2] == "w" {
			n *= 7
		}
		sum, rest = sum+float64(n)*24*float64(time.Hour), rest[len(m[0]):]
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || rest[0] == '-' || rest[0] == '+' {
			return 0, false
		}
		sum += float64(d)
	}
	if len(text) == 1 || sum > math.MaxInt64/2 {
		return 0, false
	}
	d := time.Duration(sum)
	if text[0] == '-' {
		d = -d
	}
	return d, true
}

// parseEpoch reads the time that keys count from: with its zone, a date, which is
// midnight UTC, or in milliseconds since 1970.
func parseEpoch(text string) (time.Time, error) {
	for _, form := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n < 1<<43 {
		return time.UnixMilli(n).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%s is not an epoch: write it with its zone, as 2026-01-31T12:00:00Z, as a date, as 2026-01-31, which is midnight UTC, or in milliseconds since 1970", quoted(text))
}

// formatTime writes a time in a zone, with its milliseconds, or to the nanosecond
// where it has more.
func formatTime(t time.Time, zone *time.Location) string {
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		return t.In(zone).Format(time.RFC3339Nano)
	}
	return t.In(zone).Format("2006-01-02T15:04:05.000Z07:00")
}
