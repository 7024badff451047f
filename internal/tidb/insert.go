package tidb

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// original compares the plan of an insert with its tree.
func (c *check) original(t tree, in *rewrite.Insert) error {
	key := ""
	if table := c.opts.Table(t.schema, t.table); table != nil {
		key = table.Key
	}
	if in.Returning && strings.Contains(strings.ToUpper(c.text), "RETURNING") {
		return errUnknown // TiDB has no such clause, and parsed the word as a name
	}
	err := c.agree(t.at,
		fact{"the table", in.Schema + "." + in.Name, t.schema + "." + t.table},
		fact{"the key column", in.Table.Key, key},
		fact{"REPLACE", in.Replace, t.IsReplace},
		fact{"IGNORE", in.Ignore, t.IgnoreErr},
		fact{"ON DUPLICATE KEY UPDATE", in.OnDuplicate, t.OnDuplicate != nil},
		fact{"a query", in.Select != "", t.Select != nil},
		fact{"RETURNING", in.Returning, false})
	if err != nil {
		return err
	}
	if t.Select != nil {
		return c.query(t, in)
	}
	return c.rows(t, in)
}

// rows compares the rows of an insert with its tree.
func (c *check) rows(t tree, in *rewrite.Insert) error {
	if have, want := len(in.Rows), len(t.Lists); have != want && !in.Invalid {
		return c.disagree(t.at, fact{"the number of rows", have, want})
	}
	columns := columnsOf(t, in)
	refused := slices.ContainsFunc(t.Lists, func(row []ast.ExprNode) bool { return len(row) != len(columns) })
	if in.Invalid != refused {
		return c.disagree(t.at, fact{"whether each row has a value for each column", !in.Invalid, !refused})
	}
	if refused {
		return nil
	}
	key := keyIndex(columns, in)
	for n, row := range t.Lists {
		if err := c.key(t, in, n, row, key); err != nil {
			return err
		}
	}
	return nil
}

// key compares the plan for a row's key with the row.
func (c *check) key(t tree, in *rewrite.Insert, n int, row []ast.ExprNode, key int) error {
	have := in.Rows[n]
	want, at := generated, t.at
	if key >= 0 {
		want, at = c.kindsOf(row[key], in), row[key].OriginTextPosition()
	}
	if !slices.Contains(want, have.Key) {
		return c.disagree(at, fact{"the key of a row", kinds{have.Key}, want})
	}
	if have.Key != rewrite.Argument {
		return nil
	}
	return c.argument(at, in, have, row[key])
}

// argument compares the plan for a key that is an argument with the key's placeholder.
func (c *check) argument(at int, in *rewrite.Insert, have rewrite.Row, key ast.ExprNode) error {
	number := 0
	if index, ok := slices.BinarySearch(c.markers, positionOf(unwrapped(key))); ok {
		number = index + 1
	}
	c.keyArgs[number] = !in.Table.KeepExplicit
	return c.agree(at, fact{"the number of the argument with the key", have.Arg + 1, number})
}

// columnsOf returns the columns of the values in a tree's rows.
func columnsOf(t tree, in *rewrite.Insert) []string {
	if len(t.Columns) == 0 && (t.Select != nil || len(t.Lists) > 0 && len(t.Lists[0]) > 0) {
		return in.Table.Columns
	}
	return listed(t)
}

// listed returns the columns that a statement lists.
func listed(t tree) []string {
	columns := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = c.Name.O
	}
	return columns
}

// keyIndex returns the index of the key column among columns, −1 if it is missing.
func keyIndex(columns []string, in *rewrite.Insert) int {
	return slices.IndexFunc(columns, func(c string) bool { return strings.EqualFold(c, in.Table.Key) })
}

// kinds are possible sources of a key.
type kinds []rewrite.KeySource

var kindNames = map[rewrite.KeySource]string{
	rewrite.Generated: "a generated one", rewrite.Argument: "an argument", rewrite.Literal: "an explicit one",
	rewrite.Unknown: "one left to the server", rewrite.Expression: "an expression",
}

func (k kinds) String() string {
	names := make([]string, len(k))
	for i, source := range k {
		names[i] = kindNames[source]
	}
	return strings.Join(names, " or ")
}

var (
	generated = kinds{rewrite.Generated}
	argument  = kinds{rewrite.Argument}
	kept      = kinds{rewrite.Literal}
	unknown   = kinds{rewrite.Unknown, rewrite.Expression}
	explicit  = append(kept, unknown...)
	uncertain = append(generated, explicit...)
)

// kindsOf returns the possible kinds of a key's value.
func (c *check) kindsOf(e ast.ExprNode, in *rewrite.Insert) kinds {
	inner, keep := unwrapped(e), in.Table.KeepExplicit
	switch v := inner.(type) {
	case ast.ParamMarkerExpr:
		return argument
	case *ast.DefaultExpr:
		if v.Name == nil && inner == e && !keep {
			return generated
		}
	case ast.ValueExpr:
		switch {
		case v.GetValue() != nil:
			return c.kindsOfConstant(v.GetValue(), in)
		case !keep:
			return generated
		}
	case *ast.SetCollationExpr:
		return uncertain
	case *ast.UnaryOperationExpr:
		operand, ok := v.V.(ast.ValueExpr)
		if ok && v.Op == opcode.Plus && isInteger(operand.GetValue()) && !isZero(operand.GetValue()) {
			return explicit
		}
		return uncertain
	}
	return unknown
}

// kindsOfConstant returns the possible kinds of a number or string. Only the scanner knows how the
// servers read unusual spellings of zero.
func (c *check) kindsOfConstant(v any, in *rewrite.Insert) kinds {
	isText := in.Table.Strings
	mode, _ := session(c.opts)
	switch s, ok := v.(string); {
	case in.Table.KeepExplicit:
		return explicit
	case ok && s == "" && (isText || mode&sqltoken.EmptyStringIsNull != 0):
		return append(generated, unknown...)
	case ok && isText:
		return explicit
	case isInteger(v) && isZero(v) && !isText && mode&sqltoken.NoAutoValueOnZero == 0:
		return generated
	case isInteger(v):
		return kept
	}
	return uncertain
}

func isInteger(v any) bool {
	switch v.(type) {
	case int64, uint64:
		return true
	}
	return false
}

func isZero(v any) bool { return v == int64(0) || v == uint64(0) }

// unwrapped returns an expression without the brackets around it.
func unwrapped(e ast.ExprNode) ast.ExprNode {
	for {
		brackets, ok := e.(*ast.ParenthesesExpr)
		if !ok {
			return e
		}
		e = brackets.Expr
	}
}
