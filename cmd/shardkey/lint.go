package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/spf13/cobra"
)

type lintFlags struct {
	sqlMode         string
	problems, tests bool
}

func lintCommand(p *program) *cobra.Command {
	f := new(lintFlags)
	c := &cobra.Command{
		Use:   "lint [FILE.sql|DIRECTORY|PACKAGE...]",
		Short: "check SQL files and Go packages for INSERTs that would not get a key",
		Long: `Use lint in a build, to find statements on sharded tables that would not get a key. It
checks .sql files, all .sql files of a directory, and Go packages, which are named as for
the go command. If an argument is -, or if there is none and input is piped, it reads SQL
from standard input.

In Go packages it checks the strings that reach Exec, Query, Prepare and similar methods
of database/sql, sqlx, GORM, xorm and bun, and the computed tables that query builders
insert into. It compiles nothing and connects to no server. It reads a table's columns from
CREATE TABLE in the files.

It prints each statement with its place, outcome and reason. The outcomes are
  filled    keys are generated, or arguments decide whether they are
  passed    the statement has explicit keys
  refused   shardkey doesn't send it, or the server is certain to refuse it
  unfilled  the server stores rows without a generated key
  changed   an UPDATE changes a key
  foreign   the statement is another database's, such as SQLite's, and MySQL refuses it
  unknown   the statement is computed at run time, or reaches no function that lint knows

At the end it reports on standard error what it has read. It counts, but doesn't check,
calls that store models of GORM or xorm, and query builders with a constant table.

The exit status is 1 if a statement is refused, unfilled or changed, or if its table is
computed at run time. It is 2 if a file or package can't be read, or a package has errors.`,
		Example: `  shardkey lint --problems ./... migrations/
  shardkey lint --rule rule.yaml < schema.sql`,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE:              func(c *cobra.Command, args []string) error { return p.lint(c, f, p.arguments(args)) },
	}
	fs := c.Flags()
	ruleFlag(fs)
	fs.StringVar(&f.sqlMode, "sql-mode", "", "sql_mode of the sessions: `modes` separated by commas")
	fs.BoolVar(&f.problems, "problems", false, "print only statements that make the exit status 1")
	fs.BoolVar(&f.tests, "tests", false, "also check the tests of Go packages")
	return c
}

type lintFindings struct {
	Findings []lint.Finding `json:"findings"`
	Summary  lint.Summary   `json:"summary"`
}

func (p *program) lint(c *cobra.Command, f *lintFlags, args []string) error {
	if len(args) == 0 {
		return usagef("expected .sql files, directories or Go packages as arguments, found none")
	}
	o, err := p.openOffline(c, "mariadb", f.sqlMode) // the statements may be for any server, and MariaDB has all forms
	if err != nil {
		return err
	}
	defer o.Close()
	l := o.linter()
	show := &progress{warn: p.warn}
	l.Progress = show.step
	if slices.Contains(args, "-") {
		content, err := p.readAll()
		if err != nil {
			return err
		}
		l.Text(stdinName, string(content))
		args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "-" })
	}
	err = lintAll(l, args, f.tests)
	if show.stop(); err != nil {
		return usagef("%v", err)
	}
	v := lintFindings{Findings: []lint.Finding{}, Summary: l.Summary()}
	for _, found := range l.Findings() {
		if !f.problems || found.IsProblem() {
			v.Findings = append(v.Findings, found)
		}
	}
	err = p.answer(v, func(w io.Writer) {
		for _, found := range v.Findings {
			fmt.Fprintln(w, found)
		}
	}, slices.ContainsFunc(v.Findings, lint.Finding.IsProblem))
	p.warn(v.Summary.String())
	if w := v.Summary.Warnings; len(w) > 0 {
		return usagef("%s", strings.Join(w, "\n"))
	}
	return err
}

// lintAll checks the files, directories and packages in args.
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
				if !filepath.IsAbs(arg) && !strings.HasPrefix(arg, ".") {
					arg = "./" + arg // as the go command wants it
				}
				patterns = append(patterns, arg)
			} else if len(found) == 0 {
				return fmt.Errorf("%s has no .sql files and no Go package", arg)
			}
		default:
			patterns = append(patterns, arg)
		}
	}
	if err := l.Files(files...); err != nil || len(patterns) == 0 {
		return err
	}
	return l.Packages(patterns, tests)
}

// progress prints the steps of a command that takes longer than two seconds.
type progress struct {
	warn func(string)

	mu    sync.Mutex
	timer *time.Timer
	slow  bool
	last  string
}

func (pr *progress) step(text string) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	switch pr.last = text; {
	case pr.slow:
		pr.warn(text)
	case pr.timer == nil:
		pr.timer = time.AfterFunc(2*time.Second, pr.begin)
	}
}

// begin prints the step that is running after two seconds.
func (pr *progress) begin() {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.last != "" {
		pr.slow = true
		pr.warn(pr.last)
	}
}

// stop ends the last step. Nothing is printed after it.
func (pr *progress) stop() {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.last = ""; pr.timer != nil {
		pr.timer.Stop()
	}
}
