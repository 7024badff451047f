package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/shardkey/shardkey/rule"
	"github.com/spf13/cobra"
)

func checkCommand(p *program) *cobra.Command {
	strict := false
	c := &cobra.Command{
		Use:   "check [RULE...]",
		Short: "Check rule files",
		Long: `Checks rule files as a program that opens them does, and prints the generators, worker-id
assigners, and tables with their key columns, actual tables and sharding. Errors are
reported with file, line and column; settings that are risky or ignored are warnings; a
note is about sharding that isn't understood.

RULE is a file, or - for standard input (default $` + ruleVariable + `, then ./` + ruleDefault + `). No server is
asked, and no secret is printed. Environment variables that the rule uses must be set.`,
		Example: `  shardkey check --strict
  git show HEAD:rule.yaml | shardkey check -o json -`,
		ValidArgsFunction: ruleFiles,
		RunE:              func(_ *cobra.Command, args []string) error { return check(p, args, strict) },
	}
	c.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	p.outputFlag(c.Flags())
	return c
}

// problem is an error, a warning or a note with its place.
type problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"` // from 1
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// problemOf splits an error of a rule into place and message.
func problemOf(err error) *problem {
	var e *rule.Error
	if !errors.As(err, &e) || e.Line == 0 {
		return &problem{Message: plain(err)}
	}
	place := fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	return &problem{e.File, e.Line, e.Column, strings.TrimPrefix(strings.TrimPrefix(plain(e), place), ": ")}
}

// print prints a problem of a kind in the form in which editors find its place.
func (e *problem) print(w io.Writer, kind string) {
	place := "  "
	if e.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d: ", e.File, e.Line, e.Column)
	}
	fmt.Fprintf(w, "%s%s: %s\n", place, kind, e.Message)
}

// checkedRules is the answer of check.
type checkedRules struct {
	Rules []*checkedRule `json:"rules"`
}

type checkedRule struct {
	File       string         `json:"file"`
	OK         bool           `json:"ok"` // no error, and with --strict no warning
	Generators []made         `json:"generators,omitempty"`
	Assigners  []made         `json:"workerIdAssigners,omitempty"`
	Tables     []checkedTable `json:"tables,omitempty"`
	Warnings   []*problem     `json:"warnings,omitempty"`
	Notes      []*problem     `json:"notes,omitempty"`
	Error      *problem       `json:"error,omitempty"`

	description string
}

// made is a generator or a worker-ID assigner.
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
		file, err := defaultRuleFile()
		if err != nil {
			return err
		}
		files = []string{file}
	}
	var all checkedRules
	failed := false
	for _, file := range files {
		v, err := p.check(file)
		if usage := (*usageError)(nil); errors.As(err, &usage) {
			return err
		}
		if err != nil {
			v.Error = problemOf(err)
		}
		v.OK = err == nil && !(strict && len(v.Warnings) > 0)
		failed = failed || !v.OK
		all.Rules = append(all.Rules, v)
		switch {
		case p.json():
		case err != nil:
			// Without a prefix, so that editors find file:line:column.
			_ = p.out.Flush() // run reports the error
			fmt.Fprintln(p.stderr, plain(err))
		default:
			v.print(p.out)
		}
	}
	return p.answer(all, func(io.Writer) {}, failed)
}

// check reads a rule file; "-" is standard input.
func (p *program) check(file string) (*checkedRule, error) {
	v := &checkedRule{File: file}
	if file == "-" {
		v.File = stdinName
	}
	r, live, err := p.openRule(file, offlineDSN)
	if err != nil {
		return v, err
	}
	v.description = withoutOffline(live.Describe())
	for _, s := range live.Status() {
		list := &v.Generators
		if s.Assigner {
			list = &v.Assigners
		}
		*list = append(*list, made{s.Name, withoutOffline(s.Description)})
		for _, risk := range s.Health.Warnings {
			risk = withoutOffline(strings.TrimPrefix(risk, "shardkey: "))
			v.Warnings = append(v.Warnings, &problem{Message: s.Name + ": " + risk})
		}
	}
	for _, t := range r.Tables() {
		v.table(t)
	}
	for _, w := range r.Warnings() {
		v.Warnings = append(v.Warnings, problemOf(w))
	}
	return v, live.Close()
}

func withoutOffline(text string) string {
	return strings.ReplaceAll(text, offlineName, "the application's database")
}

// table adds a table, with its sharding or a note that this isn't understood.
func (v *checkedRule) table(t rule.Table) {
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
	}
	v.Tables = append(v.Tables, c)
}

func (v *checkedRule) print(w io.Writer) {
	fmt.Fprintln(w, v.description)
	for _, t := range v.Tables {
		if t.Sharding != "" {
			fmt.Fprintf(w, "  sharding of %s: %s\n", t.Name, t.Sharding)
		}
	}
	for _, note := range v.Notes {
		note.print(w, "note")
	}
	for _, warning := range v.Warnings {
		warning.print(w, "warning")
	}
}
