package tidb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// Outcome is the result of a check.
type Outcome uint8

const (
	// OutcomeUnknown: TiDB's parser doesn't support the statement, or parses it differently from
	// the servers.
	OutcomeUnknown Outcome = iota
	// OutcomeAgreed: both parsers agree.
	OutcomeAgreed
	// OutcomeDisagreed: the parsers disagree; see the error.
	OutcomeDisagreed
)

// Check compares a statement's plan with the result of TiDB's parser. It checks the plan against
// the statement, and against the statement that will be sent. The latter has placeholders for the
// keys if the statement has placeholders, and literals otherwise. opts are the options of the plan.
// The error is a [*DisagreementError] if the outcome is [OutcomeDisagreed], otherwise nil.
//
// Check is safe for concurrent use.
func Check(text string, opts rewrite.Options, p *rewrite.Plan) (Outcome, error) {
	if p.NumArgs == 0 && p.NumKeys > 0 {
		return CheckKeys(text, opts, p, probes(p))
	}
	return CheckKeys(text, opts, p, nil)
}

// CheckKeys is [Check] for the statement with these keys as literals, or with placeholders if keys
// is nil.
func CheckKeys(text string, opts rewrite.Options, p *rewrite.Plan, keys []rewrite.Keys) (Outcome, error) {
	c := &check{text: text, opts: opts, plan: p, keys: keys}
	defer c.release()
	err := c.recovered()
	switch {
	case errors.Is(err, ErrUnknown):
		return OutcomeUnknown, nil
	case err != nil:
		return OutcomeDisagreed, err
	}
	return OutcomeAgreed, nil
}

// probes returns recognizable keys for each insert of a plan.
func probes(p *rewrite.Plan) []rewrite.Keys {
	keys, next := make([]rewrite.Keys, len(p.Inserts)), int64(1_000_000_000_000_000_001)
	for s := range p.Splices() {
		if s.HasKey {
			keys[s.Insert].Ints = append(keys[s.Insert].Ints, next)
			next++
		}
	}
	return keys
}

// check is the state of one check.
type check struct {
	reader
	text string
	opts rewrite.Options
	plan *rewrite.Plan
	keys []rewrite.Keys // the literal keys; nil: placeholders

	markers []int // positions of the statement's placeholders
	spliced bool  // the statement to send differs from the program's
	plain   bool  // the splices contain no odd bytes
}

// recovered calls run. A plan whose statement can't be written is a disagreement.
func (c *check) recovered() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = c.disagree(0, nil, fact{"the plan", fmt.Sprintf("no statement (%v)", r), "a statement"})
		}
	}()
	return c.run()
}

func (c *check) run() error {
	if len(c.plan.Inserts) > 0 {
		if err := c.splices(); err != nil {
			return err
		}
	}
	stmts, err := c.read(c.text, c.opts)
	if err != nil {
		return err
	}
	trees, err := c.inserts(c.text, stmts)
	if err != nil {
		return err
	}
	if have, want := len(c.plan.Inserts), len(trees); have != want {
		return c.disagree(c.place(trees, have), nil, fact{"the inserts into sharded tables", have, want})
	}
	if len(trees) == 0 {
		return nil
	}
	c.markers = markersOf(stmts...)
	if have, want := c.plan.NumArgs, len(c.markers); have != want {
		return c.disagree(0, nil, fact{"the number of placeholders", have, want})
	}
	for i := range trees {
		if err := c.original(trees[i], &c.plan.Inserts[i]); err != nil {
			return err
		}
	}
	if !c.spliced {
		return nil // the same statement is sent
	}
	return c.rewritten(trees)
}

// place returns the position of the first insert that is missing in the plan.
func (c *check) place(trees []tree, i int) int {
	if i < len(trees) {
		return trees[i].at
	}
	return 0
}

// tree is an INSERT or REPLACE into a sharded table, and its position.
type tree struct {
	*ast.InsertStmt
	schema, table string
	at            int
}

// inserts returns the statements that insert into sharded tables. An insert inside another
// statement should not have been planned.
func (c *check) inserts(text string, stmts []ast.StmtNode) (found []tree, err error) {
	offsets := offsetsIn(text, stmts)
	for i, stmt := range stmts {
		runs := Runs(stmt)
		if runs == nil {
			continue
		}
		t, err := newTree(runs, offsets[i])
		if err != nil {
			return nil, err
		}
		if c.opts.Table == nil || c.opts.Table(t.schema, t.table) == nil {
			continue
		}
		if ast.StmtNode(runs) != stmt {
			return nil, c.disagree(t.at, nil, fact{"the executed statement", "no INSERT", "an INSERT"})
		}
		found = append(found, t)
	}
	return found, nil
}

