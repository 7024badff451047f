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
	"runtime/debug"
	"slices"
	"strings"
)

// maxMemory is the memory in bytes above which Packages collects garbage more often.
const maxMemory = 288 << 20

// Packages checks the statements of Go packages: the strings that reach the methods of
// database/sql, sqlx, GORM and bun, and the tables that query builders insert into. It
// includes the packages' tests if tests is set.
func (l *Linter) Packages(patterns []string, tests bool) error {
	// Statements need few of the many objects that the type checker makes.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(maxMemory))
	loaded, err := load(patterns, tests, l.Progress)
	if err != nil {
		return err
	}
	l.summary.Packages += len(loaded.roots)
	l.summary.Warnings = append(l.summary.Warnings, loaded.warnings()...)
	g := &goCode{l, evaluator{source: newSource(loaded)}}
	for _, visit := range []func(ast.Node){g.node, g.unsent} {
		for _, p := range loaded.roots {
			for _, file := range p.Syntax {
				for n := range ast.Preorder(file) {
					visit(n)
				}
			}
		}
	}
	return nil
}

type goCode struct {
	*Linter
	evaluator
}

var (
	// sends matches the functions that send a query. The query is their first argument of type
	// string, after a context or a destination.
	sends = regexp.MustCompile(`^(Must|Named)?(Exec|Query|QueryRow|Queryx|QueryRowx|` +
		`Prepare|Preparex|PrepareNamed|Get|Select|Raw|NewRaw)(Context)?$`)
	// stores matches the methods of GORM and xorm that insert into the table of an earlier
	// Table call.
	stores = regexp.MustCompile(`^(Create|CreateInBatches|Save|FirstOrCreate|Insert|InsertOne|InsertMulti)$`)
	// tables matches the methods that name the table of bun's NewInsert.
	tables = regexp.MustCompile(`^(Table|TableExpr|ModelTableExpr)$`)
	// inserts matches the functions of query builders that take the table of an INSERT.
	inserts = regexp.MustCompile(`^(Insert|InsertInto|ReplaceInto|Into)$`)
)

// maxChoices limits the variants of a statement that are checked.
const maxChoices = 8

func (g *goCode) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Name.Name == "TableName" && n.Recv != nil {
			for _, results := range g.functions[g.info.Defs[n.Name]].results {
				g.builderTable(results[0])
			}
		}
	case *ast.CallExpr:
		name := g.name(n)
		if sends.MatchString(name) {
			g.query(n)
		}
		switch {
		case stores.MatchString(name) && g.storesModel(n), name == "NewInsert":
			g.uncheck(n)
		}
		switch {
		case stores.MatchString(name):
			g.chain(receiver(n), 0, func(call *ast.CallExpr) {
				if table := g.tableOf(call); table != nil && g.name(call) == "Table" {
					g.table(table)
				}
			})
		case tables.MatchString(name):
			g.chain(receiver(n), 0, func(call *ast.CallExpr) {
				if g.name(call) == "NewInsert" {
					g.table(n.Args[0])
				}
			})
		}
		if table := g.tableOf(n); table != nil && inserts.MatchString(name) {
			g.builderTable(table)
			if len(g.lookup("", plain(g.text(table)))) > 0 {
				g.uncheck(n)
			}
		}
	}
}

// storesModel reports whether a call passes a model to a parameter of any type.
func (g *goCode) storesModel(call *ast.CallExpr) bool {
	params := g.function(call).Signature().Params()
	if len(call.Args) == 0 || params.Len() == 0 || params.Len() > 2 {
		return false
	}
	typ, arg := params.At(params.Len()-1).Type(), g.info.TypeOf(call.Args[min(params.Len(), len(call.Args))-1])
	if list, ok := typ.(*types.Slice); ok && g.function(call).Signature().Variadic() {
		typ = list.Elem()
	}
	return types.IsInterface(typ) && !isString(arg) && (arg == nil || !types.IsInterface(arg))
}

// uncheck counts a call that may store rows and isn't checked.
func (g *goCode) uncheck(call *ast.CallExpr) {
	if g.unchecked == nil {
		g.unchecked = map[token.Position]bool{}
	}
	g.unchecked[g.position(call)] = true
}

func (g *goCode) tableOf(call *ast.CallExpr) ast.Expr {
	if len(call.Args) > 0 && isString(g.info.TypeOf(call.Args[0])) {
		return call.Args[0]
	}
	return nil
}

// chain visits the calls of a chain such as db.Table(…).Where(…). It follows variables, and
// functions that return part of the chain or are passed to Scopes.
func (g *goCode) chain(e ast.Expr, depth int, visit func(*ast.CallExpr)) {
	if depth == maxWithin {
		return
	}
	for _, value := range g.values[g.variable(e)] {
		g.chain(value.expr, depth+1, visit)
	}
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return
	}
	visit(call)
	g.chain(receiver(call), depth, visit)
	made := []ast.Expr{call}
	if g.name(call) == "Scopes" {
		made = append(made, call.Args...)
	}
	for _, e := range made {
		if of, ok := ast.Unparen(e).(*ast.CallExpr); ok {
			for _, results := range g.functionOf(of).results {
				g.inspect(results[0], depth, visit)
			}
		}
	}
}

