// Package zdriver is a value driver of TiDB's parser with types of its own. Its
// name makes it one of the last packages to be initialized.
package zdriver

import (
	"io"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
)

// Decimal, Hex and Bit are literals.
type (
	Decimal string
	Hex     string
	Bit     string
)

// ToString is what TiDB's parser asks of binary literals.
func (h Hex) ToString() string { return string(h) }

// ToString is what TiDB's parser asks of binary literals.
func (b Bit) ToString() string { return string(b) }

// Value is a constant.
type Value struct {
	ast.TexprNode
	v      any
	offset int
}

// Marker is a placeholder.
type Marker struct{ Value }

func init() {
	ast.NewValueExpr = func(v any, _, _ string) ast.ValueExpr { return &Value{v: v} }
	ast.NewParamMarkerExpr = func(int) ast.ParamMarkerExpr { return &Marker{} }
	ast.NewDecimal = func(s string) (any, error) { return Decimal(s), nil }
	ast.NewHexLiteral = func(s string) (any, error) { return Hex(s), nil }
	ast.NewBitLiteral = func(s string) (any, error) { return Bit(s), nil }
}

func (v *Value) SetValue(val any)                 { v.v = val }
func (v *Value) GetValue() any                    { return v.v }
func (v *Value) GetDatumString() string           { return "" }
func (v *Value) GetString() string                { return "" }
func (v *Value) GetProjectionOffset() int         { return v.offset }
func (v *Value) SetProjectionOffset(offset int)   { v.offset = offset }
func (v *Value) Restore(*format.RestoreCtx) error { panic("not to be printed") }
func (v *Value) Format(io.Writer)                 { panic("not to be printed") }
func (v *Marker) SetOrder(int)                    {}

func (v *Value) Accept(visitor ast.Visitor) (ast.Node, bool) {
	n, _ := visitor.Enter(v)
	return visitor.Leave(n)
}

func (v *Marker) Accept(visitor ast.Visitor) (ast.Node, bool) {
	n, _ := visitor.Enter(v)
	return visitor.Leave(n)
}
