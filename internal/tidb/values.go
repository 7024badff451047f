package tidb

import (
	"io"
	"sync"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
)

// setConstructors sets the constructors of TiDB's values that are not set yet. An application sets
// them in an init function, before its first parse.
var setConstructors = sync.OnceFunc(func() {
	if ast.NewValueExpr == nil {
		ast.NewValueExpr = newValue
	}
	if ast.NewParamMarkerExpr == nil {
		ast.NewParamMarkerExpr = func(offset int) ast.ParamMarkerExpr { return &paramMarker{at: offset} }
	}
	if ast.NewDecimal == nil {
		ast.NewDecimal = newLiteral
	}
	if ast.NewHexLiteral == nil {
		ast.NewHexLiteral = newLiteral
	}
	if ast.NewBitLiteral == nil {
		ast.NewBitLiteral = newLiteral
	}
})

// literal is a decimal, hexadecimal or bit literal as written, since its value doesn't matter here.
type literal string

func newLiteral(s string) (any, error) { return literal(s), nil }

// ToString makes literal one of TiDB's binary literals.
func (l literal) ToString() string { return string(l) }

// value is a constant in a tree.
type value struct {
	ast.TexprNode
	v          any
	projection int
}

var _ ast.ValueExpr = (*value)(nil)

func newValue(v any, _, _ string) ast.ValueExpr {
	if known, ok := v.(ast.ValueExpr); ok {
		return known
	}
	return &value{v: v, projection: -1}
}

func (v *value) SetValue(val any)               { v.v = val }
func (v *value) GetValue() any                  { return v.v }
func (v *value) GetDatumString() string         { return v.GetString() }
func (v *value) GetProjectionOffset() int       { return v.projection }
func (v *value) SetProjectionOffset(offset int) { v.projection = offset }

func (v *value) GetString() string {
	s, _ := v.v.(string)
	return s
}

// Restore and Format print a constant, for the few statements that TiDB prints while it parses.
// This package doesn't read the output.
func (v *value) Restore(ctx *format.RestoreCtx) error {
	ctx.WriteString(v.GetString())
	return nil
}

func (v *value) Format(w io.Writer) { _, _ = io.WriteString(w, v.GetString()) }

func (v *value) Accept(visitor ast.Visitor) (ast.Node, bool) {
	n, _ := visitor.Enter(v)
	return visitor.Leave(n)
}

// paramMarker is a placeholder in a tree.
type paramMarker struct {
	value
	at int
}

var _ ast.ParamMarkerExpr = (*paramMarker)(nil)

func (*paramMarker) SetOrder(int) {}

// positionOf returns the position of an expression. That of a placeholder of LIMIT, of a window frame or
// of LAG is 0 if the application has set the constructor.
func positionOf(e ast.Node) int {
	if own, ok := e.(*paramMarker); ok {
		return own.at
	}
	return e.OriginTextPosition()
}

func (p *paramMarker) Accept(visitor ast.Visitor) (ast.Node, bool) {
	n, _ := visitor.Enter(p)
	return visitor.Leave(n)
}
