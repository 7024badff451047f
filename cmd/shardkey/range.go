package main

import (
	"context"
	"flag"
	"fmt"
)

func rangeCommand() *command {
	return &command{
		name: "range", args: "FROM UNTIL", short: "give the smallest and largest key of a time interval",
		long: "Prints the smallest and the largest key whose time is at or after FROM and before\nUNTIL, of any worker. Both are times with a zone, as 2026-01-31T12:00:00Z, or dates,\nwhich begin at midnight UTC.\n\n" + layoutHelp,
		flags: func(fs *flag.FlagSet) action {
			f := new(layoutFlags)
			f.declare(fs)
			return func(_ context.Context, p *program, args []string) error { return keyRange(p, f, args) }
		},
	}
}

func keyRange(p *program, f *layoutFlags, args []string) error {
	if len(args) != 2 {
		return usagef("give two times, FROM and UNTIL")
	}
	from, err := parseTime(args[0])
	if err != nil {
		return usagef("FROM: %v", err)
	}
	until, err := parseTime(args[1])
	if err != nil {
		return usagef("UNTIL: %v", err)
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
	fmt.Fprintf(p.out, "first  %d\nlast   %d\nsql    BETWEEN %d AND %d\n", first, last, first, last)
	return nil
}
