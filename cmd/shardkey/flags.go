package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

func newFlagSet(c *command) *flag.FlagSet {
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors and help are printed by the program
	fs.Usage = func() {}
	return fs
}

// parse reads flags, which may come before, between and after the arguments,
// and returns the arguments. After "--" all are arguments, and so is a negative
// number, since no flag begins with a digit.
func parse(fs *flag.FlagSet, args []string) (rest []string, err error) {
	var after []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, after = args[:i], args[i+1:]
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
	return append(rest, after...), nil
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

// offlineDSN stands for the application's own database where none is asked. It
// shows in descriptions.
const offlineDSN = "app@tcp(the-applications-own:3306)/database"

// openRule reads a rule and makes its generators, which ask no server yet.
func (p *program) openRule(file, dsn string) (*rule.Rule, *rule.Live, error) {
	r, err := rule.Load(file)
	if err != nil {
		return nil, nil, err
	}
	g, err := r.Open(spi.Host{DSN: spi.NewSecret(dsn), Clock: p.clock, Logger: p.logger()})
	return r, g, err
}

// generatorNames are the generators that tables have, each once.
func generatorNames(r *rule.Rule) (names []string) {
	for _, t := range r.Tables() {
		if !slices.Contains(names, t.GeneratorName) {
			names = append(names, t.GeneratorName)
		}
	}
	return names
}

func tableNames(r *rule.Rule) (names []string) {
	for _, t := range r.Tables() {
		names = append(names, t.Logical)
	}
	return names
}

// list joins names, the first few of many.
func list(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// plain is an error's message without the prefix that the program writes
// anyway.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "shardkey: ") }

// layoutFlags say how keys are laid out: by themselves, or as a generator of a
// rule has them.
type layoutFlags struct {
	layout, epoch   string
	tick            time.Duration
	rule, generator string
	fs              *flag.FlagSet
}

// keyBits decodes integer keys, and returns the keys of a time interval.
type keyBits interface {
	spi.KeyDecoder
	spi.KeyRanger
}

func (f *layoutFlags) declare(fs *flag.FlagSet) {
	f.fs = fs
	fs.StringVar(&f.layout, "layout", snowflake.Classic.String(), "`bits` of time, worker and sequence, or js53")
	fs.DurationVar(&f.tick, "tick", 0, "the unit of the time field (default 1ms; 1s for js53)")
	fs.StringVar(&f.epoch, "epoch", snowflake.DefaultEpoch.Format(time.RFC3339), "the `time` that the time field counts from")
	fs.StringVar(&f.rule, "rule", "", "take layout, tick and epoch from a generator of this rule `file`")
	fs.StringVar(&f.generator, "generator", "", "the generator's `name` in the rule; needed when the tables have several")
}

const layoutHelp = `How a key is laid out is said by -layout, -tick and -epoch, as in a rule's
properties; without them keys are ShardingSphere's. REDIS makes 41-12-10,
LEAF_SNOWFLAKE 41-10-12 with -epoch 2010-11-04T01:42:54.657Z. With -rule it is
read from a generator of a rule file.`

// open returns the layout, and what ends its use.
func (f *layoutFlags) open(p *program) (bits keyBits, done func(), err error) {
	switch {
	case f.rule != "":
		return f.fromRule(p)
	case f.generator != "":
		return nil, nil, usagef("-generator names a generator of a rule: give -rule too")
	}
	var b splitBits
	if b.layout, err = snowflake.ParseLayout(f.layout, f.tick); err != nil {
		return nil, nil, usagef("-layout: %v", plain(err))
	}
	if b.epoch, err = parseTime(f.epoch); err != nil {
		return nil, nil, usagef("-epoch: %v", err)
	}
	return b, func() {}, nil
}

func (f *layoutFlags) fromRule(p *program) (keyBits, func(), error) {
	beside := ""
	f.fs.Visit(func(fl *flag.Flag) {
		if fl.Name == "layout" || fl.Name == "tick" || fl.Name == "epoch" {
			beside = fl.Name
		}
	})
	if beside != "" {
		return nil, nil, usagef("-rule says what -%s says too: give one of the two", beside)
	}
	r, g, err := p.openRule(f.rule, offlineDSN)
	if err != nil {
		return nil, nil, err
	}
	done := func() { _ = g.Close() } // nothing was used
	bits, err := generatorBits(r, g, f.generator)
	if err != nil {
		done()
		return nil, nil, err
	}
	return bits, done, nil
}

// generatorBits finds a generator by its name; without a name, the one that all
// tables have.
func generatorBits(r *rule.Rule, g *rule.Live, name string) (keyBits, error) {
	names := generatorNames(r)
	if name == "" {
		if len(names) > 1 {
			return nil, usagef("the tables of %s have several generators: choose with -generator one of %s", r.Name(), list(names))
		}
		name = names[0]
	}
	generator := g.Generator(name)
	if generator == nil {
		return nil, usagef("%s has no generator %q; its tables have %s", r.Name(), name, list(names))
	}
	bits, ok := generator.(keyBits)
	if !ok {
		return nil, fmt.Errorf("generator %s makes keys that hold no time: they cannot be taken apart", name)
	}
	return bits, nil
}

// splitBits is a layout given on the command line.
type splitBits struct {
	layout snowflake.Layout
	epoch  time.Time
}

func (b splitBits) DecodeKey(key int64) (spi.KeyParts, error) {
	return snowflake.Decode(b.layout, b.epoch, key)
}

func (b splitBits) KeyRange(from, until time.Time) (first, last int64, err error) {
	return snowflake.KeyRange(b.layout, b.epoch, from, until)
}

// parseTime reads a time with its zone, or a date, which is midnight UTC.
func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: write it with its zone, as 2026-01-31T12:00:00Z, or a date, as 2026-01-31", text)
}

// formatTime writes a time in UTC, with its milliseconds, or to the nanosecond
// where it has more.
func formatTime(t time.Time) string {
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		return t.UTC().Format(time.RFC3339Nano)
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
