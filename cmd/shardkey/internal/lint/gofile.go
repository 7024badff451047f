package lint

import (
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Packages lints the statements that Go packages send: the strings that reach the calls of
// database/sql, sqlx, GORM and bun, and the tables that query builders insert into.
func (l *Linter) Packages(patterns []string, tests bool) error {
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
		packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps | packages.NeedModule
	loaded, err := packages.Load(&packages.Config{Mode: mode, Tests: tests}, patterns...)
	if err != nil {
		return err
	}
	for _, p := range loaded {
		for _, e := range p.Errors {
			return fmt.Errorf("package %s: %w", p.PkgPath, e)
		}
	}
	s := newSource(loaded)
	g := &goCode{Linter: l, source: s, seen: map[string]bool{}}
	for _, visit := range []func(ast.Node) bool{g.node, g.unsent} {
		for _, p := range loaded {
			for _, file := range p.Syntax {
				ast.Inspect(file, visit)
			}
		}
	}
	return nil
}

// goCode lints Go code.
type goCode struct {
	*Linter
	*source
	seen map[string]bool // findings: a package and its test variant share files
}

var (
	// sends are the functions that send a query. It is their first argument of type string,
	// after a context or a destination.
	sends = regexp.MustCompile(`^(Must|Named)?(Exec|Query|QueryRow|Queryx|QueryRowx|` +
		`Prepare|Preparex|PrepareNamed|Get|Select|Raw|NewRaw)(Context)?$`)
	// stores are the methods by which GORM and xorm insert into the table of a Table before them.
	stores = regexp.MustCompile(`^(Create|CreateInBatches|Save|FirstOrCreate|Insert|InsertOne|InsertMulti)$`)
	// tables are the methods that name the table of bun's NewInsert.
	tables = regexp.MustCompile(`^(Table|TableExpr|ModelTableExpr)$`)
	// inserts are the functions of query builders that take the table of an INSERT.
	inserts = regexp.MustCompile(`^(Insert|InsertInto|ReplaceInto|Into)$`)
)

func (g *goCode) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Name.Name == "TableName" && n.Recv != nil {
			for _, results := range g.functionOf(n.Name).results {
				g.builderTable(results[0])
			}
		}
	case *ast.CallExpr:
		fn := g.function(n)
		if fn == nil {
			return true
		}
		if sends.MatchString(fn.Name()) {
			g.query(n, fn)
		}
		method, _ := ast.Unparen(n.Fun).(*ast.SelectorExpr)
		switch {
		case method != nil && stores.MatchString(fn.Name()):
			g.chain(method.X, 0, func(call *ast.CallExpr) {
				if g.calls(call, "Table") && isString(g.info.TypeOf(call.Args[0])) {
					g.table(call.Args[0])
				}
			})
		case method != nil && tables.MatchString(fn.Name()):
			g.chain(method.X, 0, func(call *ast.CallExpr) {
				if g.calls(call, "NewInsert") {
					g.table(n.Args[0])
				}
			})
		}
		if inserts.MatchString(fn.Name()) && len(n.Args) > 0 && isString(g.info.TypeOf(n.Args[0])) {
			g.builderTable(n.Args[0])
		}
	}
	return true
}

// calls reports whether a call is that of a method, with its table.
func (g *goCode) calls(call *ast.CallExpr, name string) bool {
	return g.name(call) == name && (name == "NewInsert" || len(call.Args) > 0)
}

// chain visits the calls that led to an expression: db.Table(…).Where(…), also by variables and by
// the functions that return it or are passed to Scopes.
func (g *goCode) chain(e ast.Expr, depth int, visit func(*ast.CallExpr)) {
	if depth == maxWithin {
		return
	}
	e = ast.Unparen(e)
	if v := g.variable(e); v != nil {
		for _, value := range g.values[v] {
			if value.expr != nil {
				g.chain(value.expr, depth+1, visit)
			}
		}
		return
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return
	}
	visit(call)
	if s, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		g.chain(s.X, depth, visit)
	}
	for _, arg := range append([]ast.Expr{call}, call.Args...) {
		made, ok := ast.Unparen(arg).(*ast.CallExpr)
		if ok && (made == call || g.calls(call, "Scopes")) {
			for _, results := range g.functionOf(made.Fun).results {
				g.inspect(results[0], depth, visit)
			}
		}
	}
}

