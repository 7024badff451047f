package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones for machines without a time zone database
)

// parseZone parses a time zone: a name, or an offset such as +08:00.
func parseZone(name string) (*time.Location, error) {
	if t, err := time.Parse("-07:00", name); err == nil {
		_, offset := t.Zone()
		return time.FixedZone(name, offset), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return nil, errors.New("expected a time zone: a name such as Asia/Shanghai, +08:00, UTC or Local")
	}
	return zone, nil
}

const timeHelp = `A time is a day (2026-01-31, today, yesterday), a local time ('2026-01-31 10:00'), a time
with its zone (2026-01-31T12:00:00Z), now, or a duration before now (24h, 90m, 7d). UNTIL
may also be a duration after FROM (+24h). Days and local times are in the zone of --tz, by
default this machine's.`

// timeForms are the accepted layouts of times with and without a zone.
var timeForms = []string{
	time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04Z07:00",
	"2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04",
}

// parseTime parses a time, by default in the zone of now. A duration such as +24h counts
// from start. isDay reports whether text is a day without a time.
func parseTime(text string, now, start time.Time) (t time.Time, isDay bool, err error) {
	switch text {
	case "now":
		return now, false, nil
	case "today", "yesterday":
		y, m, d := now.Date()
		if text == "yesterday" {
			d--
		}
		return time.Date(y, m, d, 0, 0, 0, 0, now.Location()), true, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return t, true, nil
	}
	for _, form := range timeForms {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, false, nil
		}
	}
	length, after := strings.CutPrefix(text, "+")
	d, ok := parseLength(length)
	switch {
	case !ok:
		return t, false, fmt.Errorf("expected a time such as 2026-01-31, yesterday, '2026-01-31 10:00', "+
			"2026-01-31T12:00:00Z or 24h, found %s", quoted(text))
	case after:
		return start.Add(d), false, nil
	}
	return now.Add(-d), false, nil
}

// parseLength parses a duration without a sign. It also accepts days of 24 hours, such as 7d.
func parseLength(text string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err == nil
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && !strings.ContainsAny(text[:1], "+-")
}

// parseEpoch parses an epoch: a time with its zone, a date, which means midnight UTC, or
// milliseconds since 1970.
func parseEpoch(text string) (time.Time, error) {
	for _, form := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n < 1<<43 {
		return time.UnixMilli(n).UTC(), nil
	}
	return time.Time{}, errors.New("expected a time such as 2026-01-31T12:00:00Z, a date, or milliseconds since 1970")
}

// formatTime formats t in RFC 3339 with milliseconds, or with more digits if t is not a
// whole number of milliseconds.
func formatTime(t time.Time, zone *time.Location) string {
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		return t.In(zone).Format(time.RFC3339Nano)
	}
	return t.In(zone).Format("2006-01-02T15:04:05.000Z07:00")
}
