package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Packages looks at the texts that Go packages send: the constants that reach
// the calls of database/sql, sqlx, GORM and what is called as they are.
func (l *Linter) Packages(patterns []string, tests bool) error {
	mode := packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps
	loaded, err := packages.Load(&packages.Config{Mode: mode, Tests: tests}, patterns...)
	if err != nil {
		return err
	}
	for _, p := range loaded {
		for _, e := range p.Errors {
			return fmt.Errorf("package %s: %w", p.PkgPath, e)
		}
	}
	seen := map[token.Position]bool{} // a package and its test variant share files
	for _, p := range loaded {
		g := &goPackage{Linter: l, Package: p, seen: seen}
		for _, file := range p.Syntax {
			ast.Inspect(file, g.node)
		}
	}
	return nil
}

// goPackage is one package that is looked at.
type goPackage struct {
	*Linter
	*packages.Package
	seen map[token.Position]bool
	vars *variables
}

// sends are the functions that send a text. The text is their first argument of
// type string, after a context or what to scan into.
var sends = regexp.MustCompile(`^(Must|Named)?(Exec|Query|QueryRow|Queryx|QueryRowx|Prepare|Preparex|PrepareNamed|Get|Select|Raw)(Context)?$`)

func (g *goPackage) node(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return true
	}
	fn := g.function(call)
	if fn == nil || !sends.MatchString(fn.Name()) {
		return true
	}
	signature := fn.Type().(*types.Signature)
	for i := range signature.Params().Len() {
		if t, ok := signature.Params().At(i).Type().(*types.Basic); ok && t.Kind() == types.String && i < len(call.Args) {
			g.text(call.Args[i], fn)
			break
		}
	}
	return true
}

// function is the function or method that a call names.
func (g *goPackage) function(call *ast.CallExpr) *types.Func {
	var id *ast.Ident
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		id = f
	case *ast.SelectorExpr:
		id = f.Sel
	default:
		return nil
	}
	fn, _ := g.TypesInfo.Uses[id].(*types.Func)
	return fn
}

// text looks at the queries that an argument may be.
func (g *goPackage) text(arg ast.Expr, fn *types.Func) {
	for _, q := range g.queries(arg) {
		at := g.Fset.Position(q.at.Pos())
		if g.seen[at] {
			continue
		}
		g.seen[at] = true
		text := arguments(q.text, fn)
		if q.composed || strings.Contains(text, hole) {
			g.report(q.at, "", g.composed(text))
		} else {
			g.report(q.at, q.text, g.Statement(text))
		}
	}
}

// report keeps the findings of a text. In a raw string the lines are known, of
// other texts the place where they begin.
func (g *goPackage) report(e ast.Expr, text string, found []Finding) {
	at := g.Fset.Position(e.Pos())
	literal, ok := ast.Unparen(e).(*ast.BasicLit)
	raw := ok && strings.HasPrefix(literal.Value, "`")
	for _, f := range found {
		f.File, f.Line, f.Column = relative(at.Filename), at.Line, at.Column
		if before := text[:min(f.offset, len(text))]; raw {
			f.Line += strings.Count(before, "\n")
			f.Column += len(before) + 1
			if i := strings.LastIndexByte(before, '\n'); i >= 0 {
				f.Column = len(before) - i
			}
		}
		g.findings = append(g.findings, f)
	}
}

var named = regexp.MustCompile(`(^|[^:\w]):[A-Za-z_][\w.]*`)

// arguments puts placeholders in the place of the named arguments that sqlx and
// GORM have.
func arguments(text string, fn *types.Func) string {
	pkg := ""
	if fn.Pkg() != nil {
		pkg = fn.Pkg().Path()
	}
	switch {
	case strings.Contains(fn.Name(), "Named"):
		return named.ReplaceAllStringFunc(text, func(s string) string {
			colon := strings.IndexByte(s, ':')
			return s[:colon] + "?" + strings.Repeat(" ", len(s)-colon-1)
		})
	case path.Base(pkg) == "gorm":
		return gormNamed.ReplaceAllStringFunc(text, func(s string) string {
			at := strings.IndexByte(s, '@')
			return s[:at] + "?" + strings.Repeat(" ", len(s)-at-1)
		})
	}
	return text
}

var gormNamed = regexp.MustCompile(`(^|[^@\w'])@[A-Za-z_]\w*`)

// relative returns a file's name relative to the working directory.
func relative(name string) string {
	wd, err := os.Getwd()
	if err != nil {
		return name
	}
	short, err := filepath.Rel(wd, name)
	if err != nil || strings.HasPrefix(short, "..") {
		return name
	}
	return short
}
