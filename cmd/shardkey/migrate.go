package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/migrate"
	"github.com/shardkey/shardkey/rule"
	"github.com/spf13/cobra"
)

type migrateFlags struct {
	rule     string
	dropAuto bool
}

func migrateCommand(p *program) *cobra.Command {
	f := new(migrateFlags)
	c := &cobra.Command{
		Use:   "migrate [TABLE...]",
		Short: "print the SQL that prepares tables with AUTO_INCREMENT",
		Long: `Use migrate before shardkey generates the keys of existing tables. It prints

  - ALTER TABLE statements that make keys, and the columns that refer to them, BIGINT
  - a rule file
  - queries that check the result
  - as comments, the statements that remove AUTO_INCREMENT; after these, programs that
    insert without shardkey fail

It executes nothing. Read the output, and try it on a copy of the database.

TABLE is a table, or the common name of tables that differ in the numbers after it. The
default is the tables of --rule, or all tables with AUTO_INCREMENT.

The exit status is 1 if the database or the rule can't be read.`,
		Example: "  shardkey migrate --dsn env:SHOP_DSN orders customer > migrate.sql",
	}
	fs := c.Flags()
	p.dsnFlag(fs)
	fs.StringVar(&f.rule, "rule", "", "existing rule `file`")
	fs.BoolVar(&f.dropAuto, "drop-auto-increment", false,
		"print the removal of AUTO_INCREMENT as statements, not comments")
	timeoutFlag(fs, time.Minute)
	c.RunE = func(c *cobra.Command, args []string) error {
		databases, err := p.databases(1, 1)
		if err != nil {
			return err
		}
		ctx, cancel := limited(c)
		defer cancel()
		return p.migrate(ctx, databases[0], f, args)
	}
	return c
}

func (p *program) migrate(ctx context.Context, d database, f *migrateFlags, tables []string) error {
	var live *rule.Live
	var schemas []string
	if f.rule != "" {
		r, opened, err := p.openRule(f.rule, d.dsn)
		if err != nil {
			return err
		}
		defer opened.Close() // can't fail: it has leased nothing
		if err := checkSources(r, []database{d}); err != nil {
			return err
		}
		live = opened
		for _, t := range r.Tables() {
			for place := range r.Places(t.Logical) {
				if place.Schema != "" && !slices.Contains(schemas, place.Schema) {
					schemas = append(schemas, place.Schema)
				}
			}
		}
	}
	return d.read(ctx, schemas, func(conn *sql.Conn, read migrate.Source) error {
		plan, err := migrate.NewPlan(ctx, conn, read, live, tables...)
		if err != nil {
			return err
		}
		return p.answer(plan, func(w io.Writer) { fmt.Fprint(w, plan.SQL(f.dropAuto)) }, false)
	})
}
