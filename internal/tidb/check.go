package tidb

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// Check compares a statement's plan with the result of TiDB's parser. It checks the plan against
// the statement, and against the statement that will be sent. The latter has placeholders for the
// keys if the statement has placeholders, and literals otherwise. opts are the options of the plan.
//
// The result known is false if TiDB's parser doesn't support the statement, or parses it differently
// from the servers. The error is a [*rewrite.StatementError] if the parsers disagree.
//
// Check is safe for concurrent use.
func Check(text string, opts rewrite.Options, p *rewrite.Plan) (known bool, err error) {
	if p.NumArgs == 0 && p.NumKeys > 0 {
		return CheckKeys(text, opts, p, probes(p))
	}
	return CheckKeys(text, opts, p, nil)
}

// CheckKeys is [Check] for the statement with these keys as literals, or with placeholders if keys
// is nil. An INSERT … SELECT of several rows always has placeholders.
func CheckKeys(text string, opts rewrite.Options, p *rewrite.Plan, keys *rewrite.Keys) (known bool, err error) {
	if p.Count() != "" {
		keys = nil
	}
	c := newCheck(text, opts, p, keys)
	defer c.release()
	defer func() {
		if r := recover(); r != nil { // the plan's statement can't be written
			known, err = true, c.disagree(0, fact{"the plan", fmt.Sprintf("no statement (%v)", r), "a statement"})
		}
	}()
	c.bind()
	if err = c.run(); errors.Is(err, errUnknown) {
		return false, nil
	}
	return true, err
}

// probes returns recognizable keys for a plan.
func probes(p *rewrite.Plan) *rewrite.Keys {
	keys, next := new(rewrite.Keys), int64(1_000_000_000_000_000_001)
	for s := range p.Splices() {
		if s.HasKey {
			keys.Ints = append(keys.Ints, next)
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
	keys *rewrite.Keys // the literal keys; nil: placeholders

	sent string // the statement to send
	// args are the ordinals of the arguments to send, if no argument of the program asks for a key; asked are
	// those if all do. A key has −1.
	args, asked []int

	markers []int        // positions of the statement's placeholders
	keyArgs map[int]bool // the program's arguments that may ask for a key, by their numbers
	odd     bool         // the splices contain bytes that TiDB may interpret differently from the servers
}

func newCheck(text string, opts rewrite.Options, p *rewrite.Plan, keys *rewrite.Keys) *check {
	return &check{text: text, opts: opts, plan: p, keys: keys, keyArgs: map[int]bool{}}
}

func (c *check) run() error {
	if err := c.spliced(); err != nil {
		return err
	}
	stmts, err := c.read(c.text, c.opts)
	if err != nil {
		return errUnknown
	}
	trees, err := c.inserts(c.text, stmts)
	if err != nil {
		return err
	}
	have, missing := 0, 0
	if c.plan.Insert != nil {
		have = 1
	}
	if have < len(trees) {
		missing = trees[have].at
	}
	if err := c.agree(missing, fact{"the inserts into sharded tables", have, len(trees)}); err != nil || have == 0 {
		return err
	}
	c.markers = markersOf(stmts...)
	if len(c.markers) > 0 && c.markers[0] == 0 {
		return errUnknown
	}
	if err := c.agree(0, fact{"the number of placeholders", c.plan.NumArgs, len(c.markers)}); err != nil {
		return err
	}
	if err := c.original(trees[0], c.plan.Insert); err != nil {
		return err
	}
	if c.sent == c.text && c.plan.NumKeys == 0 {
		return c.order(c.markers, trees[0], nil)
	}
	return c.rewritten(trees[0])
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
	offsets := c.offsetsIn(text)
	for i, stmt := range stmts {
		runs := Runs(stmt)
		if runs == nil {
			continue
		}
		t, err := newTree(runs)
		if err != nil {
			return nil, err
		}
		if c.opts.Table == nil || c.opts.Table(t.schema, t.table) == nil {
			continue
		}
		if i < len(offsets) {
			t.at = offsets[i]
		}
		if ast.StmtNode(runs) != stmt {
			return nil, c.disagree(t.at, fact{"the executed statement", "no INSERT", "an INSERT"})
		}
		found = append(found, t)
	}
	return found, nil
}

// offsetsIn returns the positions of the statements in a string.
func (c *check) offsetsIn(text string) (offsets []int) {
	mode, charset := session(c.opts)
	lx, begins := sqltoken.NewLexer(text, mode, charset), true
	for t := lx.Next(); t.Kind != sqltoken.EOF && t.Kind != sqltoken.Bad; t = lx.Next() {
		ends := lx.IsPunct(t, ';')
		if begins && !ends {
			offsets = append(offsets, t.Start)
		}
		begins = ends
	}
	return offsets
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

func newTree(in *ast.InsertStmt) (tree, error) {
	source, ok := in.Table.TableRefs.Left.(*ast.TableSource)
	if !ok {
		return tree{}, errUnknown
	}
	name, ok := source.Source.(*ast.TableName)
	if !ok {
		return tree{}, errUnknown
	}
	plainRows(in)
	return tree{InsertStmt: in, schema: name.Schema.O, table: name.Name.O}, nil
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

func (mv *markerVisitor) Enter(n ast.Node) (ast.Node, bool) {
	if p, ok := n.(ast.ParamMarkerExpr); ok {
		mv.at = append(mv.at, positionOf(p))
	}
	return n, false
}

func (mv *markerVisitor) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// fact is a property of a statement with its values in both parsers.
type fact struct {
	what            string
	scanner, parser any
}

// agree returns the error for the first fact that differs.
func (c *check) agree(at int, facts ...fact) error {
	for _, f := range facts {
		if f.scanner != f.parser {
			return c.disagree(at, f)
		}
	}
	return nil
}

// disagree returns the error for a fact that differs at a position.
func (c *check) disagree(at int, f fact) error {
	e := &rewrite.StatementError{Reason: "unverified", Sentinel: rewrite.ErrUnsupportedStatement}
	if in := c.plan.Insert; in != nil {
		e.Table = sqltoken.TableName(in.Schema, in.Name)
	}
	e.Message = fmt.Sprintf("two parsers disagree about %s: shardkey's found %v, TiDB's found %v; "+
		"please report the statement, and write it in a simpler form", f.what, f.scanner, f.parser)
	at = min(at, len(c.text))
	e.Line, e.Char = sqltoken.Position(c.text, at)
	mode, charset := session(c.opts)
	e.Near = sqltoken.Near(c.text[at:], mode, charset)
	return e
}
