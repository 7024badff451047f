package main

import (
	"errors"
	"fmt"
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
			"input, and so is a pipe where no RULE.yaml is given.",
		Example: "  shardkey check -strict rule.yaml\n" +
			"  git show HEAD:rule.yaml | shardkey check -o json",
		ValidArgsFunction: ruleFiles,
	}
	strict := c.Flags().Bool("strict", false, "take warnings for errors: exit status 1")
	p.outputFlag(c.Flags())
	c.RunE = func(_ *cobra.Command, args []string) error { return check(p, p.arguments(args), *strict) }
	return c
}

// problem is an error, a warning or a note with its place.
type problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"` // from 1
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// problemOf takes an error of a rule apart.
func problemOf(err error) *problem {
	var e *rule.Error
	if !errors.As(err, &e) || e.Line == 0 {
		return &problem{Message: plain(err)}
	}
	place := fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	return &problem{e.File, e.Line, e.Column, strings.TrimPrefix(strings.TrimPrefix(plain(e), place), ": ")}
}

// print prints a problem as editors find its place; word says what it is.
func (e *problem) print(p *program, word string) {
	if word != "" {
		word = p.colours.out(yellow, word) + ": "
	}
	if e.Line > 0 {
		fmt.Fprintf(p.out, "%s:%d:%d: ", e.File, e.Line, e.Column)
	}
	fmt.Fprintf(p.out, "%s%s\n", word, e.Message)
}

// checkedRule is what check prints of a rule.
type checkedRule struct {
	File       string         `json:"file"`
	OK         bool           `json:"ok"` // without an error, and with -strict without a warning
	Generators []made         `json:"generators,omitempty"`
	Assigners  []made         `json:"workerIdAssigners,omitempty"`
	Tables     []checkedTable `json:"tables,omitempty"`
	Warnings   []*problem     `json:"warnings,omitempty"`
	Notes      []*problem     `json:"notes,omitempty"`
	Error      *problem       `json:"error,omitempty"`

	description string
	sharding    []string
	risks       []string
}

// made is a generator or an assigner.
type made struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type checkedTable struct {
	Name         string   `json:"name"`
	Column       string   `json:"column"`
	Generator    string   `json:"generator"`
	Type         string   `json:"type"`
	ActualTables []string `json:"actualTables,omitempty"` // the first few
	ActualCount  int      `json:"actualCount"`
	Patterns     []string `json:"patterns,omitempty"`
	Sharding     string   `json:"sharding,omitempty"`
}

func check(p *program, files []string, strict bool) error {
	if len(files) == 0 {
		return usagef("give the rule files to check")
	}
	failed := false
	for _, file := range files {
		v, err := checkFile(p, file)
		if usage := (*usageError)(nil); errors.As(err, &usage) {
			return err
		}
		if err != nil {
			v.Error = problemOf(err)
		}
		v.OK = err == nil && !(strict && len(v.Warnings) > 0)
		failed = failed || !v.OK
		switch {
		case p.json:
			if err := p.emit(v); err != nil {
				return err
			}
		case err != nil:
			// Without a prefix, so that editors find file:line:column.
			_ = p.out.Flush() // run sees it again
			fmt.Fprintln(p.stderr, plain(err))
		default:
			v.print(p)
		}
	}
	if failed {
		return errReported
	}
	return nil
}

// checkFile reads what a rule means. file is "-" for standard input.
func checkFile(p *program, file string) (*checkedRule, error) {
	v := &checkedRule{File: file}
	if file == "-" {
		v.File = stdinName
	}
	r, g, err := p.openRule(file, offlineDSN)
	if err != nil {
		return v, err
	}
	v.description = strings.ReplaceAll(g.Describe(), offlineName, "the application's database")
	v.readMade()
	for _, t := range r.Tables() {
		v.readTable(t)
	}
	for _, risk := range warnings(g) {
		v.risks = append(v.risks, strings.ReplaceAll(risk, offlineName, "the application's database"))
	}
	for _, risk := range v.risks {
		v.Warnings = append(v.Warnings, &problem{Message: risk})
	}
	for _, w := range r.Warnings() {
		v.Warnings = append(v.Warnings, problemOf(w))
	}
	return v, g.Close()
}

// readMade takes the generators and assigners from the description, which has a line
// for each.
func (v *checkedRule) readMade() {
	for line := range strings.Lines(v.description) {
		line = strings.TrimSpace(line)
		for start, to := range map[string]*[]made{"key generator ": &v.Generators, "worker-id assigner ": &v.Assigners} {
			if rest, ok := strings.CutPrefix(line, start); ok {
				name, description, _ := strings.Cut(rest, ": ")
				*to = append(*to, made{name, description})
			}
		}
	}
}

// readTable reads how a table is keyed and sharded, or that this is not
// understood.
func (v *checkedRule) readTable(t rule.Table) {
	c := checkedTable{
		Name: t.Logical, Column: t.Column, Generator: t.GeneratorName, Type: t.GeneratorType,
		ActualTables: t.Actual, ActualCount: t.ActualCount, Patterns: t.Patterns,
	}
	var e *rule.Error
	switch {
	case t.Sharding == nil:
	case errors.As(t.Sharding.Err, &e):
		v.Notes = append(v.Notes, problemOf(e))
	default:
		c.Sharding = t.Sharding.String()
		v.sharding = append(v.sharding, fmt.Sprintf("sharding of %s: %s", t.Logical, c.Sharding))
	}
	v.Tables = append(v.Tables, c)
}

func (v *checkedRule) print(p *program) {
	fmt.Fprintln(p.out, v.description)
	for _, line := range v.sharding {
		fmt.Fprintln(p.out, " ", line)
	}
	for _, note := range v.Notes {
		note.print(p, "note")
	}
	for i, warning := range v.Warnings {
		if i < len(v.risks) {
			fmt.Fprint(p.out, "  ")
		}
		warning.print(p, "warning")
	}
}

// warnings are the standing risks of a rule's generators and assigners.
func warnings(g *rule.Live) (lines []string) {
	for _, status := range g.Status() {
		for _, warning := range status.Health.Warnings {
			lines = append(lines, status.Name+": "+strings.TrimPrefix(warning, "shardkey: "))
		}
	}
	return lines
}
