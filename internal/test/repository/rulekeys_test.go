package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// TestRuleFiles_keys checks that docs/reference/rule-files.md has the keys that the rule reads or
// ignores in a file, a sharding rule and a table.
func TestRuleFiles_keys(t *testing.T) {
	page := pages(t)["docs/reference/rule-files.md"]
	source := must.Get(parser.ParseFile(token.NewFileSet(), "rule/yamlkeys.go", must.Get(os.ReadFile("rule/yamlkeys.go"))(t), 0))(t)
	seen := 0
	ast.Inspect(source, func(n ast.Node) bool {
		spec, _ := n.(*ast.ValueSpec)
		if spec == nil || !strings.Contains(strings.ToLower(spec.Names[0].Name), "object") || spec.Names[0].Name == "strategyObject" {
			return true
		}
		for _, key := range keysOf(spec.Values[0]) {
			seen++
			if !strings.Contains(page, "`"+key+"`") {
				t.Errorf("%s has %s\nwant: docs/reference/rule-files.md lists it", spec.Names[0].Name, key)
			}
		}
		return false
	})
	if seen < 60 {
		t.Errorf("have: %d keys\nwant: more", seen)
	}
}

// keysOf returns the keys of keyTree{"a": …}.with("b") and keys("a", "b").
func keysOf(x ast.Expr) (found []string) {
	switch x := x.(type) {
	case *ast.CompositeLit:
		for _, element := range x.Elts {
			found = append(found, literal(element.(*ast.KeyValueExpr).Key))
		}
	case *ast.CallExpr:
		if with, ok := x.Fun.(*ast.SelectorExpr); ok {
			found = keysOf(with.X)
		}
		for _, arg := range x.Args {
			found = append(found, literal(arg))
		}
	}
	return slices.DeleteFunc(found, func(key string) bool { return key == "" })
}
