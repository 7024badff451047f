package tidb

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/shardkey/shardkey/internal/rewrite"
)

// Outcome is what came of a check.
type Outcome uint8

const (
	// OutcomeUnknown: TiDB's parser does not read the text, or not as the
	// servers do.
	OutcomeUnknown Outcome = iota
	// OutcomeAgreed: both readers say the same.
	OutcomeAgreed
	// OutcomeDisagreed: they do not, as the error says.
	OutcomeDisagreed
)

// Check holds a text's plan against TiDB's parser: what the plan says of the
// text, and the text that will be sent, with placeholders for the keys when the
// text has placeholders itself and with keys as literals otherwise. The options
// are those that the plan was made with. The error is a [*DisagreementError],
// and nil unless the outcome is [OutcomeDisagreed].
//
// Check may be called by many goroutines.
func Check(text string, opts rewrite.Options, p *rewrite.Plan) (Outcome, error) {
	if p.Params() == 0 && p.Fills() > 0 {
		return CheckKeys(text, opts, p, probes(p))
	}
	return CheckKeys(text, opts, p, nil)
}

// CheckKeys is [Check] for the text with these keys written into it; for the one
// with placeholders when keys is nil.
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

// probes are keys to be seen again, for each insert of a plan.
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
	keys []rewrite.Keys // those in the rewritten text; nil: placeholders

	markers []int // where the text's placeholders stand
	spliced bool  // what is sent is not the text itself
	plain   bool  // the splices have nothing odd in them
}

// recovered is run, for which a plan that cannot be written is a wrong one.
func (c *check) recovered() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = c.disagree(0, nil, fact{"the plan", fmt.Sprintf("one that cannot be written (%v)", r), "a statement"})
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
	trees, err := c.inserts(stmts)
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
	if have, want := c.plan.Params(), len(c.markers); have != want {
		return c.disagree(0, nil, fact{"the number of placeholders", have, want})
	}
	for i := range trees {
		if err := c.original(trees[i], &c.plan.Inserts[i]); err != nil {
			return err
		}
	}
	if !c.spliced {
		return nil // what is sent was read already
	}
	return c.rewritten(trees)
}

// place is where the first insert stands that the plan does not have.
func (c *check) place(trees []tree, i int) int {
	if i < len(trees) {
		return trees[i].at
	}
	return 0
}

// tree is an INSERT or REPLACE into a sharded table, and its place in the text.
type tree struct {
	*ast.InsertStmt
	schema, table string
	at            int
}

// inserts are the statements that insert into sharded tables. Those that run
// within another statement were not to be planned.
func (c *check) inserts(stmts []ast.StmtNode) (found []tree, err error) {
	offsets := c.offsets(stmts)
	for i, stmt := range stmts {
		runs := Runs(stmt)
		if runs == nil {
			continue
		}
		t, err := newTree(runs, offsets[i])
		if err != nil {
			return nil, err
		}
		if c.opts.Tables == nil || c.opts.Tables(t.schema, t.table) == nil {
			continue
		}
		if ast.StmtNode(runs) != stmt {
			return nil, c.disagree(t.at, nil, fact{"what the statement runs", "no INSERT", "an INSERT"})
		}
		found = append(found, t)
	}
	return found, nil
}

// Runs is the INSERT or REPLACE that a statement is or, as EXPLAIN ANALYZE and
// TRACE do, runs; nil for any other.
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

// plainRows makes rows of VALUES ROW(…), which is a query to TiDB; in brackets it is
// one to the servers too.
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

// markersOf are the places of the placeholders in trees, in order.
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