// inspect visits the calls of what a function returns, which may be a function itself.
func (g *goCode) inspect(e ast.Expr, depth int, visit func(*ast.CallExpr)) {
	literal, ok := e.(*ast.FuncLit)
	if !ok {
		g.chain(e, depth+1, visit)
		return
	}
	ast.Inspect(literal, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			visit(call)
		}
		return true
	})
}

// query lints the statements that a call may send.
func (g *goCode) query(call *ast.CallExpr, fn *types.Func) {
	signature := fn.Type().(*types.Signature)
	for i := range min(signature.Params().Len(), len(call.Args)) {
		if !isString(signature.Params().At(i).Type()) {
			continue
		}
		for _, q := range g.queries(call.Args[i], nil) {
			text := arguments(q.text, fn)
			switch {
			case q.composed || strings.Contains(text, hole):
				g.report(q.at, "", g.composed(text))
			default:
				g.report(q.at, q.text, g.Statement(text))
			}
		}
		return
	}
}

// unsent lints an INSERT that reaches none of the calls, if its table is computed: it may be sent by
// a function that is not known.
func (g *goCode) unsent(n ast.Node) bool {
	e, ok := n.(ast.Expr)
	switch n.(type) {
	case *ast.BinaryExpr, *ast.CallExpr:
	default:
		return true
	}
	if !ok || g.used[e] || !isString(g.info.TypeOf(e)) {
		return true
	}
	if text := (&composer{source: g.source}).text(e); isInsert(mask(text, g.Mode)) {
		computed := slices.DeleteFunc(g.composed(text), func(f Finding) bool { return !f.computed })
		g.report(e, "", computed)
	}
	return true
}

// table lints the table that a query builder inserts into.
func (g *goCode) table(e ast.Expr) {
	text := strings.ReplaceAll((&composer{source: g.source}).text(e), "?", hole)
	if strings.Contains(text, hole) {
		g.report(e, "", g.composed("INSERT INTO "+text+" VALUES ()"))
	}
}

// builderTable is table for functions of any package: a part of the name must be known.
func (g *goCode) builderTable(e ast.Expr) {
	if text := (&composer{source: g.source}).text(e); strings.Trim(text, hole+" `\"") != "" {
		g.table(e)
	}
}

// report keeps the findings about a string. In a raw string the lines are known, of other strings,
// whose text is empty here, the place where they begin.
func (g *goCode) report(e ast.Expr, text string, found []Finding) {
	at := g.fset.Position(e.Pos())
	literal, ok := ast.Unparen(e).(*ast.BasicLit)
	ok = ok && strings.HasPrefix(literal.Value, "`")
	for _, f := range found {
		f.File, f.Line, f.Column = relative(at.Filename), at.Line, at.Column
		if before := text[:min(f.offset, len(text))]; ok {
			f.Line += strings.Count(before, "\n")
			f.Column += len(before) + 1
			if i := strings.LastIndexByte(before, '\n'); i >= 0 {
				f.Column = len(before) - i
			}
		}
		if key := f.String(); !g.seen[key] {
			g.seen[key] = true
			g.findings = append(g.findings, f)
		}
	}
}

var (
	named      = regexp.MustCompile(`(^|[^:\w]):[A-Za-z_][\w.]*`)
	gormNamed  = regexp.MustCompile(`(^|[^@\w'])@[A-Za-z_]\w*`)
	tableParam = regexp.MustCompile(`(?i)(\bINTO\s+)\?`)
)

// arguments puts placeholders in the place of the named arguments that sqlx and GORM have, and a
// hole in that of a table that GORM and bun take as an argument.
func arguments(text string, fn *types.Func) string {
	blank := func(s, sign string) string {
		at := strings.Index(s, sign)
		return s[:at] + "?" + strings.Repeat(" ", len(s)-at-1)
	}
	pkg := ""
	if fn.Pkg() != nil {
		pkg = path.Base(fn.Pkg().Path())
	}
	switch {
	case strings.Contains(fn.Name(), "Named"):
		return named.ReplaceAllStringFunc(text, func(s string) string { return blank(s, ":") })
	case pkg == "gorm":
		text = gormNamed.ReplaceAllStringFunc(text, func(s string) string { return blank(s, "@") })
		fallthrough
	case pkg == "bun":
		return tableParam.ReplaceAllString(text, "${1}"+hole)
	}
	return text
}

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
