package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/rule"
	"github.com/spf13/cobra"
)

func checkCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "check RULE.yaml…",
		Short: "check rule files and print what they mean",
		Long: "Reads rule files as a program would that opens them, and prints what was understood:\n" +
			"generators, worker-id assigners, the tables with their key columns and actual\n" +
			"tables, and how these are sharded; where that is not understood, a note says what.\n" +
			"What is wrong is reported with file, line and column; what is risky or\n" +
			"ignored is a warning. No server is asked, and no property's secret is shown. An\n" +
			"environment variable that a property names must be set. RULE.yaml - is standard\n" +
			"input.",
		ValidArgsFunction: ruleFiles,
	}
	strict := c.Flags().Bool("strict", false, "take warnings for errors: exit status 1")
	c.RunE = func(_ *cobra.Command, args []string) error { return check(p, p.arguments(args), *strict) }
	return c
}

func check(p *program, files []string, strict bool) error {
	if len(files) == 0 {
		return usagef("give the rule files to check")
	}
	failed := false
	for _, file := range files {
		warned, err := checkFile(p, file)
		failed = failed || warned && strict
		if err != nil {
			failed = true
			// Without a prefix, so that editors find file:line:column.
			_ = p.out.Flush() // run sees it again
			fmt.Fprintln(p.stderr, plain(err))
		}
	}
	if failed {
		return errReported
	}
	return nil
}

// checkFile prints what a rule means, and reports whether there are warnings.
func checkFile(p *program, file string) (warned bool, err error) {
	r, g, err := p.openRule(file, offlineDSN)
	if err != nil {
		return false, err
	}
	fmt.Fprintln(p.out, g.Describe())
	printSharding(p, r)
	lines := warnings(g)
	for _, warning := range lines {
		fmt.Fprintln(p.out, "  warning:", warning)
	}
	for _, w := range r.Warnings() {
		text := plain(w)
		place := fmt.Sprintf("%s:%d:%d", w.File, w.Line, w.Column)
		fmt.Fprintf(p.out, "%s: warning%s\n", place, strings.TrimPrefix(text, place))
	}
	return len(lines)+len(r.Warnings()) > 0, g.Close()
}

// printSharding prints how each table is sharded, and a note where that is not
// understood.
func printSharding(p *program, r *rule.Rule) {
	var notes []string
	for _, t := range r.Tables() {
		if t.Sharding == nil {
			continue
		}
		var e *rule.Error
		if errors.As(t.Sharding.Err, &e) {
			place := fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
			notes = append(notes, place+": note"+strings.TrimPrefix(plain(e), place))
			continue
		}
		fmt.Fprintf(p.out, "  sharding of %s: %s\n", t.Logical, t.Sharding)
	}
	for _, note := range notes {
		fmt.Fprintln(p.out, note)
	}
}

// warnings are the standing risks of a rule's generators and assigners.
func warnings(g *rule.Live) (lines []string) {
	health := g.Health()
	for _, name := range slices.Sorted(maps.Keys(health)) {
		for _, warning := range health[name].Warnings {
			lines = append(lines, name+": "+strings.TrimPrefix(warning, "shardkey: "))
		}
	}
	return lines
}
