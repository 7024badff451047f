package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

func rangeCommand(p *program) *cobra.Command {
	f := new(rangeFlags)
	c := &cobra.Command{
		Use:   "range FROM [UNTIL]",
		Short: "print the smallest and largest key of a time interval",
		Long: "Prints the smallest and the largest key whose time is at or after FROM and before\n" +
			"UNTIL, of any worker. Without UNTIL it is the whole of a day, and for other times\n" +
			"until now.\n\n" + timeHelp + " UNTIL may be a duration\nafter FROM too (+24h). Times are of this machine's zone unless -tz names another; the\nanswer says which.\n\n" + layoutHelp,
		Example: "  shardkey range yesterday\n" +
			"  shardkey range -24h\n" +
			"  shardkey range '2026-02-01 10:00' +30m -tz Asia/Shanghai\n" +
			"  shardkey range 2026-01-01 2026-02-01 -rule rule.yaml",
		ValidArgsFunction: oneOf("today", "yesterday", "now", "-24h", "-7d"),
	}
	f.declare(c.Flags())
	c.Flags().StringVar(&f.zone, "tz", "", "the time `zone` of times that are given without one: a name as Asia/Shanghai,\n+08:00, or UTC (default: this machine's)")
	p.outputFlag(c.Flags())
	c.RunE = func(_ *cobra.Command, args []string) error { return keyRange(p, f, args) }
	return c
}

type rangeFlags struct {
	layoutFlags
	zone string
}

// interval is what range prints.
type interval struct {
	First string `json:"first"`
	Last  string `json:"last"`
	From  string `json:"from"`  // RFC 3339
	Until string `json:"until"` // RFC 3339; the interval is without it
	Zone  string `json:"zone"`
	SQL   string `json:"sql"`
}

func keyRange(p *program, f *rangeFlags, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return usagef("give one time or two, FROM and UNTIL")
	}
	zone := p.zone
	if f.zone != "" {
		var err error
		if zone, err = parseZone(f.zone); err != nil {
			return err
		}
	}
	from, until, err := p.interval(args, zone)
	if err != nil {
		return err
	}
	bits, done, err := f.open(p)
	if err != nil {
		return err
	}
	defer done()
	first, last, err := bits.KeyRange(from, until)
	if err != nil {
		return err
	}
	v := interval{
		First: strconv.FormatInt(first, 10), Last: strconv.FormatInt(last, 10),
		From: formatTime(from, zone), Until: formatTime(until, zone), Zone: zoneName(zone, from),
		SQL: fmt.Sprintf("BETWEEN %d AND %d", first, last),
	}
	if p.json {
		return p.emit(v)
	}
	fmt.Fprintf(p.out, "first  %s\nlast   %s\nfrom   %s\nuntil  %s, time zone %s\nsql    %s\n", v.First, v.Last, v.From, v.Until, v.Zone, v.SQL)
	return nil
}

// interval reads the arguments of range.
func (p *program) interval(args []string, zone *time.Location) (from, until time.Time, err error) {
	now := p.clock.Now()
	first, err := parseSpan(args[0], now, now, zone)
	if err != nil {
		return from, until, usagef("FROM: %v", err)
	}
	until = first.until
	if len(args) == 2 {
		second, err := parseSpan(args[1], now, first.from, zone)
		if err != nil {
			return from, until, usagef("UNTIL: %v", err)
		}
		until = second.from
	} else if first.until.Equal(first.from) {
		until = now
	}
	return first.from, until, nil
}

// zoneName names a zone; this machine's has the name that it has at a time.
func zoneName(zone *time.Location, at time.Time) string {
	if zone != time.Local {
		return zone.String()
	}
	name, _ := at.In(zone).Zone()
	return name + " (this machine's)"
}
