package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

func rangeCommand(p *program) *cobra.Command {
	f := new(layoutFlags)
	in := zone{p.zone}
	c := &cobra.Command{
		Use:   "range FROM [UNTIL]",
		Short: "show the smallest and largest key of a time interval",
		Long: `Use range to find rows by the time of their keys. It prints the smallest and largest key
of an interval, over all worker IDs, and a BETWEEN condition. The interval begins with
FROM and doesn't include UNTIL. Without UNTIL it is the whole day if FROM is a day, and
otherwise ends now.

` + timeHelp + `

` + layoutHelp + `

The exit status is 1 if the layout has no keys in the interval, or the rule can't be read.`,
		Example: `  shardkey range yesterday
  shardkey range 24h
  shardkey range '2026-02-01 10:00' +30m --tz Asia/Shanghai
  shardkey range 2026-01-01 2026-02-01 --rule rule.yaml`,
		Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: cobra.FixedCompletions(
			[]string{"today", "yesterday", "24h", "7d"}, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(c *cobra.Command, args []string) error { return keyRange(p, c, f, in.Location, args) },
	}
	f.declare(c)
	zoneFlag(c.Flags(), &in, "of the arguments and the output")
	p.outputFlag(c.Flags())
	return c
}

// interval is the output of range.
type interval struct {
	First string `json:"first"`
	Last  string `json:"last"`
	From  string `json:"from"`  // RFC 3339
	Until string `json:"until"` // RFC 3339, exclusive
	SQL   string `json:"sql"`
}

func (v interval) print(w io.Writer) {
	fmt.Fprintf(w, "first  %s\nlast   %s\nfrom   %s\nuntil  %s\nsql    %s\n", v.First, v.Last, v.From, v.Until, v.SQL)
}

func keyRange(p *program, c *cobra.Command, f *layoutFlags, zone *time.Location, args []string) error {
	from, until, err := p.interval(args, zone)
	if err != nil {
		return err
	}
	layout, err := f.open(p, c)
	if err != nil {
		return err
	}
	defer layout.close()
	first, last, err := layout.KeyRange(from, until)
	if err != nil {
		return err
	}
	v := interval{
		First: strconv.FormatInt(first, 10), Last: strconv.FormatInt(last, 10),
		From: formatTime(from, zone), Until: formatTime(until, zone),
		SQL: fmt.Sprintf("BETWEEN %d AND %d", first, last),
	}
	return p.answer(v, v.print, false)
}

// interval parses the arguments of range.
func (p *program) interval(args []string, zone *time.Location) (from, until time.Time, err error) {
	now := p.clock.Now().In(zone)
	from, isDay, err := parseTime(args[0], now, now)
	switch {
	case err != nil:
		return from, until, usagef("FROM: %v", err)
	case len(args) == 2:
		if until, _, err = parseTime(args[1], now, from); err != nil {
			err = usagef("UNTIL: %v", err)
		}
		return from, until, err
	case isDay:
		return from, from.AddDate(0, 0, 1), nil
	}
	return from, now, nil
}
