package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// TestCore_exec: plan.exec fits a screen, and names its steps in order.
func TestCore_exec(t *testing.T) {
	set := token.NewFileSet()
	file := must.Get(parser.ParseFile(set, "driver/exec.go", nil, 0))(t)
	var steps []string
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "exec" {
			continue
		}
		if lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; lines > 40 {
			t.Errorf("plan.exec\nhave: %d lines\nwant: 40", lines)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				_, name, _ := strings.Cut(types.ExprString(call.Fun), ".")
				steps = append(steps, name)
			}
			return true
		})
	}
	steps = slices.DeleteFunc(steps, func(name string) bool {
		return !slices.Contains([]string{"rules.generators.Acquire", "makeKeys", "bind", "do", "failed", "concluded"}, name)
	})
	must.Equal(t, strings.Join(steps, " "), "rules.generators.Acquire makeKeys bind do failed concluded")
}

// TestCore_once: arguments and keys are merged in one place, and
// no loop of package driver reads rows, except to describe them.
func TestCore_once(t *testing.T) {
	sources := files(t, func(name string) bool { return filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") })
	for pattern, want := range map[string]string{
		`\.Bind\(`:                 "driver/exec.go",
		`range [\w.]+\.Rows\b`:     "driver/internal/fill/actualtable.go driver/internal/fill/guard.go driver/internal/fill/shardbits.go driver/internal/outcome/outcome.go",
		`outcome\.Conclude\(`:      "driver/outcome.go",
		`\.SetLastID\(`:            "driver/internal/session/lastid.go driver/outcome.go",
		`\.lastID = `:              "driver/internal/session/lastid.go",
		`\.Fill(Query)?\(ctx`:      "driver/exec.go driver/insertselect.go",
		`rewrite\.(Parse|Split)\(`: "driver/explain.go driver/explain.go driver/planner.go driver/planner.go driver/several.go",
	} {
		var in []string
		for name, text := range sources {
			if strings.HasPrefix(name, "driver/") {
				in = append(in, slices.Repeat([]string{name}, len(regexp.MustCompile(pattern).FindAllString(text, -1)))...)
			}
		}
		slices.Sort(in)
		must.Equal(t, strings.Join(in, " "), want, pattern)
	}
}

// TestCore_rewriteCallsNothing: the only function that rewriting calls looks up a table.
func TestCore_rewriteCallsNothing(t *testing.T) {
	sources := loadSources(t)
	i := slices.IndexFunc(sources, func(s *source) bool { return s.dir == "rewrite" })
	scope := sources[i].pkg.Scope()
	options := scope.Lookup("Options").Type().Underlying().(*types.Struct)
	for i := range options.NumFields() {
		if _, isFunc := options.Field(i).Type().Underlying().(*types.Signature); isFunc && options.Field(i).Name() != "Table" {
			t.Errorf("rewrite.Options has the function %s", options.Field(i).Name())
		}
	}
}
