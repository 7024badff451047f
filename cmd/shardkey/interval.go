package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// interval is the output of decode --range: the keys of a time interval.
type interval struct {
	First string `json:"first"`
	Last  string `json:"last"`
	From  string `json:"from"`  // RFC 3339
	Until string `json:"until"` // RFC 3339, exclusive
	SQL   string `json:"sql"`
}

func keyRange(p *program, layout *keyLayout, f *decodeFlags) error {
	zone := f.zone
	from, until, err := parseInterval(f.interval, p.clock.Now().In(zone))
	if err != nil {
		return usagef("--range: %v", err)
	}
	if !from.Before(until) {
		return usagef("--range: expected an end after the start %s, found %s", formatTime(from, zone), formatTime(until, zone))
	}
	if layout.untimed != nil {
		return layout.untimed
	}
	first, last, err := layout.KeyRange(from, until)
	if err != nil {
		return err
	}
	v := interval{
		First: strconv.FormatInt(first, 10), Last: strconv.FormatInt(last, 10),
		From: formatTime(from, zone), Until: formatTime(until, zone),
		SQL: fmt.Sprintf("BETWEEN %d AND %d", first, last),
	}
	return p.answer(v, func(w io.Writer) {
		fmt.Fprintf(w, "first  %s\nlast   %s\nfrom   %s\nuntil  %s\nsql    %s\n", v.First, v.Last, v.From, v.Until, v.SQL)
	}, false)
}

func parseInterval(text string, now time.Time) (from, until time.Time, err error) {
	start, end, hasEnd := strings.Cut(text, "..")
	from, isDay, err := parseTime(start, now, now)
	switch {
	case err != nil:
		return from, until, err
	case hasEnd:
		until, _, err = parseTime(end, now, from)
		return from, until, err
	case isDay:
		return from, from.AddDate(0, 0, 1), nil
	}
	return from, now, nil
}
