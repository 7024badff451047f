package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

func newFlagSet(c *command) *flag.FlagSet {
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors and help are printed by the program
	fs.Usage = func() {}
	return fs
}

// parse reads flags, which may stand before, among and behind the arguments,
// and returns the arguments. Behind "--" all are arguments, and so is a negative
// number, since no flag begins with a digit.
func parse(fs *flag.FlagSet, args []string) (rest []string, err error) {
	var behind []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, behind = args[:i], args[i+1:]
	}
	for len(args) > 0 {
		// One step at a time: the flag package ends at the first argument.
		n := slices.IndexFunc(args, isNegative)
		if n < 0 {
			n = len(args)
		}
		if err := fs.Parse(args[:n]); err != nil {
			return nil, usageFrom(err)
		}
		switch left := fs.NArg(); {
		case left > 0:
			rest = append(rest, fs.Arg(0))
			args = args[n-left+1:]
		case n < len(args):
			rest = append(rest, args[n])
			args = args[n+1:]
		default:
			args = nil
		}
	}
	return append(rest, behind...), nil
}

func usageFrom(err error) error {
	if err == flag.ErrHelp {
		return err
	}
	return usagef("%v", err)
}

func isNegative(arg string) bool {
	return len(arg) > 1 && arg[0] == '-' && '0' <= arg[1] && arg[1] <= '9'
}

// help is the command's own page.
func (c *command) help() string {
	var b strings.Builder
	fs := newFlagSet(c)
	c.flags(fs)
	flags := 0
	fs.VisitAll(func(*flag.Flag) { flags++ })
	line := "shardkey " + c.name
	if flags > 0 {
		line += " [flags]"
	}
	fmt.Fprintf(&b, "usage: %s\n\n%s\n", strings.TrimRight(line+" "+c.args, " "), c.long)
	if flags > 0 {
		b.WriteString("\nflags:\n")
		fs.SetOutput(&b)
		fs.PrintDefaults()
	}
	return b.String()
}
