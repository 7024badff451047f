package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rule"
	"github.com/spf13/cobra"
)

func checkCommand(p *program) *cobra.Command {
	strict := false
	c := &cobra.Command{
		Use:   "check [RULE...]",
		Short: "check rule files",
		Long: `Use check in a build. It checks rule files as a program does when it opens them, and
prints their generators, worker-ID assigners and tables, with key columns, actual tables
and sharding. Risky or ignored settings are warnings. A note is about sharding that
shardkey doesn't understand. It connects to no server and prints no secrets.

RULE is a file, or - for standard input (default $` + ruleVariable + `, then ./` + ruleDefault + `).
Environment variables that the rule uses must be set.

The exit status is 1 if there is an error, or with --strict a warning.`,
		Example: `  shardkey check --strict
  git show HEAD:rule.yaml | shardkey check -o json -`,
		ValidArgsFunction: ruleFiles,
		RunE:              func(_ *cobra.Command, args []string) error { return check(p, args, strict) },
	}
	c.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	return c
}

// problem is an error, a warning or a note, with its place in a rule file.
type problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"` // from 1, or 0 if the problem has no place
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// problemOf splits an error of package rule into place and message.
func problemOf(err error) *problem {
	var e *rule.Error
	if !errors.As(err, &e) || e.Line == 0 {
		return &problem{Message: trimPrefix(err)}
	}
	place := fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	return &problem{e.File, e.Line, e.Column, strings.TrimPrefix(strings.TrimPrefix(trimPrefix(e), place), ": ")}
}

// print prints a problem of the rule in file as "place: kind: message", which editors
// understand.
func (e *problem) print(w io.Writer, file, kind string) {
	place := file
	if e.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	}
	fmt.Fprintf(w, "%s: %s: %s\n", sqltoken.Printable(place), kind, strings.TrimPrefix(e.Message, file+": "))
}

type checkedRules struct {
	Rules []*checkedRule `json:"rules"`
}

type checkedRule struct {
	File       string         `json:"file"`
	OK         bool           `json:"ok"`             // there is no error, and with --strict no warning
	Hash       string         `json:"hash,omitempty"` // the same for rules with the same meaning
	Generators []component    `json:"generators,omitempty"`
	Assigners  []component    `json:"workerIdAssigners,omitempty"`
	Tables     []checkedTable `json:"tables,omitempty"`
	Warnings   []*problem     `json:"warnings,omitempty"`
	Notes      []*problem     `json:"notes,omitempty"`
	Error      *problem       `json:"error,omitempty"`

	description string
}

// component is a generator or a worker-ID assigner.
type component struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type checkedTable struct {
	Name         string   `json:"name"`
	Column       string   `json:"column"`
	Generator    string   `json:"generator"`
	Type         string   `json:"type"`
	ActualTables []string `json:"actualTables,omitempty"` // the first ones
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
	var nErrors, nWarnings, nNotes int
	failed := false
	for _, file := range files {
		v, err := p.check(file)
		if usage := (*usageError)(nil); errors.As(err, &usage) {
			return err
		}
		if err != nil {
			v.Error = problemOf(err)
			nErrors++
		}
		nWarnings, nNotes = nWarnings+len(v.Warnings), nNotes+len(v.Notes)
		v.OK = err == nil && !(strict && len(v.Warnings) > 0)
		failed = failed || !v.OK
		all.Rules = append(all.Rules, v)
		switch {
		case p.json():
		case err != nil:
			_ = p.out.Flush() // run reports the error
			v.Error.print(p.stderr, v.File, "error")
		default:
			v.print(p.out)
		}
	}
	return p.answer(all, func(w io.Writer) {
		if nErrors == len(all.Rules) {
			return // there is nothing but errors
		}
		fmt.Fprintf(w, "%s, %s", lint.Counted(nErrors, "error"), lint.Counted(nWarnings, "warning"))
		if nNotes > 0 {
			fmt.Fprintf(w, ", %s", lint.Counted(nNotes, "note"))
		}
		fmt.Fprintln(w)
	}, failed)
}

// check checks a rule file. "-" is standard input.
func (p *program) check(file string) (*checkedRule, error) {
	v := &checkedRule{File: file}
	if file == "-" {
		v.File = stdinName
	}
	r, live, err := p.openRule(file, offlineDSN)
	if err != nil {
		return v, err
	}
	v.Hash, v.description = r.Hash(), withoutOffline(live.Describe())
	for _, s := range live.Status() {
		list := &v.Generators
		if s.Assigner {
			list = &v.Assigners
		}
		*list = append(*list, component{s.Name, withoutOffline(s.Description)})
	}
	warned := map[*rule.Error]bool{}
	for _, w := range slices.Concat(live.Warnings(), r.Warnings()) {
		found := problemOf(w)
		found.Message = withoutOffline(found.Message)
		v.Warnings, warned[w] = append(v.Warnings, found), true
	}
	for _, t := range r.Tables() {
		v.table(t, warned)
	}
	return v, live.Close()
}

func withoutOffline(text string) string {
	return strings.ReplaceAll(text, offlineName, "(the application's database)")
}

// table adds a table with its sharding. If shardkey doesn't understand that, and it isn't a
// warning, table adds a note.
func (cr *checkedRule) table(t rule.Table, warned map[*rule.Error]bool) {
	c := checkedTable{
		Name: t.Logical, Column: t.Column, Generator: t.GeneratorName, Type: t.GeneratorType,
		ActualTables: t.Actual, ActualCount: t.ActualCount, Patterns: t.Patterns,
	}
	var e *rule.Error
	switch {
	case t.Sharding == nil:
	case errors.As(t.Sharding.Err, &e):
		if !warned[e] {
			cr.Notes = append(cr.Notes, problemOf(e))
		}
	default:
		c.Sharding = t.Sharding.String()
	}
	cr.Tables = append(cr.Tables, c)
}

func (cr *checkedRule) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n  hash %s\n", cr.description, cr.Hash)
	for _, t := range cr.Tables {
		if t.Sharding != "" {
			fmt.Fprintf(w, "  sharding of %s: %s\n", t.Name, t.Sharding)
		}
	}
	for _, note := range cr.Notes {
		note.print(w, cr.File, "note")
	}
	for _, warning := range cr.Warnings {
		warning.print(w, cr.File, "warning")
	}
}
