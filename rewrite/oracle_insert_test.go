package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// checkInserts holds what a plan says against the trees.
func checkInserts(trees []*ast.InsertStmt, p *Plan) error {
	if len(trees) != len(p.Inserts) {
		return fmt.Errorf("inserts\nhave: %d\nwant: %d", len(p.Inserts), len(trees))
	}
	for i, tree := range trees {
		if err := checkInsert(tree, &p.Inserts[i]); err != nil {
			return fmt.Errorf("insert %d: %w", i, err)
		}
	}
	return nil
}

func checkInsert(tree *ast.InsertStmt, in *Insert) error {
	name := tree.Table.TableRefs.Left.(*ast.TableSource).Source.(*ast.TableName)
	have := fmt.Sprint(in.Schema, ".", in.Name, in.Replace, in.Ignore, in.OnDuplicate, in.Source != nil)
	want := fmt.Sprint(name.Schema.O, ".", name.Name.O, tree.IsReplace, tree.IgnoreErr, tree.OnDuplicate != nil, tree.Select != nil)
	if have != want {
		return fmt.Errorf("what it is\nhave: %s\nwant: %s", have, want)
	}
	if in.Source != nil {
		return nil
	}
	if !in.Refused && in.Rows() != len(tree.Lists) {
		return fmt.Errorf("rows\nhave: %d\nwant: %d", in.Rows(), len(tree.Lists))
	}
	columns := columnsOf(tree, in)
	refused := slices.ContainsFunc(tree.Lists, func(row []ast.ExprNode) bool { return len(row) != len(columns) })
	if in.Refused != refused {
		return fmt.Errorf("wrong number of values\nhave: %v\nwant: %v", in.Refused, refused)
	}
	if refused {
		return nil
	}
	key := slices.IndexFunc(columns, func(c string) bool { return strings.EqualFold(c, in.Table.KeyColumn) })
	for i, row := range tree.Lists {
		kind, _ := in.Slot(i)
		if err := checkKind(kind, row, key, in.Table.KeepExplicit); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return nil
}

// columnsOf are the columns that the rows of a tree are for.
func columnsOf(tree *ast.InsertStmt, in *Insert) (columns []string) {
	for _, c := range tree.Columns {
		columns = append(columns, c.Name.O)
	}
	if len(columns) == 0 && len(tree.Lists[0]) > 0 {
		return in.Table.Columns
	}
	return columns
}

func checkKind(kind SlotKind, row []ast.ExprNode, key int, keep bool) error {
	want := "fill"
	if key >= 0 {
		want = kindOf(row[key], keep)
	}
	if have := [...]string{"fill", "param", "kept", "unknown"}[kind]; !strings.Contains(want, have) {
		return fmt.Errorf("key\nhave: %s\nwant: %s", have, want)
	}
	return nil
}

// kindOf tells what may become of a key.
func kindOf(e ast.ExprNode, keep bool) string {
	brackets := false
	for {
		b, ok := e.(*ast.ParenthesesExpr)
		if !ok {
			break
		}
		e, brackets = b.Expr, true
	}
	switch e := e.(type) {
	case ast.ParamMarkerExpr:
		return "param"
	case *ast.DefaultExpr:
		if e.Name == nil && !brackets && !keep {
			return "fill"
		}
	case ast.ValueExpr:
		switch {
		case e.GetValue() != nil:
			return "fill kept unknown" // what is zero is not for this oracle
		case !keep:
			return "fill"
		}
	case *ast.UnaryOperationExpr:
		return "fill kept unknown"
	}
	return "unknown"
}
