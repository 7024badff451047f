package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// source is the Go code of a program, with the values of its variables, in the order of the code.
type source struct {
	*loader
	values    map[*types.Var][]value
	added     map[*types.Var][]ast.Expr      // the right operands of +=
	written   map[*types.Var][]*ast.CallExpr // the calls that write to a strings.Builder or bytes.Buffer
	declared  map[*types.Var]bool            // the variables declared without a value
	constants map[types.Object]ast.Expr      // the values of constants that no checked query has
	functions map[types.Object]function
	// loose are the calls and assignments in conditions and loops, which may run never or
	// several times.
	loose map[ast.Node]bool
	// used are the expressions that are part of a query that was already checked.
	used map[ast.Expr]bool
}

type value struct {
	expr   ast.Expr // nil if the value is unknown
	result int      // index of the result, if expr is a call with several results
}

// function is a function whose body is known.
type function struct {
	params  []*types.Var
	results [][]ast.Expr // of each return
}

// newSource reads the files of packages.
func newSource(l *loader) *source {
	s := &source{
		loader: l,
		values: map[*types.Var][]value{}, added: map[*types.Var][]ast.Expr{}, written: map[*types.Var][]*ast.CallExpr{},
		declared: map[*types.Var]bool{}, constants: map[types.Object]ast.Expr{}, functions: map[types.Object]function{},
		loose: map[ast.Node]bool{}, used: map[ast.Expr]bool{},
	}
	// The second pass needs the functions of all files, for their calls.
	for _, read := range []func(ast.Node) bool{s.declaration, s.statement} {
		for _, file := range l.files {
			ast.Inspect(file, read)
		}
	}
	return s
}

func (so *source) declaration(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Body != nil {
			so.functions[so.info.Defs[n.Name]] = so.read(n.Type, n.Body)
		}
	case *ast.AssignStmt:
		for i, right := range n.Rhs {
			so.literal(n.Lhs[i], right)
		}
	case *ast.ValueSpec:
		for i, right := range n.Values {
			so.literal(n.Names[i], right)
			so.constant(n.Names[i], right)
		}
	}
	return true
}

// constant records the value of a constant. What counts is where the constant is used.
func (so *source) constant(name *ast.Ident, value ast.Expr) {
	if c, ok := so.info.Defs[name].(*types.Const); ok {
		so.constants[c] = value
		for n := range ast.Preorder(value) {
			if part, ok := n.(ast.Expr); ok {
				so.used[part] = true
			}
		}
	}
}

func (so *source) literal(left, right ast.Expr) {
	literal, ok := right.(*ast.FuncLit)
	if v := so.variable(left); ok && v != nil {
		so.functions[v] = so.read(literal.Type, literal.Body)
	}
}

// read returns a function's parameters and results.
func (so *source) read(typ *ast.FuncType, body *ast.BlockStmt) (f function) {
	names := func(list *ast.FieldList) (names []*ast.Ident) {
		if list != nil {
			for _, field := range list.List {
				names = append(names, field.Names...)
			}
		}
		return names
	}
	for _, id := range names(typ.Params) {
		f.params = append(f.params, so.variable(id))
	}
	var named []ast.Expr
	for _, id := range names(typ.Results) {
		named = append(named, id)
		so.declared[so.variable(id)] = true
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			if len(n.Results) > 0 {
				f.results = append(f.results, n.Results)
			} else if len(named) > 0 {
				f.results = append(f.results, named)
			}
		}
		return true
	})
	return f
}

// statement records the values that n sets variables to.
func (so *source) statement(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.CaseClause, *ast.CommClause:
		ast.Inspect(n, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.AssignStmt, *ast.CallExpr:
				so.loose[n] = true
			}
			return true
		})
		if r, ok := n.(*ast.RangeStmt); ok {
			so.unknown(r.Key)
			so.unknown(r.Value)
		}
	case *ast.AssignStmt:
		so.assignment(n)
	case *ast.IncDecStmt:
		so.unknown(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.AND && so.builder(n.X) == nil {
			so.unknown(n.X)
		}
	case *ast.ValueSpec:
		for i, id := range n.Names {
			if len(n.Values) > 0 {
				so.set(id, n.Values, i)
			} else if v := so.variable(id); v != nil {
				so.declared[v] = true
			}
		}
	case *ast.CompositeLit:
		for _, element := range n.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				if v := so.variable(pair.Key); v != nil && v.IsField() {
					so.values[v] = append(so.values[v], value{expr: pair.Value})
				}
			}
		}
	case *ast.CallExpr:
		so.call(n)
	}
	return true
}

func (so *source) unknown(e ast.Expr) {
	if v := so.variable(e); v != nil {
		so.values[v] = append(so.values[v], value{})
	}
}

