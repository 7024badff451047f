package main

import (
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func decodeCommand(p *program) *cobra.Command {
	f := new(layoutFlags)
	c := &cobra.Command{
		Use:   "decode KEY…",
		Short: "take integer keys apart: time, worker, sequence",
		Long:  "Takes integer keys apart and prints, for each, its time, worker id, sequence and\nlayout. A KEY that cannot be one is an error, printed after the table of the others.\n\n" + layoutHelp,
		RunE:  func(_ *cobra.Command, args []string) error { return decode(p, f, args) },
	}
	f.declare(c.Flags())
	return c
}

func decode(p *program, f *layoutFlags, args []string) error {
	if len(args) == 0 {
		return usagef("give the keys to decode")
	}
	bits, done, err := f.open(p)
	if err != nil {
		return err
	}
	defer done()
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	var wrong []error
	for i, arg := range args {
		row, err := decodeRow(bits, arg)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if i == len(wrong) { // the first that can be
			fmt.Fprintln(w, "KEY\tTIME\tWORKER\tSEQUENCE\tLAYOUT")
		}
		fmt.Fprintln(w, row)
	}
	_ = w.Flush() // into memory
	for _, err := range wrong {
		p.report(err)
	}
	if len(wrong) > 0 {
		return errReported
	}
	return nil
}

func decodeRow(bits keyBits, arg string) (string, error) {
	key, err := strconv.ParseInt(arg, 10, 64)
	if err != nil {
		return "", fmt.Errorf("%q is not a key: an integer in 0..9223372036854775807 is one", arg)
	}
	parts, err := bits.DecodeKey(key)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d\t%s\t%d\t%d\t%s", key, formatTime(parts.Time), parts.WorkerID, parts.Sequence, parts.Layout), nil
}

func rangeCommand(p *program) *cobra.Command {
	f := new(layoutFlags)
	c := &cobra.Command{
		Use:   "range FROM UNTIL",
		Short: "print the smallest and largest key of a time interval",
		Long:  "Prints the smallest and the largest key whose time is at or after FROM and before\nUNTIL, of any worker. Both are times with a zone, as 2026-01-31T12:00:00Z, or dates,\nwhich begin at midnight UTC.\n\n" + layoutHelp,
		RunE:  func(_ *cobra.Command, args []string) error { return keyRange(p, f, args) },
	}
	f.declare(c.Flags())
	return c
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
