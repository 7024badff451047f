package tidb

import (
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// params holds the number of placeholders against those of the trees.
func (c *check) params(stmts []ast.StmtNode) error {
	for _, s := range stmts {
		c.markers = append(c.markers, markersOf(s)...)
	}
	slices.Sort(c.markers)
	if have, want := c.plan.Params(), len(c.markers); have != want {
		return c.disagree(0, nil, fact{"the number of placeholders", have, want})
	}
	return nil
}

// markersOf are the places of the placeholders in a tree.
func markersOf(n ast.Node) []int {
	var v markerVisitor
	n.Accept(&v)
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

// paramAt is which of the text's placeholders, from 0, stands at an offset.
func (c *check) paramAt(offset int) (index int, ok bool) {
	return slices.BinarySearch(c.markers, offset)
}
