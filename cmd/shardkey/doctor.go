package main

import (
	"context"
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
	s := doctor.Subject{Rule: r, Now: p.clock.Now}
	for _, d := range databases {
		one := doctor.Database{Name: d.name, Connector: d.connector}
		one.Live, one.Err = r.Open(spi.Host{DSN: spi.NewSecret(d.dsn), Clock: p.clock, Logger: p.logger()})
		if one.Err == nil {
			defer one.Live.Close() // nothing was used
		}
		s.Databases = append(s.Databases, one)
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	return p.printReport(append(notGiven(r, databases), doctor.Examine(ctx, s)...), f.verbose)
}

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

// notGiven reports the data sources that no -dsn is of.
func notGiven(r *rule.Rule, databases []database) (found []doctor.Finding) {
	for _, source := range r.DataSources() {
		given := slices.ContainsFunc(databases, func(d database) bool { return d.name == "" || strings.EqualFold(d.name, source) })
		if !given && !strings.Contains(source, "${") {
			found = append(found, doctor.Finding{Severity: doctor.Info, Check: "reachable", DataSource: source, What: "it was not looked at: no -dsn is of it",
				Why: "its tables may differ from those of the others", Fix: fmt.Sprintf("-dsn %s=…", source)})
		}
	}
	return found
}

func (p *program) printReport(found []doctor.Finding, verbose bool) error {
	problem := slices.ContainsFunc(found, func(f doctor.Finding) bool { return doctor.IsProblem(f.Severity) })
	if p.json {
		for _, f := range found {
			if err := p.emit(f); err != nil {
				return err
			}
		}
	} else {
		level := doctor.Info
		if verbose {
			level = doctor.OK
		}
		for line := range strings.Lines(doctor.Text(found, level)) {
			severity, rest, ok := strings.Cut(line, ": ")
			if as := severityColours[severity]; ok && as != "" {
				line = p.colours.out(as, severity) + ": " + rest
			}
			fmt.Fprint(p.out, line)
		}
	}
	if problem {
		return errReported
	}
	return nil
}

var severityColours = map[string]colour{doctor.Error: red, doctor.Warning: yellow, doctor.OK: green, doctor.Info: faint}
