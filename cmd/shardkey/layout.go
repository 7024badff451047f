package main

import (
	"fmt"
	"time"

	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/cobra"
)

// layoutFlags specify the layout of keys, directly or as the layout of a rule's generator.
type layoutFlags struct {
	layout    string
	tick      duration
	epoch     time.Time
	generator string
}

const layoutHelp = `The default layout is ShardingSphere's. For another one use --rule, or --layout, --tick
and --epoch. The layout of REDIS is 41-12-10. The layout of LEAF_SNOWFLAKE is 41-10-12,
with --epoch 2010-11-04T01:42:54.657Z.`

func (lf *layoutFlags) declare(c *cobra.Command) {
	fs := c.Flags()
	lf.epoch = snowflake.DefaultEpoch
	fs.StringVar(&lf.layout, "layout", snowflake.Classic.String(), "`bits` of time, worker and sequence, or js53")
	fs.Var(&lf.tick, "tick", "unit of the time field (default 1ms; 1s for js53)")
	fs.Func("epoch", "`time` at which the time field is 0:\n"+
		"a time with its zone, a date, or milliseconds since 1970 (default "+lf.epoch.Format(time.RFC3339)+")",
		func(text string) (err error) {
			lf.epoch, err = parseEpoch(text)
			return err
		})
	fs.String("rule", "",
		"rule `file` with the layout\n(default with --generator: $"+ruleVariable+", then ./"+ruleDefault+")")
	fs.StringVar(&lf.generator, "generator", "", "`name` of the generator, if the rule's tables use several")
	for _, name := range []string{"layout", "tick", "epoch"} {
		for _, other := range []string{"rule", "generator"} {
			c.MarkFlagsMutuallyExclusive(other, name)
		}
	}
}

// keyBits decodes integer keys and returns the keys of a time interval.
type keyBits interface {
	spi.KeyDecoder
	spi.KeyRanger
}

type keyLayout struct {
	keyBits
	untimed   error      // why keyBits is nil: the keys have no time
	shardBits int        // number of shard bits, the lowest bits of a key
	live      *rule.Live // nil without a rule
}

func (l *keyLayout) close() {
	if l.live != nil {
		_ = l.live.Close() // can't fail: it has leased nothing
	}
}

// open returns the layout. The caller must close it.
func (lf *layoutFlags) open(p *program, c *cobra.Command) (*keyLayout, error) {
	if c.Flag("rule").Changed || lf.generator != "" {
		return lf.fromRule(p, c)
	}
	layout, err := snowflake.ParseLayout(lf.layout, time.Duration(lf.tick))
	if err != nil {
		return nil, usagef("--layout: %v", trimPrefix(err))
	}
	return &keyLayout{keyBits: splitBits{layout, lf.epoch}}, nil
}

func (lf *layoutFlags) fromRule(p *program, c *cobra.Command) (*keyLayout, error) {
	file, err := ruleFile(c)
	if err != nil {
		return nil, err
	}
	r, live, err := p.openRule(file, offlineDSN)
	if err != nil {
		return nil, err
	}
	l := &keyLayout{live: live}
	if err := l.choose(r, lf.generator); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// choose sets l to the layout of the named generator, or of the only one if name is "".
func (l *keyLayout) choose(r *rule.Rule, name string) (err error) {
	names := generatorNames(r)
	switch {
	case name != "":
		if name, err = generatorName(r, name); err != nil {
			return err
		}
	case len(names) > 1:
		return usagef("the tables of %s use several generators (%s): choose one with --generator",
			r.Name(), list(names))
	default:
		name = names[0]
	}
	var ok bool
	if l.keyBits, ok = l.live.Generator(name).(keyBits); !ok {
		l.untimed = fmt.Errorf("generator %s: its keys are not integers with a time", name)
	}
	for _, t := range r.Tables() {
		if t.GeneratorName == name && t.ShardBits != nil {
			l.shardBits = t.ShardBits.Bits
		}
	}
	return nil
}

// splitBits is the keyBits of a layout from the command line.
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
