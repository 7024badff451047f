package tidb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/shardkey/shardkey/rewrite"
)

// query compares the plan of an INSERT … SELECT with its tree.
func (c *check) query(t tree, in *rewrite.Insert) error {
	columns := columnsOf(t, in)
	listed := keyIndex(columns, in) >= 0
	rows := "several"
	if in.Rows != nil {
		rows = "one"
	}
	err := c.agree(t.at,
		fact{"the query", true, strings.Contains(c.text[t.at:], in.Select)},
		fact{"the placeholders of the query", in.SelectArgs, len(markersOf(t.Select))})
	if err != nil || in.SelectKey == rewrite.Literal || in.SelectKey == rewrite.Unknown {
		return err
	}
	if in.Rows != nil && !isOneRow(t.Select) {
		return c.disagree(t.at, fact{"the rows of the query", rows, "several"})
	}
	if kind := in.SelectKey; !listed && in.Rows == nil {
		return c.agree(t.at, fact{"the key of the query", kind, rewrite.Generated})
	}
	if len(in.Rows) == 1 && !listed {
		return c.agree(t.at, fact{"the key of the query", in.Rows[0].Key, rewrite.Generated})
	}
	if items := selectsOf(t.Select)[0].Fields.Fields; len(in.Rows) == 1 && in.Rows[0].Key == rewrite.Argument {
		return c.argument(t.at, in, in.Rows[0], items[keyIndex(columns, in)].Expr)
	}
	return nil
}

// isOneRow reports whether a query returns at most one row.
func isOneRow(n ast.ResultSetNode) bool {
	s, ok := n.(*ast.SelectStmt)
	if !ok || s.IsInBraces || s.Distinct || s.Kind != ast.SelectStmtKindSelect {
		return false
	}
	if s.Limit != nil {
		count, ok := s.Limit.Count.(ast.ValueExpr)
		if ok && (count.GetValue() == uint64(1) || count.GetValue() == int64(1)) {
			return true
		}
	}
	return s.From == nil
}

// sentQuery compares an INSERT … SELECT to send with the original: the key is an item of each SELECT at
// the place of its column, or of a query of the original's rows.
func (c *check) sentQuery(t, sent tree, in *rewrite.Insert, ours map[int]bool) error {
	columns := columnsOf(t, in)
	key, width := keyIndex(columns, in), len(columns)
	if key < 0 {
		columns = append(slices.Clone(columns), in.Table.Key)
		key = width
	}
	if err := c.sameInsert(t, sent, in, columns); err != nil {
		return err
	}
	originals, selects := selectsOf(t.Select), selectsOf(sent.Select)
	if isWrapped(sent.Select) {
		if err := c.wrapped(t, sent, in, columns, key); err != nil {
			return err
		}
	} else if have, want := len(selects), len(originals); have != want || have == 0 {
		return c.disagree(t.at, fact{"the number of SELECTs to send", have, want})
	}
	for i, s := range selects {
		if !isWrapped(sent.Select) {
			items := len(originals[i].Fields.Fields)
			if key == width { // added
				items++
				key = items - 1 // perhaps behind an item with a star
			}
			if err := c.agree(t.at, fact{"the number of items to send", len(s.Fields.Fields), items}); err != nil {
				return err
			}
			if key == items-1 && len(columns) > width {
				key = width
			}
		}
		at := key
		if len(columns) > width {
			at = len(s.Fields.Fields) - 1
		}
		if at >= len(s.Fields.Fields) || !c.isItem(s.Fields.Fields[at].Expr, in, ours) {
			return c.disagree(t.at, fact{fmt.Sprintf("item %d to send", at+1), "the key", "another value"})
		}
	}
	c.noteReads(t, sent, ours)
	return nil
}

// isItem reports whether an item is the key of its row.
func (c *check) isItem(e ast.ExprNode, in *rewrite.Insert, ours map[int]bool) bool {
	if in.Rows != nil {
		return in.Rows[0].Key != rewrite.Generated || c.isKey(e, ours)
	}
	if in.SelectKey == rewrite.Expression {
		return true
	}
	counter, ok := e.(*ast.CaseExpr)
	if !ok {
		return false
	}
	for _, at := range markersOf[ast.Node](counter) {
		ours[at] = true
	}
	call, ok := counter.Value.(*ast.FuncCallExpr)
	return ok && call.FnName.L == "last_insert_id" && len(call.Args) == 0
}

// wrapped checks the query around the original one.
func (c *check) wrapped(t, sent tree, in *rewrite.Insert, columns []string, key int) error {
	s := sent.Select.(*ast.SelectStmt)
	rows := s.With.CTEs[0]
	width := len(columnsOf(t, in))
	return c.agree(t.at,
		fact{"the columns of the query", width, len(rows.ColNameList)},
		fact{"the number of items to send", len(columns), len(s.Fields.Fields)},
		fact{"the SELECTs in the query", len(selectsOf(t.Select)), len(selectsOf(nested(rows.Query.Query)))},
		fact{"the key's item", true, key < len(s.Fields.Fields)})
}

// isWrapped reports whether a query has the rows of another one.
func isWrapped(n ast.ResultSetNode) bool {
	s, ok := n.(*ast.SelectStmt)
	return ok && s.With != nil && len(s.With.CTEs) == 1 && s.With.CTEs[0].Name.L == "shardkey_rows"
}

// nested returns the query in a query of shardkey's, or the query itself.
func nested(q ast.ResultSetNode) ast.ResultSetNode {
	if s, ok := q.(*ast.SelectStmt); ok && s.From != nil {
		if t, ok := s.From.TableRefs.Left.(*ast.TableSource); ok && t.AsName.L == "shardkey_query" {
			return t.Source
		}
	}
	return q
}

// selectsOf returns the SELECTs of a query outside of brackets.
func selectsOf(n ast.Node) (all []*ast.SelectStmt) {
	switch q := n.(type) {
	case *ast.SelectStmt:
		return []*ast.SelectStmt{q}
	case *ast.SetOprStmt:
		for _, s := range q.SelectList.Selects {
			all = append(all, selectsOf(s)...)
		}
	case *ast.SetOprSelectList:
		for _, s := range q.Selects {
			all = append(all, selectsOf(s)...)
		}
	case *ast.SubqueryExpr:
		return selectsOf(q.Query)
	}
	return all
}

// noteReads records the placeholders that replace LAST_INSERT_ID(): those that aren't in the original.
func (c *check) noteReads(t, sent tree, ours map[int]bool) {
	for s := range c.plan.Splices() {
		if s.Before != "?" {
			continue
		}
		// Its position in the sent statement is behind all that is added before it.
		at := s.At
		for before := range c.plan.Splices() {
			if before.At >= s.At {
				break
			}
			at += len(before.Before) - (before.End - before.At)
		}
		ours[at] = true
	}
}
