// An application that links the second parser and, by build tag, a value driver of TiDB's parser.
// The tag driverfirst sets the value driver before the second parser's first use, driverlast after
// it.
package main

import (
	"fmt"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/shardkey/shardkey/internal/tidb"
	"github.com/shardkey/shardkey/rewrite"
)

var hasDriver bool

func main() {
	values()
	check()
	values()
}

// check prints the second parser's result for statements, one of which has another's plan.
func check() {
	opts := rewrite.Options{ReportKeys: true, Table: func(_, name string) *rewrite.Table {
		return &rewrite.Table{Key: "id"}
	}}
	text := "INSERT INTO t (id, a) VALUES (0, x'41'), (NULL, 1.5), (?, b'1'), (18446744073709551615, 'x')"
	plan, err := rewrite.Parse(text, opts)
	if err != nil {
		panic(err)
	}
	known, err := tidb.Check(text, opts, plan)
	fmt.Println("right plan:", known, err)
	plan.Insert.Name = "u"
	_, err = tidb.Check(text, opts, plan)
	fmt.Println("wrong plan:", err == nil)
	text = "INSERT INTO t (a) SELECT a FROM u WHERE a > ? LIMIT ?"
	if plan, err = rewrite.Parse(text, opts); err != nil {
		panic(err)
	}
	_, err = tidb.Check(text, opts, plan) // unknown, if the driver's placeholders have no position
	fmt.Println("placeholder of LIMIT:", err)
}

// values prints the types of the application's values.
func values() {
	if !hasDriver {
		return
	}
	stmts, _, err := parser.New().ParseSQL("SELECT 1, 1.5, x'41', b'1', ?")
	if err != nil {
		panic(err)
	}
	for _, f := range stmts[0].(*ast.SelectStmt).Fields.Fields {
		v := f.Expr.(ast.ValueExpr)
		fmt.Printf("%T of %T\n", v, v.GetValue())
	}
}
