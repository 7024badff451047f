package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardkey/shardkey/doctor"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/cobra"
)

// doctorFlags say what to look at.
type doctorFlags struct {
	rule    string
	dsns    []string
	timeout time.Duration
	verbose bool
}

func doctorCommand(p *program) *cobra.Command {
	f := new(doctorFlags)
	c := &cobra.Command{
		Use:   "doctor",
		Short: "hold a rule against its databases",
		Long: "Looks whether the databases of a rule are fit for it: whether they answer, its tables\n" +
			"are there, with a key column that holds the keys that will be made and is unique, and\n" +
			"references that hold them too; whether new keys come after those that are there;\n" +
			"which tables look like a ruled one's and are not listed; what the user may do; the\n" +
			"clock; and the tables and servers that worker ids, segments and tickets are kept in.\n" +
			"Each finding says why it matters and how to mend it. Nothing is written, and no key\n" +
			"is used up.\n\n" +
			"The exit status is 1 when there is an error or a warning; a database that does not\n" +
			"answer is an error, and the others are looked at.",
		Example: "  shardkey doctor -rule rule.yaml -dsn env:SHOP_DSN\n" +
			"  shardkey doctor -rule rule.yaml -dsn ds_0=env:DS0 -dsn ds_1=env:DS1 -o json",
		RunE: func(c *cobra.Command, args []string) error { return examine(c.Context(), p, f, args) },
	}
	c.ValidArgsFunction = cobra.NoFileCompletions
	fs := c.Flags()
	fs.StringVar(&f.rule, "rule", "", "the rule `file` (required)")
	fs.StringArrayVar(&f.dsns, "dsn", nil, dsnHelp+
		".\nOnce for each; one without a data source stands for all of the rule's")
	fs.DurationVar(&f.timeout, "timeout", 30*time.Second, "how long to look")
	fs.BoolVar(&f.verbose, "v", false, "print what is as it must be, too")
	p.outputFlag(fs)
	return c
}

func examine(ctx context.Context, p *program, f *doctorFlags, args []string) error {
	switch {
	case len(args) > 0:
		return usagef("unexpected argument %q: give the rule with -rule and the databases with -dsn", args[0])
	case f.rule == "":
		return usagef("give the rule file with -rule")
	case f.timeout <= 0:
		return usagef("-timeout %v is not above 0", f.timeout)
	}
	databases, err := p.someDatabases(f.dsns)
	if err != nil {
		return err
	}
	r, err := p.loadRule(f.rule)
	if err != nil {
		return err
	}
	if err := checkSources(r, databases); err != nil {
		return err
	}
	dbs := map[string]*sql.DB{}
	for _, d := range databases {
		host := spi.Host{DSN: spi.NewSecret(d.dsn), Clock: p.clock, Logger: p.logger()}
		db := sql.OpenDB(hosted{d.connector, host})
		defer db.Close()
		dbs[d.name] = db
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	report, err := doctor.ExamineAll(ctx, dbs, r)
	if err != nil {
		return err
	}
	return p.printReport(report, f.verbose)
}

// hosted is a connector that shows package doctor its data source.
type hosted struct {
	driver.Connector
	host spi.Host
}

func (h hosted) Driver() driver.Driver { return hostedDriver{h.Connector.Driver(), h.host} }

type hostedDriver struct {
	driver.Driver
	host spi.Host
}

func (h hostedDriver) Host() spi.Host { return h.host }

// checkSources refuses names that are none of the rule's.
func checkSources(r *rule.Rule, databases []database) error {
	sources := r.DataSources()
	for _, d := range databases {
		switch {
		case d.name == "" && len(databases) > 1:
			example := "ds_0"
			if len(sources) > 0 {
				example = sources[0]
			}
			return usagef("there are several -dsn: say of each which data source it is, as -dsn %s=…", example)
		case d.name != "" && len(sources) > 0 && !slices.ContainsFunc(sources, func(s string) bool { return strings.EqualFold(s, d.name) || strings.Contains(s, "${") }):
			return usagef("%s has no data source %q; it has %s%s", r.Name(), d.name, list(sources), didYouMean(d.name, sources))
		}
	}
	return nil
}

func (p *program) printReport(report doctor.Report, verbose bool) error {
	for _, f := range report.Findings {
		switch {
		case p.json:
			if err := p.emit(f); err != nil {
				return err
			}
		case verbose || f.Severity != doctor.OK:
			p.printFinding(f)
		}
	}
	if !p.json {
		p.printCounts(report.Findings)
	}
	if len(report.Problems()) > 0 {
		return errReported
	}
	return nil
}

// printFinding prints a finding for people, with the first lines of its fix.
func (p *program) printFinding(f doctor.Finding) {
	const most = 40 // lines
	fmt.Fprintf(p.out, "%s: %s\n", p.colours.out(severityColours[f.Severity], string(f.Severity)), f)
	if f.Why != "" {
		fmt.Fprintf(p.out, "  why: %s\n", f.Why)
	}
	if f.Fix == "" {
		return
	}
	lines := strings.Split(f.Fix, "\n")
	if n := len(lines) - most; n > 0 {
		lines = append(lines[:most], fmt.Sprintf("-- … and %d more lines, which the finding has in JSON", n))
	}
	fmt.Fprintf(p.out, "  fix: %s\n", strings.Join(lines, "\n       "))
}

// printCounts prints how many findings there are of each severity.
func (p *program) printCounts(found []doctor.Finding) {
	n := map[doctor.Severity]int{}
	for _, f := range found {
		n[f.Severity]++
	}
	fmt.Fprintf(p.out, "%s, %s, %s; %s found nothing wrong\n", counted(n[doctor.Error], "error"),
		counted(n[doctor.Warning], "warning"), counted(n[doctor.Info], "remark"), counted(n[doctor.OK], "check"))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

var severityColours = map[doctor.Severity]colour{
	doctor.Error: red, doctor.Warning: yellow, doctor.OK: green, doctor.Info: faint,
}
