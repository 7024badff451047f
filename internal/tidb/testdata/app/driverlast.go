//go:build driverlast

package main

import (
	"io"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
)

// decimal, hexadecimal and bit are literals.
type (
	decimal     string
	hexadecimal string
	bit         string
)

// ToString is required by TiDB's parser for binary literals.
func (h hexadecimal) ToString() string { return string(h) }

// ToString is required by TiDB's parser for binary literals.
func (b bit) ToString() string { return string(b) }

// value is a constant.
type value struct {
	ast.TexprNode
	v      any
	offset int
}

// marker is a placeholder.
type marker struct{ value }

// The second parser is used while the program's packages are initialized, before its
// value driver is set.
func init() {
	check()
	hasDriver = true
	ast.NewValueExpr = func(v any, _, _ string) ast.ValueExpr { return &value{v: v} }
	ast.NewParamMarkerExpr = func(int) ast.ParamMarkerExpr { return &marker{} }
	ast.NewDecimal = func(s string) (any, error) { return decimal(s), nil }
	ast.NewHexLiteral = func(s string) (any, error) { return hexadecimal(s), nil }
	ast.NewBitLiteral = func(s string) (any, error) { return bit(s), nil }
}

func (v *value) SetValue(val any)                 { v.v = val }
func (v *value) GetValue() any                    { return v.v }
func (v *value) GetDatumString() string           { return "" }
func (v *value) GetString() string                { return "" }
func (v *value) GetProjectionOffset() int         { return v.offset }
func (v *value) SetProjectionOffset(offset int)   { v.offset = offset }
func (v *value) Restore(*format.RestoreCtx) error { panic("not to be printed") }
func (v *value) Format(io.Writer)                 { panic("not to be printed") }
func (v *marker) SetOrder(int)                    {}

func (v *value) Accept(visitor ast.Visitor) (ast.Node, bool) {
	n, _ := visitor.Enter(v)
	return visitor.Leave(n)
}

func (v *marker) Accept(visitor ast.Visitor) (ast.Node, bool) {
	n, _ := visitor.Enter(v)
	return visitor.Leave(n)
}
