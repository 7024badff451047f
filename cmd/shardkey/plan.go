package main

import (
	"cmp"
	"errors"
	"strings"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rewrite/tidb"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/cobra"
)

// planFlags say what a program would know of its server and of the table.
type planFlags struct {
	rule, sqlMode, columns string
	server                 choice

	// For a table without rule: a ruled one with a similar name, and the
	// error when it looks like a ruled one's actual table.
	near     string
	unlisted error
}

// serverKinds are the values of -server, as those of the parameter shardkeyServer.
var serverKinds = []string{"mysql", "mariadb", "vitess", "tidb", "other"}

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
	fs.Var(&f.server, "server", "the `kind` of server: mysql, mariadb, vitess, tidb or other")
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
	mode, err := parseMode(f.sqlMode)
	if err != nil {
		return err
	}
	text, err := p.statement(args[0])
	if err != nil {
		return err
	}
	r, g, err := p.openRule(f.rule, offlineDSN)
	if err != nil {
		return err
	}
	defer g.Close() // nothing was used
	v, err := f.plan(r, g, text, mode)
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

// plan finds what becomes of a statement. The error is a *refusal for one that is
// refused.
func (f *planFlags) plan(r *rule.Rule, g *rule.Live, text string, mode rewrite.Mode) (*planned, error) {
	tables := map[*rewrite.Table]*rule.Table{}
	opts := f.options(r, g, mode, tables)
	understood, err := rewrite.Parse(text, opts)
	switch {
	case errors.Is(err, errNoColumns):
		return nil, err
	case err != nil:
		return nil, refused(err)
	case f.unlisted != nil:
		return nil, refused(f.unlisted)
	}
	switch f.server.String() { // as the driver does
	case "mysql", "mariadb":
		understood.Report()
	case "vitess":
		understood.ReportUpserts()
	}
	second, err := tidb.Check(text, opts, understood)
	if err != nil {
		return nil, refused(err)
	}
	for i := range understood.Inserts {
		in := &understood.Inserts[i]
		if err := cmp.Or(misplaced(understood, in, tables[in.Table]), withoutGene(understood, in, tables[in.Table])); err != nil {
			return nil, refused(err)
		}
	}
	v := explainPlan(text, understood, tables, second)
	if len(understood.Inserts) == 0 {
		v.DidYouMean = f.near
		for _, found := range newLinter(g, opts.Mode).Statement(text) {
			v.Remarks = append(v.Remarks, remark{found.Outcome, found.Table, found.Reason})
			v.problem = v.problem || found.IsProblem()
		}
	}
	return v, nil
}

// refusal says that a statement is not sent.
type refusal struct{ reason string }

func (e *refusal) Error() string { return "refused: " + e.reason }

func refused(err error) error {
	return &refusal{strings.TrimPrefix(plain(err), plain(rewrite.ErrUnsupportedStatement)+": ")}
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

// options tell the parser what a program would know, and note in tables which
// table of the rule is meant.
func (f *planFlags) options(r *rule.Rule, g *rule.Live, mode rewrite.Mode, tables map[*rewrite.Table]*rule.Table) rewrite.Options {
	var columns []string
	if f.columns != "" {
		for name := range strings.SplitSeq(f.columns, ",") {
			columns = append(columns, strings.TrimSpace(name))
		}
	}
	dialect := rewrite.DialectMySQL
	switch f.server.String() {
	case "mariadb":
		dialect = rewrite.DialectMariaDB
	case "other":
		dialect = rewrite.DialectUnknown
	}
	return rewrite.Options{
		Mode:    mode,
		Dialect: func() (rewrite.Dialect, error) { return dialect, nil },
		Columns: func(*rewrite.Insert) ([]string, error) { return nil, errNoColumns },
		Tables: func(schema, name string) *rewrite.Table {
			t := g.Lookup(schema, name)
			if t == nil {
				f.near = nearestTable(r, name)
				f.unlisted = cmp.Or(f.unlisted, unlisted(g, schema, name))
			}
			parsed := ruledTable(g, t)
			if parsed != nil {
				parsed.Columns = columns
				tables[parsed] = t
			}
			return parsed
		},
	}
}

// ruledTable is a table of the rule as a statement is read for it; nil for nil.
func ruledTable(g *rule.Live, t *rule.Table) *rewrite.Table {
	if t == nil {
		return nil
	}
	parsed := &rewrite.Table{KeyColumn: t.Column, Kind: kindOf(g.Generator(t.GeneratorName)), KeepExplicit: t.ExplicitKeys == "keep"}
	parsed.Sharding = noted(t)
	return parsed
}

// kindOf is the kind of a generator's keys. The types that this program knows
// make int64 or text.
func kindOf(g spi.KeyGenerator) rewrite.Kind {
	if _, ok := g.(spi.Int64KeyGenerator); ok {
		return rewrite.KindInteger
	}
	return rewrite.KindText
}
