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

func (s *source) declaration(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Body != nil {
			s.functions[s.info.Defs[n.Name]] = s.read(n.Type, n.Body)
		}
	case *ast.AssignStmt:
		for i, right := range n.Rhs {
			s.literal(n.Lhs[i], right)
		}
	case *ast.ValueSpec:
		for i, right := range n.Values {
			s.literal(n.Names[i], right)
			s.constant(n.Names[i], right)
		}
	}
	return true
}

// constant records the value of a constant. What counts is where the constant is used.
func (s *source) constant(name *ast.Ident, value ast.Expr) {
	if c, ok := s.info.Defs[name].(*types.Const); ok {
		s.constants[c] = value
		for n := range ast.Preorder(value) {
			if part, ok := n.(ast.Expr); ok {
				s.used[part] = true
			}
		}
	}
}

func (s *source) literal(left, right ast.Expr) {
	literal, ok := right.(*ast.FuncLit)
	if v := s.variable(left); ok && v != nil {
		s.functions[v] = s.read(literal.Type, literal.Body)
	}
}

// read returns a function's parameters and results.
func (s *source) read(typ *ast.FuncType, body *ast.BlockStmt) (f function) {
	names := func(list *ast.FieldList) (names []*ast.Ident) {
		if list != nil {
			for _, field := range list.List {
				names = append(names, field.Names...)
			}
		}
		return names
	}
	for _, id := range names(typ.Params) {
		f.params = append(f.params, s.variable(id))
	}
	var named []ast.Expr
	for _, id := range names(typ.Results) {
		named = append(named, id)
		s.declared[s.variable(id)] = true
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
func (s *source) statement(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.CaseClause, *ast.CommClause:
		ast.Inspect(n, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.AssignStmt, *ast.CallExpr:
				s.loose[n] = true
			}
			return true
		})
		if r, ok := n.(*ast.RangeStmt); ok {
			s.unknown(r.Key)
			s.unknown(r.Value)
		}
	case *ast.AssignStmt:
		s.assignment(n)
	case *ast.IncDecStmt:
		s.unknown(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.AND && s.builder(n.X) == nil {
			s.unknown(n.X)
		}
	case *ast.ValueSpec:
		for i, id := range n.Names {
			if len(n.Values) > 0 {
				s.set(id, n.Values, i)
			} else if v := s.variable(id); v != nil {
				s.declared[v] = true
			}
		}
	case *ast.CompositeLit:
		for _, element := range n.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				if v := s.variable(pair.Key); v != nil && v.IsField() {
					s.values[v] = append(s.values[v], value{expr: pair.Value})
				}
			}
		}
	case *ast.CallExpr:
		s.call(n)
	}
	return true
}

func (s *source) unknown(e ast.Expr) {
	if v := s.variable(e); v != nil {
		s.values[v] = append(s.values[v], value{})
	}
}

// set records that a variable is set to value i of a list, or to result i of a call.
func (s *source) set(left ast.Expr, list []ast.Expr, i int) {
	v := s.variable(left)
	switch {
	case v == nil:
	case len(list) == 1 && i > 0:
		s.values[v] = append(s.values[v], value{list[0], i})
	default:
		s.values[v] = append(s.values[v], value{expr: list[i]})
	}
}

func (s *source) assignment(n *ast.AssignStmt) {
	for i, left := range n.Lhs {
		v := s.variable(left)
		if v == nil {
			continue
		}
		var more ast.Expr
		switch {
		case n.Tok == token.ADD_ASSIGN:
			more = n.Rhs[0]
		case n.Tok != token.ASSIGN && n.Tok != token.DEFINE:
			s.unknown(left)
			continue
		case len(n.Lhs) == len(n.Rhs):
			more = s.addition(v, n.Rhs[i]) // q = q + more
		}
		if more != nil && (isString(v.Type()) || isList(v.Type())) {
			s.added[v] = append(s.added[v], more)
			s.loose[more] = s.loose[n]
		} else if more != nil {
			s.unknown(left)
		} else {
			s.set(left, n.Rhs, i)
		}
	}
}

// addition returns the part that an expression adds to a variable: more of q + more, or the
// new elements of append. It returns nil for other expressions.
func (s *source) addition(v *types.Var, e ast.Expr) ast.Expr {
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok && !call.Ellipsis.IsValid() && isList(v.Type()) &&
		s.callee(call) == types.Universe.Lookup("append") && s.variable(call.Args[0]) == v {
		return &ast.CompositeLit{Elts: call.Args[1:]}
	}
	sum, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok || sum.Op != token.ADD {
		return nil
	}
	if s.variable(sum.X) == v {
		s.used[sum] = true
		return sum.Y
	}
	if left := s.addition(v, sum.X); left != nil {
		s.used[sum] = true
		return &ast.BinaryExpr{X: left, OpPos: sum.OpPos, Op: token.ADD, Y: sum.Y}
	}
	return nil
}

// call records the writes of a call to a builder, and the arguments of a function.
func (s *source) call(n *ast.CallExpr) {
	if method, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok {
		writes := strings.HasPrefix(method.Sel.Name, "Write") || method.Sel.Name == "Reset"
		if v := s.builder(method.X); v != nil && writes {
			s.written[v] = append(s.written[v], n)
		}
	}
	params := s.functionOf(n).params
	for i, arg := range n.Args {
		if v := s.builder(arg); v != nil {
			s.written[v] = append(s.written[v], n)
		}
		if i < len(params) && params[i] != nil && !n.Ellipsis.IsValid() {
			s.values[params[i]] = append(s.values[params[i]], value{expr: arg})
		}
	}
}

// variable returns the variable or field of an expression v, &v or x.v, or nil.
func (s *source) variable(e ast.Expr) *types.Var {
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
	v, _ := s.info.ObjectOf(id).(*types.Var)
	return v
}

// builder returns the variable of an expression if it is a strings.Builder or bytes.Buffer.
func (s *source) builder(e ast.Expr) *types.Var {
	v := s.variable(e)
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
func (s *source) callee(call *ast.CallExpr) types.Object {
	o := typeutil.Callee(&s.info, call)
	if fn, ok := o.(*types.Func); ok {
		return fn.Origin()
	}
	return o
}

func (s *source) function(call *ast.CallExpr) *types.Func {
	fn, _ := s.callee(call).(*types.Func)
	return fn
}

func (s *source) name(call *ast.CallExpr) string {
	if fn := s.function(call); fn != nil {
		return fn.Name()
	}
	return ""
}

func (s *source) functionOf(call *ast.CallExpr) function { return s.functions[s.callee(call)] }

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
