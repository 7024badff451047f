package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/cobra"
)

// generateFlags say which keys to make.
type generateFlags struct {
	rule, table string
	dsns        []string
	typ         string
	props       []string
	n           int
	timeout     time.Duration
	verbose     bool
}

// maxGenerate bounds what one run makes: it is for trying, and the keys are
// gone.
const maxGenerate = 1_000_000

func generateCommand(p *program) *cobra.Command {
	f := new(generateFlags)
	c := &cobra.Command{
		Use:   "generate",
		Short: "make keys, to try a rule and its stores",
		Long: "Makes keys as an INSERT of n rows into the table would get them, one a line, in one\n" +
			"call of its generator. It asks the servers that the generator and its worker-id\n" +
			"assigner name, and releases them at the end; the keys are used up. Binary\n" +
			"keys are printed as hexadecimal SQL literals. Instead of a rule and a table, -type and\n" +
			"-prop say what makes the keys.",
		Example: "  shardkey generate -rule rule.yaml -table t_order -n 5\n" +
			"  shardkey generate -type UUID -prop version=7\n" +
			"  shardkey generate -rule rule.yaml -table t_order | shardkey decode -rule rule.yaml",
		RunE: func(c *cobra.Command, args []string) error { return generate(c.Context(), p, f, args) },
	}
	fs := c.Flags()
	fs.StringVar(&f.rule, "rule", "", "the rule `file`")
	fs.StringVar(&f.table, "table", "", "the logical or actual table's `name`, or schema.name")
	fs.StringVar(&f.typ, "type", "", "the generator's `type`, without a rule: SNOWFLAKE, UUID, …")
	fs.StringArrayVar(&f.props, "prop", nil, "a property of the type, as `name=value`; for each one")
	fs.IntVarP(&f.n, "n", "n", 1, "the `number` of keys, at most 1000000")
	fs.StringArrayVar(&f.dsns, "dsn", nil, ownHelp)
	fs.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long to wait for the keys")
	fs.BoolVarP(&f.verbose, "v", "v", false, "print the generators and their state on standard error")
	p.outputFlag(fs)
	return c
}

// generated is one key.
type generated struct {
	Key string `json:"key"`
}

func (f *generateFlags) check(args []string) error {
	switch {
	case len(args) > 0:
		return usagef("unexpected argument %s: give the table with -table", quoted(args[0]))
	case f.n < 1 || f.n > maxGenerate:
		return usagef("-n %d is not in 1..%d", f.n, maxGenerate)
	case f.typ != "" && (f.rule != "" || f.table != ""):
		return usagef("-type makes keys without a rule: give -type, or -rule and -table")
	case f.typ == "" && len(f.props) > 0:
		return usagef("-prop is a property of the generator's type: give -type too")
	case f.typ != "":
	case f.rule == "":
		return usagef("give the rule file with -rule, or the generator's type with -type")
	case f.table == "":
		return usagef("give the table with -table")
	case f.timeout <= 0:
		return usagef("-timeout %v is not above 0", f.timeout)
	}
	return nil
}

func generate(ctx context.Context, p *program, f *generateFlags, args []string) (err error) {
	if err := f.check(args); err != nil {
		return err
	}
	r, g, err := f.open(p)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := g.Close(); err == nil {
			err = closeErr // what was leased could not be released
		}
	}()
	t := lookup(g, f.table)
	if t == nil {
		return fmt.Errorf("%s has no rule for table %s; its tables are %s%s", r.Name(), quoted(f.table), list(tableNames(r)), f.nearest(r))
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	keys, err := t.Generator.GenerateKeys(ctx, spi.Column{Table: t.Logical, Name: t.Column}, f.n)
	if f.verbose {
		fmt.Fprintln(p.stderr, g.Describe())
	}
	if err != nil {
		return fmt.Errorf("generator %s for table %s: %w", t.GeneratorName, t.Logical, err)
	}
	for _, key := range keys {
		text := formatKey(key)
		if !p.json {
			fmt.Fprintln(p.out, text)
		} else if err := p.emit(generated{text}); err != nil {
			return err
		}
	}
	return nil
}

// typedTable is the table of a rule that is made of -type and -prop.
const typedTable = "t"

// open opens the rule, or makes one.
func (f *generateFlags) open(p *program) (*rule.Rule, *rule.Live, error) {
	if f.typ == "" {
		return p.openAtWork(f.rule, f.dsns)
	}
	known := spi.KeyGeneratorTypes()
	if !slices.ContainsFunc(known, func(typ string) bool { return strings.EqualFold(typ, f.typ) }) {
		return nil, nil, usagef("-type %s is none of %s%s", quoted(f.typ), strings.Join(known, ", "), didYouMean(f.typ, known))
	}
	props := rule.Props{}
	for _, prop := range f.props {
		name, value, found := strings.Cut(prop, "=")
		if !found || name == "" {
			return nil, nil, usagef("-prop is not as name=value")
		}
		props[name] = spi.NewSecret(value) // any of them may be one
	}
	made, err := rule.New(rule.Config{
		Tables:     []rule.TableConfig{{Name: typedTable, KeyConfig: rule.KeyConfig{Column: "id", Generator: f.typ}}},
		Generators: map[string]rule.GeneratorConfig{f.typ: {Type: f.typ, Props: props}},
	})
	if err != nil {
		return nil, nil, withoutPlace(err)
	}
	f.table = typedTable
	return p.openMade(made, f.dsns)
}

// withoutPlace is what is wrong with a property, without the place in the rule that was
// made for it.
func withoutPlace(err error) error {
	if prop := (*spi.PropError)(nil); errors.As(err, &prop) {
		return usagef("%s", plain(prop))
	}
	return err
}

// nearest is the end of the message for a table that the rule does not have.
func (f *generateFlags) nearest(r *rule.Rule) string {
	if word := nearestTable(r, f.table[strings.LastIndexByte(f.table, '.')+1:]); word != "" {
		return "; did you mean " + word + "?"
	}
	return didYouMean(f.table, tableNames(r))
}

// lookup finds a table by a name, which may have a schema in front.
func lookup(g *rule.Live, name string) *rule.Table {
	if schema, table, ok := strings.Cut(name, "."); ok {
		return g.Lookup(schema, table)
	}
	return g.Lookup("", name)
}

func formatKey(key any) string {
	if b, ok := key.([]byte); ok {
		return fmt.Sprintf("x'%x'", b)
	}
	return fmt.Sprint(key)
}
