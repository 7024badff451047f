package main

import (
	"cmp"
	"errors"
	"strings"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/shardkey/shardkey/driver"
	"github.com/spf13/cobra"
)

// planFlags say what a program would know of its server and of the table.
type planFlags struct {
	rule, sqlMode, columns string
	server                 choice
}

// serverKinds are the values of -server, as those of the parameter shardkeyServer.
var serverKinds = []string{"auto", "mysql", "mariadb", "vitess", "tidb", "other"}

func planCommand(p *program) *cobra.Command {
	f := new(planFlags)
	c := &cobra.Command{
		Use:   "plan STATEMENT",
		Short: "show what becomes of a statement",
		Long: "Shows what becomes of a statement when a rule is used: it passes as it is, it is\n" +
			"filled (with the text that is sent, where each ? that was added is a generated key),\n" +
			"or it is refused, why and where. STATEMENT - is read from standard input, and so is a\n" +
			"pipe where none is given. No server is asked: what a program would read from it is said by flags.",
		RunE: func(_ *cobra.Command, args []string) error { return plan(p, f, p.arguments(args)) },
		Example: "  shardkey plan -rule rule.yaml 'INSERT INTO t_order (user_id) VALUES (?)'\n" +
			"  shardkey plan -rule rule.yaml < insert.sql",
		ValidArgsFunction: oneOf(),
	}
	fs := c.Flags()
	fs.StringVar(&f.rule, "rule", "", "the rule `file` (required)")
	fs.StringVar(&f.sqlMode, "sql-mode", "", "the session's sql_mode, as `words` with commas")
	fs.StringVar(&f.columns, "columns", "", "the table's columns in order, as `names` with commas; a statement\nwithout a column list needs them")
	f.server.words = serverKinds
	fs.Var(&f.server, "server", "the `kind` of server: auto, mysql, mariadb, vitess, tidb or other; auto is\nmysql here")
	p.outputFlag(fs)
	return c
}

func plan(p *program, f *planFlags, args []string) error {
	switch {
	case f.rule == "":
		return usagef("give the rule file with -rule")
	case len(args) != 1:
		return usagef("give one statement, in quotes")
	}
	text, err := p.statement(args[0])
	if err != nil {
		return err
	}
	o, err := p.openOffline(f.rule, f.server.String(), f.sqlMode)
	if err != nil {
		return err
	}
	defer o.Close()
	v, err := f.plan(o, text)
	var no *refusal
	switch {
	case errors.As(err, &no) && p.json:
		if err := p.emit(planned{Outcome: lint.Refused, Reason: no.reason}); err != nil {
			return err
		}
		return errReported
	case err != nil:
		return err
	case p.json:
		err = p.emit(v)
	default:
		v.print(p)
	}
	if err == nil && v.problem {
		err = errReported
	}
	return err
}

// plan returns how a statement is handled. The error is a *refusal for one that is
// refused.
func (f *planFlags) plan(o *offline, text string) (*planned, error) {
	var columns []string
	if f.columns != "" {
		for name := range strings.SplitSeq(f.columns, ",") {
			columns = append(columns, strings.TrimSpace(name))
		}
	}
	plan, err := o.connector.Plan(text, columns...)
	switch {
	case errors.Is(err, driver.ErrNoConnection):
		return nil, errNoColumns
	case err != nil:
		return nil, refused(err)
	case len(plan.Inserts) > 0:
		return explainPlan(plan), nil
	}
	l := o.linter()
	v := &planned{Outcome: lint.Passed, Reason: "it inserts nothing"}
	for _, name := range l.Targets(text) {
		v.Reason = "no table that it inserts into has a rule"
		v.DidYouMean = cmp.Or(v.DidYouMean, nearestTable(o.rule, name))
	}
	for _, found := range l.Statement(text) {
		v.Remarks = append(v.Remarks, remark{found.Outcome, found.Table, found.Reason})
		v.problem = v.problem || found.IsProblem()
	}
	return v, nil
}

// refusal says that a statement is not sent.
type refusal struct{ reason string }

func (e *refusal) Error() string { return "refused: " + e.reason }

func refused(err error) error {
	return &refusal{strings.TrimPrefix(plain(err), plain(driver.ErrUnsupportedStatement)+": ")}
}

// statement is the text of an argument, or all of standard input.
func (p *program) statement(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	text, err := p.readText()
	return strings.TrimSuffix(string(text), "\n"), err
}

var errNoColumns = errors.New("the statement has no column list, so that the table's columns are needed: give them with -columns, as -columns id,user_id")