// set records that a variable is set to value i of a list, or to result i of a call.
func (so *source) set(left ast.Expr, list []ast.Expr, i int) {
	v := so.variable(left)
	switch {
	case v == nil:
	case len(list) == 1 && i > 0:
		so.values[v] = append(so.values[v], value{list[0], i})
	default:
		so.values[v] = append(so.values[v], value{expr: list[i]})
	}
}

func (so *source) assignment(n *ast.AssignStmt) {
	for i, left := range n.Lhs {
		v := so.variable(left)
		if v == nil {
			continue
		}
		var more ast.Expr
		switch {
		case n.Tok == token.ADD_ASSIGN:
			more = n.Rhs[0]
		case n.Tok != token.ASSIGN && n.Tok != token.DEFINE:
			so.unknown(left)
			continue
		case len(n.Lhs) == len(n.Rhs):
			more = so.addition(v, n.Rhs[i]) // q = q + more
		}
		if more != nil && (isString(v.Type()) || isList(v.Type())) {
			so.added[v] = append(so.added[v], more)
			so.loose[more] = so.loose[n]
		} else if more != nil {
			so.unknown(left)
		} else {
			so.set(left, n.Rhs, i)
		}
	}
}

// addition returns the part that an expression adds to a variable: more of q + more, or the
// new elements of append. It returns nil for other expressions.
func (so *source) addition(v *types.Var, e ast.Expr) ast.Expr {
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok && !call.Ellipsis.IsValid() && isList(v.Type()) &&
		so.callee(call) == types.Universe.Lookup("append") && so.variable(call.Args[0]) == v {
		return &ast.CompositeLit{Elts: call.Args[1:]}
	}
	sum, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok || sum.Op != token.ADD {
		return nil
	}
	if so.variable(sum.X) == v {
		so.used[sum] = true
		return sum.Y
	}
	if left := so.addition(v, sum.X); left != nil {
		so.used[sum] = true
		return &ast.BinaryExpr{X: left, OpPos: sum.OpPos, Op: token.ADD, Y: sum.Y}
	}
	return nil
}

// call records the writes of a call to a builder, and the arguments of a function.
func (so *source) call(n *ast.CallExpr) {
	if method, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok {
		writes := strings.HasPrefix(method.Sel.Name, "Write") || method.Sel.Name == "Reset"
		if v := so.builder(method.X); v != nil && writes {
			so.written[v] = append(so.written[v], n)
		}
	}
	params := so.functionOf(n).params
	for i, arg := range n.Args {
		if v := so.builder(arg); v != nil {
			so.written[v] = append(so.written[v], n)
		}
		if i < len(params) && params[i] != nil && !n.Ellipsis.IsValid() {
			so.values[params[i]] = append(so.values[params[i]], value{expr: arg})
		}
	}
}

// variable returns the variable or field of an expression v, &v or x.v, or nil.
func (so *source) variable(e ast.Expr) *types.Var {
	if e == nil {
		return nil
	}
	e = ast.Unparen(e)
	if address, ok := e.(*ast.UnaryExpr); ok && address.Op == token.AND {
		e = ast.Unparen(address.X)
	}
	if selector, ok := e.(*ast.SelectorExpr); ok {
		e = selector.Sel
	}
	id, ok := e.(*ast.Ident)
	if !ok {
		return nil
	}
	v, _ := so.info.ObjectOf(id).(*types.Var)
	return v
}

// builder returns the variable of an expression if it is a strings.Builder or bytes.Buffer.
func (so *source) builder(e ast.Expr) *types.Var {
	v := so.variable(e)
	if v == nil {
		return nil
	}
	switch strings.TrimPrefix(v.Type().String(), "*") {
	case "strings.Builder", "bytes.Buffer":
		return v
	}
	return nil
}

// callee returns the called function, or the variable that holds it.
func (so *source) callee(call *ast.CallExpr) types.Object {
	o := typeutil.Callee(&so.info, call)
	if fn, ok := o.(*types.Func); ok {
		return fn.Origin()
	}
	return o
}

func (so *source) function(call *ast.CallExpr) *types.Func {
	fn, _ := so.callee(call).(*types.Func)
	return fn
}

func (so *source) name(call *ast.CallExpr) string {
	if fn := so.function(call); fn != nil {
		return fn.Name()
	}
	return ""
}

func (so *source) functionOf(call *ast.CallExpr) function { return so.functions[so.callee(call)] }

func isString(t types.Type) bool {
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

func isList(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Slice:
		return isString(t.Elem())
	case *types.Array:
		return isString(t.Elem())
	}
	return false
}
