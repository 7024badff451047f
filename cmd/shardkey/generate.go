package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/cobra"
)

// generateFlags say which keys to make.
type generateFlags struct {
	rule, table, dsn string
	n                int
	timeout          time.Duration
	verbose          bool
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
			"keys are printed as hexadecimal SQL literals.",
		RunE: func(c *cobra.Command, args []string) error { return generate(c.Context(), p, f, args) },
	}
	fs := c.Flags()
	fs.StringVar(&f.rule, "rule", "", "the rule `file` (required)")
	fs.StringVar(&f.table, "table", "", "the logical or actual table's `name`, or schema.name (required)")
	fs.IntVar(&f.n, "n", 1, "the `number` of keys, at most 1000000")
	fs.StringVar(&f.dsn, "dsn", "", dsnHelp)
	fs.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long to wait for the keys")
	fs.BoolVar(&f.verbose, "v", false, "print the generators and their state on standard error")
	return c
}

func (f *generateFlags) check(args []string) error {
	switch {
	case len(args) > 0:
		return usagef("unexpected argument %q: give the table with -table", args[0])
	case f.n < 1 || f.n > maxGenerate:
		return usagef("-n %d is not in 1..%d", f.n, maxGenerate)
	case f.rule == "":
		return usagef("give the rule file with -rule")
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
	r, g, err := p.openAtWork(f.rule, f.dsn)
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
		return fmt.Errorf("%s has no rule for table %q; its tables are %s", r.Name(), f.table, list(tableNames(r)))
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
		fmt.Fprintln(p.out, formatKey(key))
	}
	return nil
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
