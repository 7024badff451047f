package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/convert"
	"github.com/shardkey/shardkey/cmd/shardkey/internal/migrate"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/spf13/cobra"
)

func initCommand(p *program) *cobra.Command {
	from := ""
	c := &cobra.Command{
		Use:   "init [TABLE...]",
		Short: "print a rule file for existing tables",
		Long: `Use init to start with a rule for the tables of a database, or of several data sources.
Tables whose names differ only in numbers or dates are one logical table, and so are
tables with the same name in several databases. These, and tables with AUTO_INCREMENT,
get keys from SNOWFLAKE with worker IDs from a database. The tables that are left out
follow, with the reason. Write the output to a file, read it, and run check and doctor.

TABLE is a table, or the common name of tables that differ in the numbers after it.

With --from, init converts a rule file of ShardingSphere 4 or 5, or the YAML or properties
of a Spring Boot application, and connects to no database.

The exit status is 1 if there is no table for a rule, if a database can't be read, or if
the converted rule doesn't load.`,
		Example: `  shardkey init --dsn env:SHOP_DSN > rule.yaml
  shardkey init --dsn ds_0=env:DS0 --dsn ds_1=env:DS1 > rule.yaml
  shardkey init --from application.properties > rule.yaml`,
	}
	fs := c.Flags()
	p.dsnFlag(fs)
	timeoutFlag(fs, time.Minute)
	fs.StringVar(&from, "from", "", "YAML or properties `file` to convert")
	c.MarkFlagsMutuallyExclusive("from", "dsn")
	c.RunE = func(c *cobra.Command, args []string) error {
		if from != "" {
			return p.convert(from, args)
		}
		databases, err := p.databases(1, math.MaxInt)
		if err != nil {
			return err
		}
		ctx, cancel := limited(c)
		defer cancel()
		v, err := ruleOf(ctx, databases, args)
		if err != nil {
			return err
		}
		return p.answer(v, func(w io.Writer) { fmt.Fprint(w, v.Rule) }, false)
	}
	return c
}

type newRule struct {
	Rule    string            `json:"rule"` // content of a rule file
	LeftOut []migrate.LeftOut `json:"leftOut,omitempty"`
	Error   string            `json:"error,omitempty"` // why the rule doesn't load yet
}

func ruleOf(ctx context.Context, databases []database, tables []string) (v newRule, err error) {
	var sources []migrate.Source
	var addresses []string
	for i, d := range databases {
		name := d.name
		if name == "" && len(databases) > 1 {
			name = fmt.Sprintf("ds_%d", i)
		}
		err := d.read(ctx, nil, func(_ *sql.Conn, read migrate.Source) error {
			read.Name = name
			sources = append(sources, read)
			return nil
		})
		if err != nil {
			return v, err
		}
		addresses = append(addresses, strings.TrimPrefix(name+" ", " ")+"at "+d.address())
	}
	r := migrate.NewRule(sources, tables...)
	yaml := r.YAML()
	if yaml == "" {
		why := []string{"no tables for a rule " + sqltoken.Printable(strings.Join(addresses, ", "))}
		for _, l := range r.LeftOut {
			why = append(why, sqltoken.Printable(l.Name)+": "+l.Why)
		}
		why = append(why, "to include a table, name it as an argument")
		return v, fmt.Errorf("%s", strings.Join(why, "; "))
	}
	v.Rule = "# Rule for the tables " + sqltoken.Printable(strings.Join(addresses, ", ")) + ", written by shardkey init.\n" +
		"# Read it, then run shardkey check --strict and shardkey doctor.\n" + yaml
	v.LeftOut = r.LeftOut
	return v, nil
}

// convert prints the rule of a ShardingSphere or Spring Boot file, even if it doesn't load
// yet.
func (p *program) convert(path string, tables []string) error {
	if len(tables) > 0 {
		return usagef("--from converts all tables of the file: expected no arguments, found %s", quoted(tables[0]))
	}
	rule, left, problem := convert.File(path)
	if rule == nil {
		return problem
	}
	v := newRule{Rule: "# The sharding rules of " + sqltoken.Printable(path) + ", converted by shardkey init.\n" + string(rule)}
	for _, l := range left {
		place, why, _ := strings.Cut(l, ": ")
		v.LeftOut = append(v.LeftOut, migrate.LeftOut{Name: place, Why: why})
	}
	if problem != nil {
		v.Error = trimPrefix(problem)
	}
	err := p.answer(v, v.printConverted, problem != nil)
	if problem != nil && !p.json() {
		p.warn(v.Error)
	}
	return err
}

func (nr newRule) printConverted(w io.Writer) {
	fmt.Fprint(w, nr.Rule)
	if len(nr.LeftOut) > 0 {
		fmt.Fprintln(w, "# Not carried over:")
	}
	for _, l := range nr.LeftOut {
		fmt.Fprintf(w, "#   %s: %s\n", sqltoken.Printable(l.Name), sqltoken.Printable(l.Why))
	}
}
