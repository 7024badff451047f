package main

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/migrate"
	"github.com/shardkey/shardkey/cmd/shardkey/internal/newrule"
	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/rule"
	"github.com/spf13/cobra"
)

func migrateCommand(p *program) *cobra.Command {
	var (
		dsns     []string
		file     string
		dropAuto bool
		timeout  time.Duration
	)
	c := &cobra.Command{
		Use:   "migrate [TABLE…]",
		Short: "print what tables with AUTO_INCREMENT need",
		Long: "Prints what tables of a database need before shardkey makes their keys: the ALTER\n" +
			"TABLE statements that make keys and what refers to them BIGINT, with the foreign keys\n" +
			"dropped before and made again afterwards, a rule file, queries to check, and, as\n" +
			"comments, the statements that take AUTO_INCREMENT off at the end: programs that insert\n" +
			"without shardkey fail after them. Columns keep all else that they have. Nothing is run:\n" +
			"look at it, and try it on a copy.\n\n" +
			"TABLE is a table's name, or that of all tables with numbers after it; without it\n" +
			"these are the tables of -rule, or all with AUTO_INCREMENT.",
		Example: "  shardkey migrate -dsn env:SHOP_DSN orders customer > migrate.sql",
	}
	c.ValidArgsFunction = cobra.NoFileCompletions
	fs := c.Flags()
	fs.StringArrayVar(&dsns, "dsn", nil, dsnHelp)
	fs.StringVar(&file, "rule", "", "the rule `file`, where there is one already")
	fs.BoolVar(&dropAuto, "drop-auto-increment", false, "print the statements that take AUTO_INCREMENT off as statements")
	fs.DurationVar(&timeout, "timeout", time.Minute, "how long to look")
	p.outputFlag(fs)
	c.RunE = func(c *cobra.Command, args []string) error {
		if timeout <= 0 {
			return usagef("-timeout %v is not above 0", timeout)
		}
		databases, err := p.someDatabases(dsns)
		if err == nil {
			err = onlyOne(databases)
		}
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Context(), timeout)
		defer cancel()
		return p.migrate(ctx, databases[0], file, dropAuto, args)
	}
	return c
}

func (p *program) migrate(ctx context.Context, d database, file string, dropAuto bool, tables []string) error {
	var live *rule.Live
	var schemas []string
	if file != "" {
		r, g, err := p.openRule(file, d.dsn)
		if err != nil {
			return err
		}
		defer g.Close() // nothing was used
		if err := checkSources(r, []database{d}); err != nil {
			return err
		}
		live = g
		for _, t := range r.Tables() {
			for place := range r.Places(t.Logical) {
				if place.Schema != "" && !slices.Contains(schemas, place.Schema) {
					schemas = append(schemas, place.Schema)
				}
			}
		}
	}
	return d.read(ctx, schemas, func(conn *sql.Conn, read *schema.Database) error {
		plan, err := migrate.New(ctx, conn, newrule.Source{Schema: read, DSN: d.withoutPassword()}, live, tables...)
		if err != nil {
			return err
		}
		if p.json {
			return p.emit(plan)
		}
		_, err = fmt.Fprint(p.out, plan.SQL(dropAuto))
		return err
	})
}
