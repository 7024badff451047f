package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/explain"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/spf13/cobra"
)

// planFlags replace the metadata that a program would query from its server.
type planFlags struct {
	sqlMode, columns string
	server           choice
}

// serverKinds are the values of --server, the same as of the DSN parameter shardkeyServer.
var serverKinds = []string{"auto", "mysql", "mariadb", "vitess", "other"}

func planCommand(p *program) *cobra.Command {
	f := &planFlags{server: choice{words: serverKinds, chosen: serverKinds[0]}}
	c := &cobra.Command{
		Use:   "plan [STATEMENT]",
		Short: "show how a statement is rewritten",
		Long: `Use plan to see how shardkey handles a statement under a rule. The statement is passed
through unchanged, or it gets keys, or it is refused. For a statement that gets keys, plan
prints the rewritten statement, in which each added ? is a generated key. For one that is
refused, it prints the reason and the place. If STATEMENT is -, or if there is none and
input is piped, it is read from standard input.

plan connects to no server. Flags replace the metadata that a program would query.

The exit status is 1 if the statement is refused, or if lint would report a problem.`,
		Example: `  shardkey plan 'INSERT INTO t_order (user_id) VALUES (?)'
  shardkey plan --rule rule.yaml < insert.sql`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return plan(p, c, f, p.arguments(args)) },
	}
	fs := c.Flags()
	ruleFlag(fs)
	fs.StringVar(&f.sqlMode, "sql-mode", "", "sql_mode of the session: `modes` separated by commas")
	fs.StringVar(&f.columns, "columns", "", "columns of the table in order: `names` separated by commas;\n"+
		"required for a statement without a column list")
	fs.Var(&f.server, "server", "`kind` of server: "+strings.Join(serverKinds, ", ")+"; auto assumes mysql")
	return c
}

type planned struct {
	Outcome lint.Outcome `json:"outcome"` // filled, passed or refused
	Reason  string       `json:"reason,omitempty"`
	// Inserts are the INSERTs and REPLACEs into sharded tables.
	Inserts []plannedInsert `json:"inserts,omitempty"`
	// Verified is the result of the second parser: agrees, or unknown.
	Verified string `json:"verified,omitempty"`
	// Sent is the rewritten statement. If KeysInText is set, the keys replace each added ?.
	Sent       string `json:"sent,omitempty"`
	KeysInText bool   `json:"keysInText,omitempty"`
	// Assumes lists assumptions about the server and the table.
	Assumes []string `json:"assumes,omitempty"`
	// DidYouMean is a table of the rule with a name similar to the statement's.
	DidYouMean string        `json:"didYouMean,omitempty"`
	Findings   []planFinding `json:"findings,omitempty"`
}

// planFinding is a finding of lint about a statement that is passed through unchanged.
type planFinding struct {
	Outcome lint.Outcome `json:"outcome"`
	Table   string       `json:"table"`
	Reason  string       `json:"reason"`
}

// plannedInsert is how one INSERT or REPLACE is handled.
type plannedInsert struct {
	Table     string   `json:"table"` // as the statement names it
	RuleTable string   `json:"ruleTable"`
	KeyColumn string   `json:"keyColumn"`
	Generator string   `json:"generator"`
	Keys      []string `json:"keys"` // sentences about the source of each row's key

	verb string
}

func plan(p *program, c *cobra.Command, f *planFlags, args []string) error {
	if len(args) == 0 {
		return usagef("no statement: pass it as an argument, in quotes, or on standard input")
	}
	statement := args[0]
	if statement == "-" {
		content, err := p.readAll()
		if err != nil {
			return err
		}
		statement = strings.TrimSuffix(string(content), "\n")
	}
	o, err := p.openOffline(c, f.server.chosen, f.sqlMode)
	if err != nil {
		return err
	}
	defer o.Close()
	v, err := f.plan(o, statement)
	switch {
	case errors.Is(err, driver.ErrNoConnection):
		return errors.New("the statement has no column list: pass the table's columns, such as --columns id,user_id")
	case err != nil && p.json():
		v = planned{Outcome: lint.Refused, Reason: refusal(err)}
		return p.answer(v, nil, true)
	case err != nil:
		return fmt.Errorf("refused: %s", refusal(err))
	}
	return p.answer(v, v.print, slices.ContainsFunc(v.Findings, func(found planFinding) bool {
		return lint.Finding{Outcome: found.Outcome}.IsProblem()
	}))
}

