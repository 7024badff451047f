package lint

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// hole stands in a query for what is known only when the program runs. It can be part
// of a name: t_order_ and a hole is a table.
const hole = "\uFFFC"

// query is what an expression may be at run time.
type query struct {
	at   ast.Expr
	text string
	// composed: parts may be missing or repeated, as a loop or a condition adds them.
	composed bool
}

// variables are the strings that a package's variables are set to, in the order of the
// source.
type variables struct {
	set      map[*types.Var][]ast.Expr      // by = and :=
	added    map[*types.Var][]ast.Expr      // by +=
	written  map[*types.Var][]*ast.CallExpr // to a strings.Builder or bytes.Buffer
	declared map[*types.Var]bool            // without a value
}

// variables reads the package once.
func (g *goPackage) variables() *variables {
	if g.vars != nil {
		return g.vars
	}
	g.vars = &variables{
		set: map[*types.Var][]ast.Expr{}, added: map[*types.Var][]ast.Expr{}, written: map[*types.Var][]*ast.CallExpr{},
		declared: map[*types.Var]bool{},
	}
	for _, file := range g.Syntax {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				g.assignment(n)
			case *ast.ValueSpec:
				for i, id := range n.Names {
					if v := g.variable(id); v != nil && i < len(n.Values) {
						g.vars.set[v] = append(g.vars.set[v], n.Values[i])
					} else if v != nil && len(n.Values) == 0 {
						g.vars.declared[v] = true
					}
				}
			case *ast.CallExpr:
				if v := g.variable(g.writer(n)); v != nil {
					g.vars.written[v] = append(g.vars.written[v], n)
				}
			}
			return true
		})
	}
	return g.vars
}

func (g *goPackage) assignment(n *ast.AssignStmt) {
	if len(n.Lhs) != len(n.Rhs) {
		return
	}
	for i, left := range n.Lhs {
		v := g.variable(left)
		if v == nil {
			continue
		}
		more, ok := n.Rhs[i], n.Tok == token.ADD_ASSIGN
		if !ok {
			more, ok = g.addition(v, n.Rhs[i]) // q = q + more
		}
		if ok {
			g.vars.added[v] = append(g.vars.added[v], more)
		} else {
			g.vars.set[v] = append(g.vars.set[v], n.Rhs[i])
		}
	}
}

// addition returns what an expression adds to a variable.
func (g *goPackage) addition(v *types.Var, e ast.Expr) (more ast.Expr, ok bool) {
	sum, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok || sum.Op != token.ADD {
		return e, false
	}
	if g.variable(sum.X) == v {
		return sum.Y, true
	}
	left, ok := g.addition(v, sum.X)
	if !ok {
		return e, false
	}
	return &ast.BinaryExpr{X: left, OpPos: sum.OpPos, Op: token.ADD, Y: sum.Y}, true
}

// variable is the one that an expression names: v or &v.
func (g *goPackage) variable(e ast.Expr) *types.Var {
	if e == nil {
		return nil
	}
	e = ast.Unparen(e)
	if address, ok := e.(*ast.UnaryExpr); ok && address.Op == token.AND {
		e = ast.Unparen(address.X)
	}
	id, ok := e.(*ast.Ident)
	if !ok {
		return nil
	}
	v, _ := g.TypesInfo.ObjectOf(id).(*types.Var)
	return v
}

// writer is what a call writes a string to, or resets.
func (g *goPackage) writer(call *ast.CallExpr) ast.Expr {
	fn := g.function(call)
	if fn == nil {
		return nil
	}
	switch name := fn.FullName(); {
	case strings.HasPrefix(name, "fmt.Fprint") && len(call.Args) > 0:
		return call.Args[0]
	case strings.HasPrefix(name, "(*strings.Builder)."), strings.HasPrefix(name, "(*bytes.Buffer)."):
		s, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if ok && (strings.HasPrefix(fn.Name(), "Write") || fn.Name() == "Reset") {
			return s.X
		}
	}
	return nil
}

// queries are the strings that an argument may be: of a variable, each that it is set
// to.
func (g *goPackage) queries(arg ast.Expr) (list []query) {
	c := composer{goPackage: g}
	v := g.variable(arg)
	if v == nil || g.TypesInfo.Types[arg].Value != nil {
		text := c.text(arg)
		return []query{{arg, text, c.composed}}
	}
	vars := g.variables()
	tail := c.all(vars.added[v])
	for _, set := range vars.set[v] {
		of := composer{goPackage: g}
		text := of.text(set)
		list = append(list, query{set, text + tail, of.composed || len(vars.added[v]) > 0})
	}
	if len(list) == 0 {
		text := c.text(arg)
		list = []query{{arg, text, c.composed}}
	}
	return list
}

// composer puts together what is known of one expression.
type composer struct {
	*goPackage
	within   []*types.Var // those that are being looked at
	composed bool
}

// maxWithin bounds how many variables lead to one another.
const maxWithin = 8

func (c *composer) all(list []ast.Expr) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString(c.text(e))
	}
	return b.String()
}

