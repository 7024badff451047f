package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/convert"
	"github.com/shardkey/shardkey/cmd/shardkey/internal/newrule"
	"github.com/shardkey/shardkey/internal/schema"
	"github.com/spf13/cobra"
)

func initCommand(p *program) *cobra.Command {
	var (
		dsns    []string
		timeout time.Duration
		from    string
	)
	c := &cobra.Command{
		Use:   "init [TABLE…]",
		Short: "print a rule file for the tables of databases",
		Long: "Prints a rule for the tables that are there: tables whose names differ in their\n" +
			"numbers or dates only are one logical table, with ranges, lists or patterns as data\n" +
			"nodes; so are those of one name in several databases. Keys are made for them, and for\n" +
			"tables with AUTO_INCREMENT, by SNOWFLAKE with worker ids out of a database. What is\n" +
			"left out stands at the end, and why. Write the output into a file, look at it, and\n" +
			"run check and doctor.\n\n" +
			"TABLE is the name of a table, or that of all tables with numbers after it.\n\n" +
			"With -from no database is asked: a rule file of any version of ShardingSphere, or a\n" +
			"Spring Boot application's configuration, is printed in the form that loads.",
		Example: "  shardkey init -dsn env:SHOP_DSN > rule.yaml\n" +
			"  shardkey init -dsn ds_0=env:DS0 -dsn ds_1=env:DS1 > rule.yaml\n" +
			"  shardkey init -from application.yml > rule.yaml",
	}
	c.ValidArgsFunction = cobra.NoFileCompletions
	fs := c.Flags()
	fs.StringArrayVar(&dsns, "dsn", nil, dsnHelp+".\nOnce for each")
	fs.DurationVar(&timeout, "timeout", time.Minute, "how long to look")
	fs.StringVar(&from, "from", "", "convert this `FILE`: YAML or .properties")
	p.outputFlag(fs)
	c.RunE = func(c *cobra.Command, args []string) error {
		if from != "" {
			if len(dsns)+len(args) > 0 {
				return usagef("-from has no -dsn and no TABLE with it")
			}
			return p.convertRule(from)
		}
		if timeout <= 0 {
			return usagef("-timeout %v is not above 0", timeout)
		}
		databases, err := p.someDatabases(dsns)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Context(), timeout)
		defer cancel()
		return p.printRule(ctx, databases, args)
	}
	return c
}

func (p *program) printRule(ctx context.Context, databases []database, tables []string) error {
	var sources []newrule.Source
	var addresses []string
	for i, d := range databases {
		name := d.name
		if name == "" && len(databases) > 1 {
			name = fmt.Sprintf("ds_%d", i)
		}
		err := d.read(ctx, nil, func(_ *sql.Conn, read *schema.Database) error {
			sources = append(sources, newrule.Source{Name: name, Schema: read, DSN: d.withoutPassword()})
			return nil
		})
		if err != nil {
			return err
		}
		addresses = append(addresses, strings.TrimPrefix(name+" ", " ")+"at "+d.address())
	}
	r := newrule.New(sources, tables...)
	if len(r.Tables) == 0 {
		var why []string
		for _, l := range r.LeftOut {
			why = append(why, l.Name+": "+l.Why)
		}
		return fmt.Errorf("no table for a rule was found %s; %s", strings.Join(addresses, ", "), strings.Join(append(why, "name tables to have those that are left out"), "; "))
	}
	text := "# A rule for the tables " + strings.Join(addresses, ", ") + ", made by shardkey init.\n" +
		"# Look at it; then run shardkey check -strict, and shardkey doctor.\n" + r.YAML()
	if p.json {
		return p.emit(struct {
			Rule    string            `json:"rule"`
			LeftOut []newrule.LeftOut `json:"leftOut,omitempty"`
		}{text, r.LeftOut})
	}
	_, err := fmt.Fprint(p.out, text)
	return err
}

// convertRule prints the rule of a file of another form, also where it doesn't load yet.
func (p *program) convertRule(path string) error {
	rule, left, problem := convert.File(path)
	if rule == nil {
		return problem
	}
	text := "# The sharding rules of " + path + ", converted by shardkey init.\n" + string(rule)
	if p.json {
		out := struct {
			Rule    string            `json:"rule"`
			LeftOut []newrule.LeftOut `json:"leftOut,omitempty"`
		}{Rule: text}
		for _, l := range left {
			place, why, _ := strings.Cut(l, ": ")
			out.LeftOut = append(out.LeftOut, newrule.LeftOut{Name: place, Why: why})
		}
		return errors.Join(p.emit(out), problem)
	}
	if len(left) > 0 {
		text += "# Not carried over:\n"
	}
	for _, l := range left {
		text += "#   " + l + "\n"
	}
	_, err := fmt.Fprint(p.out, text)
	return errors.Join(err, problem)
}