// Runs returns the INSERT or REPLACE that a statement is or executes, as EXPLAIN ANALYZE and TRACE
// do. It returns nil for other statements.
func Runs(stmt ast.StmtNode) *ast.InsertStmt {
	switch s := stmt.(type) {
	case *ast.InsertStmt:
		return s
	case *ast.ExplainStmt:
		if s.Analyze {
			return Runs(s.Stmt)
		}
	case *ast.TraceStmt:
		return Runs(s.Stmt)
	}
	return nil
}

func newTree(in *ast.InsertStmt, at int) (tree, error) {
	source, ok := in.Table.TableRefs.Left.(*ast.TableSource)
	if !ok {
		return tree{}, ErrUnknown
	}
	name, ok := source.Source.(*ast.TableName)
	if !ok {
		return tree{}, ErrUnknown
	}
	plainRows(in)
	return tree{in, name.Schema.O, name.Name.O, at}, nil
}

// plainRows converts VALUES ROW(…), which TiDB parses as a query, to rows. In brackets it is a
// query to the servers too.
func plainRows(in *ast.InsertStmt) {
	query, ok := in.Select.(*ast.SelectStmt)
	if !ok || query.Kind != ast.SelectStmtKindValues || query.OrderBy != nil || query.Limit != nil || query.IsInBraces {
		return
	}
	in.Select = nil
	for _, row := range query.Lists {
		in.Lists = append(in.Lists, row.Values)
	}
}

// markersOf returns the positions of the placeholders in trees, in order.
func markersOf[N ast.Node](nodes ...N) []int {
	var v markerVisitor
	for _, n := range nodes {
		n.Accept(&v)
	}
	slices.Sort(v.at)
	return v.at
}

type markerVisitor struct{ at []int }

func (v *markerVisitor) Enter(n ast.Node) (ast.Node, bool) {
	if p, ok := n.(ast.ParamMarkerExpr); ok {
		v.at = append(v.at, p.OriginTextPosition())
	}
	return n, false
}

func (v *markerVisitor) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// DisagreementError is the error for a statement that the scanner and TiDB's parser understand
// differently. [rewrite.ErrUnsupportedStatement] and a [*rewrite.StatementError] are in its chain.
type DisagreementError struct {
	What    string // the property that differs
	Scanner string // its value in package rewrite
	Parser  string // its value in TiDB's parser
	At      *rewrite.StatementError
}

func (e *DisagreementError) Error() string { return cmp.Or(e.At, new(rewrite.StatementError)).Error() }

func (e *DisagreementError) Unwrap() error { return cmp.Or(e.At, new(rewrite.StatementError)) }

// fact is a property of a statement with its values in both parsers.
type fact struct {
	what            string
	scanner, parser any
}

// agree returns the error for the first fact that differs.
func (c *check) agree(at int, in *rewrite.Insert, facts ...fact) error {
	for _, f := range facts {
		if f.scanner != f.parser {
			return c.disagree(at, in, f)
		}
	}
	return nil
}

// disagree returns the error for a fact that differs at a position.
func (c *check) disagree(at int, in *rewrite.Insert, f fact) error {
	e := &DisagreementError{What: f.what, Scanner: fmt.Sprint(f.scanner), Parser: fmt.Sprint(f.parser)}
	e.At = &rewrite.StatementError{Reason: "unverified", Sentinel: rewrite.ErrUnsupportedStatement}
	if in != nil {
		e.At.Table = strings.TrimPrefix(in.Schema+"."+in.Name, ".")
	}
	e.At.Message = fmt.Sprintf("two parsers disagree about %s: shardkey's found %s, TiDB's found %s; "+
		"please report the statement, and write it in a simpler form", e.What, e.Scanner, e.Parser)
	at = min(at, len(c.text))
	e.At.Line, e.At.Char = sqltoken.Position(c.text, at)
	mode, charset := session(c.opts)
	e.At.Near = sqltoken.Near(c.text[at:], mode, charset)
	return e
}
