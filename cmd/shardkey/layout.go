package main

import (
	"fmt"
	"time"

	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/cobra"
)

// layoutFlags specify the layout of keys: directly, or as a generator of a rule.
type layoutFlags struct {
	layout    string
	tick      duration
	epoch     epoch
	generator string
}

const layoutHelp = `The layout of keys is ShardingSphere's unless --layout, --tick and --epoch specify
another, or --rule the rule file that has it. REDIS generates 41-12-10, LEAF_SNOWFLAKE
41-10-12 with --epoch 2010-11-04T01:42:54.657Z.`

func (f *layoutFlags) declare(c *cobra.Command) {
	fs := c.Flags()
	f.epoch.Time = snowflake.DefaultEpoch
	fs.StringVar(&f.layout, "layout", snowflake.Classic.String(), "`bits` of time, worker and sequence, or js53")
	fs.Var(&f.tick, "tick", "unit of the time field (default 1ms; 1s for js53)")
	fs.Var(&f.epoch, "epoch",
		"`time` from which the time field counts:\nwith its zone, a date, or milliseconds since 1970")
	fs.String("rule", "",
		"rule `file` with the layout;\nwith --generator the default is $"+ruleVariable+", then ./"+ruleDefault)
	fs.StringVar(&f.generator, "generator", "", "`name` of the rule's generator, if the tables use several")
	for _, name := range []string{"layout", "tick", "epoch"} {
		for _, other := range []string{"rule", "generator"} {
			c.MarkFlagsMutuallyExclusive(other, name)
		}
	}
}

// keyBits decodes integer keys, and returns the keys of a time interval.
type keyBits interface {
	spi.KeyDecoder
	spi.KeyRanger
}

// keyLayout is the layout of keys.
type keyLayout struct {
	keyBits
	shardBits int        // how many of a key's lowest bits are shard bits
	live      *rule.Live // nil without a rule
}

func (l *keyLayout) close() {
	if l.live != nil {
		_ = l.live.Close() // nothing was used
	}
}

// open returns the layout, which the caller closes.
func (f *layoutFlags) open(p *program, c *cobra.Command) (*keyLayout, error) {
	if c.Flag("rule").Changed || f.generator != "" {
		return f.fromRule(p, c)
	}
	layout, err := snowflake.ParseLayout(f.layout, time.Duration(f.tick))
	if err != nil {
		return nil, usagef("--layout: %v", plain(err))
	}
	return &keyLayout{keyBits: splitBits{layout, f.epoch.Time}}, nil
}

func (f *layoutFlags) fromRule(p *program, c *cobra.Command) (*keyLayout, error) {
	file, err := ruleFile(c)
	if err != nil {
		return nil, err
	}
	r, live, err := p.openRule(file, offlineDSN)
	if err != nil {
		return nil, err
	}
	l := &keyLayout{live: live}
	if err := l.choose(r, f.generator); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// choose takes the layout of a generator; without a name, of the only one.
func (l *keyLayout) choose(r *rule.Rule, name string) (err error) {
	names := generatorNames(r)
	switch {
	case name != "":
		if name, err = generatorName(r, name); err != nil {
			return err
		}
	case len(names) > 1:
		return usagef("the tables of %s use several generators: choose one with --generator: %s", r.Name(), list(names))
	default:
		name = names[0]
	}
	var ok bool
	if l.keyBits, ok = l.live.Generator(name).(keyBits); !ok {
		l.keyBits = noTime{name}
	}
	for _, t := range r.Tables() {
		if t.GeneratorName == name && t.Gene != nil {
			l.shardBits = t.Gene.Bits
		}
	}
	return nil
}

// noTime is a generator whose keys are strings, or integers without a time.
type noTime struct{ generator string }

func (n noTime) DecodeKey(key int64) (spi.KeyParts, error) {
	return spi.KeyParts{}, fmt.Errorf("%d cannot be decoded: %w", key, n.err())
}

func (n noTime) KeyRange(_, _ time.Time) (first, last int64, err error) { return 0, 0, n.err() }

func (n noTime) err() error {
	return fmt.Errorf("the keys of generator %s are no integers with a time", n.generator)
}

// splitBits is a layout from the command line.
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
