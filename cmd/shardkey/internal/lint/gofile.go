package lint

import (
	"fmt"
	"go/ast"
	"go/constant"
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

// text looks at the values that an argument may have.
func (g *goPackage) text(arg ast.Expr, fn *types.Func) {
	for _, e := range g.values(arg) {
		at := g.Fset.Position(e.Pos())
		if g.seen[at] {
			continue
		}
		g.seen[at] = true
		if v := g.TypesInfo.Types[e].Value; v != nil && v.Kind() == constant.String {
			text := constant.StringVal(v)
			g.report(e, text, g.Statement(arguments(text, fn)))
			continue
		}
		if pieces := mask(strings.Join(g.pieces(e), ""), g.Mode); pieces != "" {
			named := append(namesIn(pieces, insertTarget), namesIn(pieces, loadTarget)...)
			g.report(e, "", g.only(named, Unknown, "the text is put together when the program runs; shardkey plans it then"))
		}
	}
}

// values are the constants that an expression is, or that a variable is set to;
// else the expression itself.
func (g *goPackage) values(e ast.Expr) []ast.Expr {
	if g.TypesInfo.Types[e].Value != nil {
		return []ast.Expr{e}
	}
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return []ast.Expr{e}
	}
	v, ok := g.TypesInfo.Uses[id].(*types.Var)
	if !ok {
		return []ast.Expr{e}
	}
	if set := g.assigned(v); len(set) > 0 {
		return set
	}
	return []ast.Expr{e}
}

// assigned are the expressions that a variable of this package is set to.
func (g *goPackage) assigned(v *types.Var) (set []ast.Expr) {
	is := func(id *ast.Ident) bool { return g.TypesInfo.Defs[id] == v || g.TypesInfo.Uses[id] == v }
	for _, file := range g.Syntax {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, left := range n.Lhs {
					if id, ok := left.(*ast.Ident); ok && is(id) && len(n.Lhs) == len(n.Rhs) {
						set = append(set, n.Rhs[i])
					}
				}
			case *ast.ValueSpec:
				for i, id := range n.Names {
					if is(id) && i < len(n.Values) {
						set = append(set, n.Values[i])
					}
				}
			}
			return true
		})
	}
	return set
}

// pieces are the constants within an expression that is not constant itself.
func (g *goPackage) pieces(e ast.Expr) (found []string) {
	ast.Inspect(e, func(n ast.Node) bool {
		expr, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		if v := g.TypesInfo.Types[expr].Value; v != nil && v.Kind() == constant.String {
			found = append(found, constant.StringVal(v))
			return false
		}
		return true
	})
	return found
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
