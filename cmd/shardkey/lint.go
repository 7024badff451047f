package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/spf13/cobra"
)

type lintFlags struct {
	rule, sqlMode   string
	problems, tests bool
}

func lintCommand(p *program) *cobra.Command {
	f := new(lintFlags)
	c := &cobra.Command{
		Use:   "lint FILE.sql|DIRECTORY|PACKAGE …",
		Short: "say what becomes of the statements of a program",
		Long: "Says what becomes of each statement on a ruled table, before it runs: filled, passed,\n" +
			"refused, unfilled (the server stores rows without a generated key: INSERTs in stored\n" +
			"programs, PREPARE, CREATE TABLE … SELECT), changed (an UPDATE of a key) or unknown\n" +
			"(put together when the program runs, or its table's name is). It reads .sql files, also\n" +
			"those of sqlc and with DELIMITER lines, all .sql files of a directory, - for such a text\n" +
			"on standard input (which a pipe is where nothing is named), and Go packages as the go\n" +
			"command names them: the strings that reach Exec, Query, Prepare and the like of\n" +
			"database/sql, sqlx and GORM. A statement that the two readers understand differently is\n" +
			"refused. No server is asked; columns are those of the CREATE TABLE statements that are\n" +
			"read. The exit status is 1 when a statement is refused, unfilled or changed.",
		Example: "  shardkey lint -rule rule.yaml -problems ./... migrations/\n" +
			"  shardkey lint -rule rule.yaml < schema.sql",
		RunE: func(_ *cobra.Command, args []string) error { return p.lint(f, p.arguments(args)) },
	}
	fs := c.Flags()
	fs.StringVar(&f.rule, "rule", "", "the rule `file` (required)")
	fs.StringVar(&f.sqlMode, "sql-mode", "", "the sessions' sql_mode, as `words` with commas")
	p.outputFlag(fs)
	fs.BoolVar(&p.json, "json", false, "the same as -o json")
	_ = fs.MarkHidden("json") // it is there
	fs.BoolVar(&f.problems, "problems", false, "print only what is refused, unfilled or changed")
	fs.BoolVar(&f.tests, "tests", false, "read the tests of Go packages as well")
	return c
}

func (p *program) lint(f *lintFlags, args []string) error {
	switch {
	case f.rule == "":
		return usagef("give the rule file with -rule")
	case len(args) == 0:
		return usagef("give .sql files, directories or Go packages")
	}
	o, err := p.openOffline(f.rule, "other", f.sqlMode) // a statement may be for any server
	if err != nil {
		return err
	}
	defer o.Close()
	l := o.linter()
	if slices.Contains(args, "-") {
		text, err := p.readText()
		if err != nil {
			return err
		}
		l.Text(stdinName, string(text))
		args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "-" })
	}
	if err := lintAll(l, args, f.tests); err != nil {
		return usagef("%v", err)
	}
	return p.printFindings(l.Findings(), f)
}

// lintAll looks at all that the arguments name: schemas first, for their columns.
func lintAll(l *lint.Linter, args []string, tests bool) error {
	var files, patterns []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case strings.HasSuffix(arg, ".sql"):
			files = append(files, arg)
		case err == nil && info.IsDir():
			found, err := lint.SQLFiles(arg)
			if err != nil {
				return err
			}
			files = append(files, found...)
			if source, _ := filepath.Glob(filepath.Join(arg, "*.go")); len(source) > 0 {
				patterns = append(patterns, asPattern(arg))
			} else if len(found) == 0 {
				return fmt.Errorf("%s has no .sql files and no Go package", arg)
			}
		default:
			patterns = append(patterns, arg)
		}
	}
	for _, file := range files {
		if err := l.Columns(file); err != nil {
			return err
		}
	}
	for _, file := range files {
		if err := l.File(file); err != nil {
			return err
		}
	}
	if len(patterns) == 0 {
		return nil
	}
	return l.Packages(patterns, tests)
}

// asPattern is a directory as the go command takes it for a package's.
func asPattern(dir string) string {
	if filepath.IsAbs(dir) || strings.HasPrefix(dir, ".") {
		return dir
	}
	return "./" + dir
}

func (p *program) printFindings(found []lint.Finding, f *lintFlags) error {
	problems := 0
	for _, finding := range found {
		if finding.IsProblem() {
			problems++
		} else if f.problems {
			continue
		}
		if !p.json {
			finding.Outcome = lint.Outcome(p.outcome(finding.Outcome))
			fmt.Fprintln(p.out, finding)
		} else if err := p.emit(finding); err != nil {
			return err
		}
	}
	if problems > 0 {
		return errReported
	}
	return nil
}
