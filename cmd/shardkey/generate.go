package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/cobra"
)

type generateFlags struct {
	table   string
	typ     string
	props   []string
	count   int
	verbose bool
}

// maxGenerate is the largest number of keys in one run.
const maxGenerate = 1_000_000

func generateCommand(p *program) *cobra.Command {
	f := new(generateFlags)
	c := &cobra.Command{
		Use:   "generate",
		Short: "generate keys, to try a rule and its stores",
		Long: `Use generate to try a rule and the servers that its generators use. It generates keys as
for one INSERT of that many rows, and prints one per line, binary keys as SQL literals.
It connects to the servers of the generator and its worker-ID assigner, and releases its
worker ID at the end. The keys are used up.

Choose a table of the rule with --table, or without a rule a generator with --type and
--prop. --dsn is the application's database, for generators and worker-ID assigners that
use it.

The exit status is 1 if there are no keys, or the worker ID can't be released.`,
		Example: `  shardkey generate --table t_order -n 5
  shardkey generate --type UUID --prop version=7
  shardkey generate --table t_order | shardkey decode --rule rule.yaml`,
		Args: cobra.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error { return generate(p, c, f) },
	}
	fs := c.Flags()
	ruleFlag(fs)
	fs.StringVar(&f.table, "table", "", "`name` of a logical or actual table, or schema.name")
	fs.StringVar(&f.typ, "type", "", "generator `type`, such as SNOWFLAKE or UUID")
	fs.StringArrayVar(&f.props, "prop", nil, "property of the generator, `NAME=VALUE`; repeatable")
	fs.IntVarP(&f.count, "count", "n", 1, "`number` of keys, 1 to 1000000")
	p.dsnFlag(fs)
	timeoutFlag(fs, 10*time.Second)
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "also print the state of the generators, on standard error")
	c.MarkFlagsOneRequired("table", "type")
	c.MarkFlagsMutuallyExclusive("table", "type")
	c.MarkFlagsMutuallyExclusive("rule", "type")
	return c
}

type generatedKeys struct {
	Keys []string `json:"keys"`
}

func generate(p *program, c *cobra.Command, f *generateFlags) (err error) {
	switch {
	case f.count < 1 || f.count > maxGenerate:
		return usagef("--count %d: expected 1 to %d", f.count, maxGenerate)
	case f.typ == "" && len(f.props) > 0:
		return usagef("--prop needs --type")
	}
	r, live, err := f.open(p, c)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := live.Close(); err == nil {
			err = closeErr // a worker ID could not be released
		}
	}()
	t, err := f.find(r, live)
	if err != nil {
		return err
	}
	ctx, cancel := limited(c)
	defer cancel()
	v, err := f.keys(ctx, t)
	if f.verbose {
		fmt.Fprintln(p.stderr, live.Describe())
		for _, w := range live.Warnings() {
			problemOf(w).print(p.stderr, r.Name(), "warning")
		}
	}
	if err != nil {
		return fmt.Errorf("generator %s for table %s: %w", t.GeneratorName, t.Logical, err)
	}
	return p.answer(v, func(w io.Writer) {
		for _, key := range v.Keys {
			fmt.Fprintln(w, key)
		}
	}, false)
}

func (gf *generateFlags) keys(ctx context.Context, t *rule.Table) (v generatedKeys, err error) {
	keys, err := t.Generator.GenerateKeys(ctx, spi.Column{Table: t.Logical, Name: t.Column}, gf.count)
	for _, key := range keys {
		text := fmt.Sprint(key)
		if b, ok := key.([]byte); ok {
			text = fmt.Sprintf("x'%x'", b)
		}
		v.Keys = append(v.Keys, text)
	}
	return v, err
}

func (gf *generateFlags) open(p *program, c *cobra.Command) (r *rule.Rule, live *rule.Live, err error) {
	if gf.typ != "" {
		r, err = gf.typedRule()
	} else {
		r, err = p.rule(c)
	}
	if err != nil {
		return nil, nil, err
	}
	// A wrong name is reported before a missing DSN.
	if named, err := r.Open(p.host(offlineDSN)); err == nil {
		_, err = gf.find(r, named)
		_ = named.Close() // can't fail: it has leased nothing
		if err != nil {
			return nil, nil, err
		}
	}
	live, err = p.openWith(r)
	return r, live, err
}

func (gf *generateFlags) find(r *rule.Rule, live *rule.Live) (*rule.Table, error) {
	schema, table, qualified := strings.Cut(gf.table, ".")
	if !qualified {
		schema, table = "", gf.table
	}
	if t := live.Lookup(schema, table); t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%s has no table %s; its tables are %s%s",
		r.Name(), quoted(gf.table), list(tableNames(r)), didYouMean(gf.table, allTableNames(r)))
}

// typedRule returns a rule with one table, whose generator has the type and properties of
// --type and --prop.
func (gf *generateFlags) typedRule() (*rule.Rule, error) {
	known := registry.Types(registry.KeyGenerators)
	if !slices.ContainsFunc(known, func(typ string) bool { return strings.EqualFold(typ, gf.typ) }) {
		return nil, usagef("--type %s: expected one of %s%s",
			quoted(gf.typ), strings.Join(known, ", "), didYouMean(gf.typ, known))
	}
	props := rule.Props{}
	for _, prop := range gf.props {
		name, value, found := strings.Cut(prop, "=")
		if !found || name == "" {
			return nil, usagef("--prop: expected NAME=VALUE")
		}
		props[name] = spi.NewSecret(value) // any property may be a password
	}
	gf.table = "t"
	r, err := rule.New(rule.Config{
		Tables:     []rule.TableConfig{{Name: gf.table, KeyConfig: rule.KeyConfig{Column: "id", Generator: gf.typ}}},
		Generators: map[string]rule.GeneratorConfig{gf.typ: {Type: gf.typ, Props: props}},
	})
	if prop := (*spi.PropError)(nil); errors.As(err, &prop) {
		return nil, usagef("%s", trimPrefix(prop)) // without the place: the user has no rule file
	}
	return r, err
}
