package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/pflag"
)

// offlineDSN stands for the application's own database where none is asked, and
// offlineName for it in the descriptions of what uses it.
const (
	offlineDSN  = "app@tcp(the-applications-own:3306)/database"
	offlineName = "the-applications-own:3306/database"
)

// loadRule reads a rule's file, or with "-" standard input.
func (p *program) loadRule(file string) (*rule.Rule, error) {
	if file != "-" {
		return rule.Load(file)
	}
	text, err := p.readText()
	if err != nil {
		return nil, err
	}
	return rule.Parse(stdinName, text)
}

// openRule reads a rule and makes its generators, which ask no server yet.
func (p *program) openRule(file, dsn string) (*rule.Rule, *rule.Live, error) {
	r, err := p.loadRule(file)
	if err != nil {
		return nil, nil, err
	}
	g, err := p.openGenerators(r, dsn)
	return r, g, err
}

// openAtWork is openRule for a command that asks servers; dsns is what the flags
// -dsn say, which the rule may need none of.
func (p *program) openAtWork(file string, dsns []string) (*rule.Rule, *rule.Live, error) {
	r, err := p.loadRule(file)
	if err != nil {
		return nil, nil, err
	}
	return p.openMade(r, dsns)
}

func (p *program) openMade(r *rule.Rule, dsns []string) (*rule.Rule, *rule.Live, error) {
	databases, err := p.databases(dsns)
	if err == nil {
		err = onlyOne(databases)
	}
	if err == nil {
		err = checkSources(r, databases)
	}
	if err != nil {
		return nil, nil, err
	}
	dsn := ""
	for _, d := range databases {
		dsn = d.dsn
	}
	g, err := p.openGenerators(r, dsn)
	if prop := (*spi.PropError)(nil); errors.As(err, &prop) && prop.Name == "dsn" && dsn == "" {
		err = fmt.Errorf("%w: give it with -dsn", err)
	}
	return r, g, err
}

func (p *program) openGenerators(r *rule.Rule, dsn string) (*rule.Live, error) {
	return r.Open(spi.Host{DSN: spi.NewSecret(dsn), Clock: p.clock, Logger: p.logger()})
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
	fs              *pflag.FlagSet
}

// keyBits decodes integer keys, and returns the keys of a time interval.
type keyBits interface {
	spi.KeyDecoder
	spi.KeyRanger
}

func (f *layoutFlags) declare(fs *pflag.FlagSet) {
	f.fs = fs
	fs.StringVar(&f.layout, "layout", snowflake.Classic.String(), "`bits` of time, worker and sequence, or js53")
	fs.DurationVar(&f.tick, "tick", 0, "the unit of the time field (default 1ms; 1s for js53)")
	fs.StringVar(&f.epoch, "epoch", snowflake.DefaultEpoch.Format(time.RFC3339), "the `time` that the time field counts from: with its zone, a date, or milliseconds\nsince 1970")
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
	if f.tick <= 0 && f.fs.Changed("tick") {
		return nil, nil, usagef("-tick %v is not above 0", f.tick)
	}
	var b splitBits
	if b.layout, err = snowflake.ParseLayout(f.layout, f.tick); err != nil {
		return nil, nil, usagef("-layout: %v", plain(err))
	}
	if b.epoch, err = parseEpoch(f.epoch); err != nil {
		return nil, nil, usagef("-epoch: %v", err)
	}
	return b, func() {}, nil
}

func (f *layoutFlags) fromRule(p *program) (keyBits, func(), error) {
	beside := ""
	f.fs.Visit(func(fl *pflag.Flag) {
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
		return nil, usagef("%s has no generator %s; its tables have %s%s", r.Name(), quoted(name), list(names), didYouMean(name, names))
	}
	bits, ok := generator.(keyBits)
	switch {
	case isUUID(r, name):
		return onlyUUIDs{}, nil
	case !ok:
		return nil, fmt.Errorf("generator %s makes keys that hold no time: they cannot be taken apart", name)
	}
	for _, t := range r.Tables() {
		if t.GeneratorName == name && t.Gene != nil {
			return ruleBits{bits, t.Gene.Bits}, nil
		}
	}
	return bits, nil
}

// isUUID reports whether a generator of the rule makes UUIDs.
func isUUID(r *rule.Rule, generator string) bool {
	return slices.ContainsFunc(r.Tables(), func(t rule.Table) bool {
		return t.GeneratorType == "UUID" && strings.EqualFold(t.GeneratorName, generator)
	})
}

// ruleBits are the keys of a generator whose lowest bits are a gene.
type ruleBits struct {
	keyBits
	geneBits int
}

// onlyUUIDs takes no integer apart: a UUID says itself what it holds.
type onlyUUIDs struct{}

func (onlyUUIDs) DecodeKey(key int64) (spi.KeyParts, error) {
	return spi.KeyParts{}, fmt.Errorf("%d is not a UUID, which the generator makes", key)
}

func (onlyUUIDs) KeyRange(_, _ time.Time) (first, last int64, err error) {
	return 0, 0, errors.New("the generator makes UUIDs: they have no range of integers")
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
