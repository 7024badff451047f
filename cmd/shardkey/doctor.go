package main

import (
	"database/sql"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/shardkey/shardkey/doctor"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/cobra"
)

func doctorCommand(p *program) *cobra.Command {
	verbose := false
	c := &cobra.Command{
		Use:   "doctor",
		Short: "check the databases against a rule",
		Long: `Use doctor before you deploy a rule. It connects to the databases of the rule, and checks

  - the rule's tables: whether they exist, and whether all tables are listed
  - key columns: whether they are unique, and wide enough
  - columns that refer to a key: whether they are wide enough
  - new keys: whether they are above the existing ones
  - privileges and clocks
  - the tables and servers of worker IDs, segments and tickets

It prints findings with a reason and a fix. It writes nothing and uses up no keys.

Pass --dsn once for each data source of the rule. One without a data source stands for
all of them. A database that doesn't answer is an error; doctor still checks the others.

The exit status is 1 if there is an error or a warning.`,
		Example: `  shardkey doctor --dsn env:SHOP_DSN
  shardkey doctor --dsn ds_0=env:DS0 --dsn ds_1=env:DS1 -o json`,
		Args: cobra.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error { return examine(p, c, verbose) },
	}
	fs := c.Flags()
	ruleFlag(fs)
	p.dsnFlag(fs)
	timeoutFlag(fs, 30*time.Second)
	fs.BoolVarP(&verbose, "verbose", "v", false, "also print the checks that passed")
	return c
}

func examine(p *program, c *cobra.Command, verbose bool) error {
	databases, err := p.databases(1, math.MaxInt)
	if err != nil {
		return err
	}
	r, err := p.rule(c)
	if err != nil {
		return err
	}
	if err := checkSources(r, databases); err != nil {
		return err
	}
	dbs, hosts := map[string]*sql.DB{}, map[string]spi.Host{}
	for _, d := range databases {
		db := sql.OpenDB(d.connector)
		defer db.Close()
		dbs[d.name], hosts[d.name] = db, p.host(d.dsn)
	}
	ctx, cancel := limited(c)
	defer cancel()
	report, err := doctor.ExamineAll(ctx, dbs, r, hosts)
	if err != nil {
		return err
	}
	v := doctorReport(report)
	return p.answer(v, func(w io.Writer) { v.print(w, verbose) }, len(report.Problems()) > 0)
}

type doctorReport struct {
	Findings []doctor.Finding `json:"findings"`
}

// breaksName reports whether a line of SQL ends in a quoted name, which has a line feed.
func breaksName(line string) bool { return strings.Count(line, "`")%2 == 1 }

// print prints the findings, each with at most the first 40 lines of its fix, and totals.
func (dr doctorReport) print(w io.Writer, verbose bool) {
	const most = 40 // lines
	n := map[doctor.Severity]int{}
	for _, f := range dr.Findings {
		n[f.Severity]++
		if f.Severity == doctor.OK && !verbose {
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", f.Severity, visible(f.String()))
		if f.Why != "" {
			fmt.Fprintf(w, "  why: %s\n", visible(f.Why))
		}
		if f.Fix == "" {
			continue
		}
		lines := strings.Split(f.Fix, "\n")
		if f.Fix != visible(f.Fix) || slices.ContainsFunc(lines, breaksName) {
			lines = []string{"-- a name has characters that can't be printed; -o json prints the statements"}
		}
		if n := len(lines) - most; n > 0 {
			lines = append(lines[:most], fmt.Sprintf("-- … and %d more lines; -o json prints them all", n))
		}
		fmt.Fprintf(w, "  fix: %s\n", strings.Join(lines, "\n       "))
	}
	fmt.Fprintf(w, "%s, %s, %s; %s passed\n", lint.Counted(n[doctor.Error], "error"),
		lint.Counted(n[doctor.Warning], "warning"), lint.Counted(n[doctor.Info], "info"), lint.Counted(n[doctor.OK], "check"))
}