// inspect visits the calls of a function's result, which may be a function literal.
func (g *goCode) inspect(e ast.Expr, depth int, visit func(*ast.CallExpr)) {
	literal, ok := e.(*ast.FuncLit)
	if !ok {
		g.chain(e, depth+1, visit)
		return
	}
	for n := range ast.Preorder(literal) {
		if call, ok := n.(*ast.CallExpr); ok {
			visit(call)
		}
	}
}

// query checks the statements that a call may send.
func (g *goCode) query(call *ast.CallExpr) {
	fn := g.function(call)
	params := fn.Signature().Params()
	for i := range min(params.Len(), len(call.Args)) {
		isQuery := isString(params.At(i).Type())
		if i == 0 && fn.Signature().Variadic() { // xorm's Exec(sqlOrArgs ...any)
			isQuery = isQuery || isString(g.info.TypeOf(call.Args[0]))
		}
		if !isQuery {
			continue
		}
		first, choices := g.evaluator, 1
		first.first, first.choices = true, &choices
		for ; first.choice < min(choices, maxChoices); first.choice++ {
			for _, c := range first.candidates(call.Args[i]) {
				g.send(c, call.Args[i], fn)
			}
		}
		return
	}
}

// send checks one statement that a call of fn sends. arg is the argument of the call.
func (g *goCode) send(c candidate, arg ast.Expr, fn *types.Func) {
	if c.at != nil {
		arg = c.at
	}
	plain := plain(c.text)
	text := arguments(plain, fn)
	g.count(g.position(arg), text)
	if plain != c.text || strings.Contains(text, hole) {
		g.found(arg, "", g.composed(text))
	} else {
		g.found(arg, plain, g.Statement(text))
	}
}

// unsent checks an INSERT that reaches no known function. An unknown function may send it. Of
// INSERTs that are computed, only those with a computed table are reported.
func (g *goCode) unsent(n ast.Node) {
	if call, ok := n.(*ast.CallExpr); ok && g.prints(call) {
		for _, arg := range call.Args {
			g.used[ast.Unparen(arg)] = true
		}
	}
	e, ok := n.(ast.Expr)
	switch n.(type) {
	case *ast.BinaryExpr, *ast.CallExpr, *ast.BasicLit, *ast.Ident:
	default:
		return
	}
	if !ok || g.used[e] || !isString(g.info.TypeOf(e)) {
		return
	}
	isConstant := g.info.Types[e].Value != nil
	if id, ok := e.(*ast.Ident); ok {
		if e = g.constants[g.info.Uses[id]]; e == nil {
			return
		}
	}
	text := plain(g.text(e))
	if !g.read(text).isInsert() {
		return
	}
	if !isConstant {
		g.found(e, "", slices.DeleteFunc(g.composed(text), func(f Finding) bool { return !f.computed }))
		return
	}
	found := g.Statement(text)
	for i, f := range found {
		if f.Outcome != Foreign {
			found[i].Outcome = Unknown
			found[i].Reason = fmt.Sprintf("reaches no function that lint knows; if it is sent: %s, %s", f.Outcome, f.Reason)
		}
	}
	g.found(e, text, found)
}

// prints reports whether a call can't send its arguments.
func (g *goCode) prints(call *ast.CallExpr) bool {
	fn := g.function(call)
	return fn != nil && fn.Pkg() != nil &&
		slices.Contains([]string{"errors", "fmt", "log", "log/slog", "testing"}, fn.Pkg().Path())
}

// table checks the table that a query builder inserts into.
func (g *goCode) table(e ast.Expr) {
	if text := strings.ReplaceAll(plain(g.text(e)), "?", hole); strings.Contains(text, hole) {
		g.found(e, "", g.composed("INSERT INTO "+text+" VALUES ()"))
	}
}

// builderTable is like table for functions of any package. It ignores tables whose name is
// wholly unknown.
func (g *goCode) builderTable(e ast.Expr) {
	if strings.Trim(plain(g.text(e)), hole+" `\"") != "" {
		g.table(e)
	}
}

// position returns the place of an expression, relative to the working directory.
func (g *goCode) position(e ast.Expr) token.Position {
	at := g.fset.Position(e.Pos())
	at.Filename = relative(at.Filename)
	return at
}

// found reports findings about a string expression. If it is a raw string with content text,
// findings have their place in it. Other findings have the place of the expression.
func (g *goCode) found(e ast.Expr, text string, found []Finding) {
	start := g.position(e)
	if literal, ok := ast.Unparen(e).(*ast.BasicLit); ok && strings.HasPrefix(literal.Value, "`") {
		start.Column++
	} else {
		text = ""
	}
	g.report(start, text, found)
}

var (
	named      = regexp.MustCompile(`(^|[^:\w]):[A-Za-z_][\w.]*`)
	gormNamed  = regexp.MustCompile(`(^|[^@\w'])@[A-Za-z_]\w*`)
	tableParam = regexp.MustCompile(`(?i)(\bINTO\s+)\?`)
)

// arguments replaces the named arguments of sqlx and GORM with placeholders, and a table that
// GORM and bun take as an argument with a hole.
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

// relative returns a file's name relative to the working directory, if the file is below it.
func relative(name string) string {
	if wd, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(wd, name); err == nil && !strings.HasPrefix(short, "..") {
			return short
		}
	}
	return name
}