func refusal(err error) string {
	return strings.TrimPrefix(trimPrefix(err), trimPrefix(driver.ErrUnsupportedStatement)+": ")
}

// plan plans a statement. The error is the reason if it is refused.
func (pf *planFlags) plan(o *offline, statement string) (v planned, err error) {
	var columns []string
	if pf.columns != "" {
		for name := range strings.SplitSeq(pf.columns, ",") {
			columns = append(columns, strings.TrimSpace(name))
		}
	}
	plan, err := o.connector.Plan(statement, columns...)
	if err != nil {
		return v, err
	}
	all := append([]*driver.Plan{plan}, plan.Others...)
	l := o.linter()
	if slices.ContainsFunc(all, func(p *driver.Plan) bool { return p.Insert != nil }) {
		return explainPlans(l, all), nil
	}
	v = planned{Outcome: lint.Passed, Reason: "the statement is no INSERT"}
	for _, name := range l.Targets(statement) {
		v.Reason = "the rule doesn't contain the table"
		v.DidYouMean = cmp.Or(v.DidYouMean, nearestTable(o.rule, name))
	}
	v.Findings = findings(l, statement)
	return v, nil
}

// findings returns what lint finds in a statement that gets no keys.
func findings(l *lint.Linter, statement string) (found []planFinding) {
	for _, f := range l.Statement(statement) {
		found = append(found, planFinding{f.Outcome, f.Table, f.Reason})
	}
	return found
}

// explainPlans describes the plans of a string's statements, of which one inserts into a sharded table.
func explainPlans(l *lint.Linter, plans []*driver.Plan) (v planned) {
	var sent []string
	for n, plan := range plans {
		sent = append(sent, plan.Query())
		v.KeysInText = v.KeysInText || plan.KeysInText
		v.Assumes = append(v.Assumes, slices.DeleteFunc(plan.Assumes, func(fact string) bool { return slices.Contains(v.Assumes, fact) })...)
		in := plan.Insert
		if in == nil {
			v.Findings = append(v.Findings, findings(l, plan.Query())...)
			continue
		}
		if of := lint.OutcomeOf(in); v.Outcome != lint.Filled {
			v.Outcome = of // filled if one of several is
		}
		if v.Verified != "unknown" {
			v.Verified = plan.Verified
		}
		verb := "INSERT"
		if in.Replace {
			verb = "REPLACE"
		}
		if len(plans) > 1 {
			verb = fmt.Sprintf("statement %d: %s", n+1, verb)
		}
		v.Inserts = append(v.Inserts, plannedInsert{
			Table: sqltoken.QuoteTable(in.Schema, in.Name), RuleTable: plan.Detail.Table, KeyColumn: in.Table.Key,
			Generator: plan.Detail.Generator, Keys: append(explain.Rows(in, 0), plan.Detail.Notes...), verb: verb,
		})
	}
	v.Sent = strings.Join(sent, ";\n")
	return v
}

func (v planned) print(w io.Writer) {
	if len(v.Inserts) == 0 {
		fmt.Fprintf(w, "passed through unchanged: %s\n", v.Reason)
	}
	for _, in := range v.Inserts {
		fmt.Fprintf(w, "%s into %s: table %s of the rule, key column %s, generator %s\n",
			in.verb, sqltoken.Printable(in.Table), in.RuleTable, in.KeyColumn, in.Generator)
		for _, line := range in.Keys {
			fmt.Fprintln(w, " ", visible(line))
		}
	}
	switch v.Verified {
	case "unknown":
		fmt.Fprintln(w, "verification: TiDB's parser can't parse the statement")
	case "agrees":
		fmt.Fprintln(w, "verification: TiDB's parser agrees")
	}
	switch {
	case v.KeysInText:
		fmt.Fprintf(w, "sent, with a key in place of each added ?, because there are no arguments:\n%s\n", v.Sent)
	case v.Sent != "":
		fmt.Fprintf(w, "sent:\n%s\n", v.Sent)
	}
	if len(v.Assumes) > 0 {
		fmt.Fprintf(w, "assumed: %s\n", visible(strings.Join(v.Assumes, "; ")))
	}
	if v.DidYouMean != "" {
		fmt.Fprintf(w, "did you mean %s?\n", v.DidYouMean)
	}
	for _, f := range v.Findings {
		fmt.Fprintf(w, "%s: %s: %s\n", f.Outcome, sqltoken.Printable(f.Table), sqltoken.Printable(f.Reason))
	}
}