// text is an expression with a hole for each part that is not known.
func (c *composer) text(e ast.Expr) string {
	e = ast.Unparen(e)
	if v := c.TypesInfo.Types[e].Value; v != nil {
		switch v.Kind() {
		case constant.String:
			return constant.StringVal(v)
		case constant.Int:
			return v.ExactString()
		}
		return hole
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return c.text(e.X) + c.text(e.Y)
		}
	case *ast.Ident:
		return c.ident(e)
	case *ast.CallExpr:
		return c.call(e)
	}
	return hole
}

// ident is a variable that is set once.
func (c *composer) ident(e *ast.Ident) string {
	v, vars := c.variable(e), c.variables()
	if v == nil || slices.Contains(c.within, v) || len(c.within) == maxWithin {
		return hole
	}
	set, added := vars.set[v], vars.added[v]
	c.within = append(c.within, v)
	defer func() { c.within = c.within[:len(c.within)-1] }()
	text := hole
	switch {
	case len(set) == 1:
		text = c.text(set[0])
	case len(set) == 0 && vars.declared[v] && len(added) > 0:
		text = ""
	}
	c.composed = c.composed || len(added) > 0
	return text + c.all(added)
}

func (c *composer) call(e *ast.CallExpr) string {
	if c.TypesInfo.Types[e.Fun].IsType() && len(e.Args) == 1 { // string(x)
		return c.text(e.Args[0])
	}
	fn := c.function(e)
	if fn == nil {
		return hole
	}
	switch name := fn.FullName(); {
	case name == "fmt.Sprintf" && len(e.Args) > 0 && !e.Ellipsis.IsValid():
		return c.format(e.Args[0], e.Args[1:])
	case name == "fmt.Sprint":
		return c.all(e.Args)
	case name == "strings.Replace" || name == "strings.ReplaceAll":
		return c.replace(e.Args)
	case name == "strings.Join":
		return c.join(e.Args)
	case name == "(*strings.Builder).String" || name == "(*bytes.Buffer).String":
		return c.built(e)
	}
	// What another function makes of its arguments is not known; most keep the query.
	text := hole
	for _, arg := range e.Args {
		if t, ok := c.TypesInfo.TypeOf(arg).Underlying().(*types.Basic); ok && t.Info()&types.IsString != 0 {
			text += " " + c.text(arg) + hole
		}
	}
	return text
}

var formatVerb = regexp.MustCompile(`%[-+# 0]*(?:\[\d+\])?(?:\*|\d+)?(?:\.(?:\*|\d*))?(?:\[\d+\])?(.)`)

// format is what Sprintf makes: an argument's constant for %s, %d and %v, a hole for
// other verbs and arguments.
func (c *composer) format(format ast.Expr, args []ast.Expr) string {
	next := 0
	return formatVerb.ReplaceAllStringFunc(c.text(format), func(verb string) string {
		if verb[len(verb)-1] == '%' {
			return "%"
		}
		if strings.ContainsAny(verb, "[*") {
			next = len(args) // their order is not followed
			return hole
		}
		if next++; next > len(args) || len(verb) != 2 || !strings.ContainsAny(verb, "sdv") {
			return hole
		}
		return c.text(args[next-1])
	})
}

// replace is what strings.Replace and ReplaceAll make.
func (c *composer) replace(args []ast.Expr) string {
	if len(args) < 3 {
		return hole
	}
	text, old := c.text(args[0]), c.text(args[1])
	if old == "" || strings.Contains(old, hole) {
		return hole + text + hole
	}
	return strings.ReplaceAll(text, old, c.text(args[2]))
}

// join is what strings.Join makes of a list that is written there.
func (c *composer) join(args []ast.Expr) string {
	if len(args) != 2 {
		return hole
	}
	list, ok := ast.Unparen(args[0]).(*ast.CompositeLit)
	if !ok {
		return hole
	}
	parts := make([]string, len(list.Elts))
	for i, e := range list.Elts {
		parts[i] = c.text(e)
	}
	return strings.Join(parts, c.text(args[1]))
}

// built is what was written to a builder since it was reset.
func (c *composer) built(e *ast.CallExpr) string {
	s, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
	if !ok {
		return hole
	}
	v := c.variable(s.X)
	if v == nil || slices.Contains(c.within, v) || len(c.within) == maxWithin {
		return hole
	}
	c.within = append(c.within, v)
	defer func() { c.within = c.within[:len(c.within)-1] }()
	var b strings.Builder
	for _, call := range c.variables().written[v] {
		if call.Pos() > e.Pos() {
			break
		}
		switch fn := c.function(call); fn.Name() {
		case "Reset":
			b.Reset()
		case "WriteString":
			b.WriteString(c.all(call.Args))
		case "WriteByte", "WriteRune":
			b.WriteString(c.character(call.Args))
		case "Fprintf":
			b.WriteString(c.format(call.Args[1], call.Args[2:]))
		case "Fprint":
			b.WriteString(c.all(call.Args[1:]))
		default:
			b.WriteString(hole)
		}
	}
	c.composed = true
	return b.String()
}

func (c *composer) character(args []ast.Expr) string {
	if len(args) != 1 {
		return hole
	}
	v := c.TypesInfo.Types[args[0]].Value
	if v == nil {
		return hole
	}
	n, ok := constant.Int64Val(constant.ToInt(v))
	if !ok {
		return hole
	}
	return string(rune(n))
}
