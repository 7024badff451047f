package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"

	"github.com/shardkey/shardkey/rule"
)

func checkCommand() *command {
	return &command{
		name: "check", args: "RULE.yaml…", short: "check rule files and tell what they mean",
		long: "Reads rule files as a program would that opens them, and prints what was understood:\n" +
			"generators, worker-id assigners, and the tables with their key columns and actual\n" +
			"tables. What is wrong is told with file, line and column; what is risky is a\n" +
			"warning. No server is asked, and no property's secret is shown. An environment\n" +
			"variable that a property names must be set.",
		flags: func(*flag.FlagSet) action {
			return func(_ context.Context, p *program, args []string) error { return check(p, args) }
		},
	}
}

func check(p *program, files []string) error {
	if len(files) == 0 {
		return usagef("give the rule files to check")
	}
	failed := false
	for _, file := range files {
		if err := checkFile(p, file); err != nil {
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

func checkFile(p *program, file string) error {
	_, g, err := p.openRule(file, offlineDSN)
	if err != nil {
		return err
	}
	fmt.Fprintln(p.out, g.Describe())
	for _, warning := range warnings(g) {
		fmt.Fprintln(p.out, "  warning:", warning)
	}
	return g.Close()
}

// warnings are the standing risks of a rule's generators and assigners.
func warnings(g *rule.Live) (lines []string) {
	health := g.Health()
	for _, name := range slices.Sorted(maps.Keys(health)) {
		for _, warning := range health[name].Warnings {
			lines = append(lines, name+": "+warning)
		}
	}
	return lines
}
