package lint

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// hole stands in a query for what is known only when the program runs. It can be part of a name:
// t_order_ and a hole is a table.
const hole = "\uFFFC"

// query is what an expression may be at run time.
type query struct {
	at   ast.Expr
	text string
	// composed: parts may be missing or repeated, as a loop or a condition adds them.
	composed bool
}

// maxWithin bounds how many variables and functions lead to one another.
const maxWithin = 8

// queries returns the strings that an argument may be: one for each value of the variable that it
// begins with, and for each return of the function that it calls.
func (s *source) queries(arg ast.Expr, within []*types.Var) (list []query) {
	v := s.first(arg)
	if v == nil || len(s.values[v]) == 0 || slices.Contains(within, v) || len(within) == maxWithin {
		c := &composer{source: s}
		for _, text := range c.texts(arg) {
			list = append(list, query{arg, text, c.composed})
		}
		return list
	}
	for _, value := range s.values[v] {
		if value.expr == nil {
			continue
		}
		of := s.queries(value.expr, append(slices.Clone(within), v))
		if value.result > 0 {
			c := &composer{source: s}
			of = []query{{value.expr, c.result(value), c.composed}}
		}
		for _, q := range of {
			c := &composer{source: s, composed: q.composed}
			c.bound = map[*types.Var]string{v: q.text + c.all(s.added[v])}
			list = append(list, query{q.at, c.text(arg), c.composed})
		}
	}
	return list
}

// first returns the variable that the string of an expression begins with.
func (s *source) first(e ast.Expr) *types.Var {
	e = ast.Unparen(e)
	if s.info.Types[e].Value != nil {
		return nil
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return s.first(e.X)
	case *ast.CallExpr:
		fn := s.function(e)
		if fn != nil && fn.Pkg() != nil && (fn.Pkg().Path() == "strings" || fn.Name() == "Sprintf") && len(e.Args) > 0 {
			return s.first(e.Args[0])
		}
		return nil
	}
	if v := s.variable(e); v != nil && isString(v.Type()) {
		return v
	}
	return nil
}

func isString(t types.Type) bool {
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

// composer puts together what is known of one expression.
type composer struct {
	*source
	bound    map[*types.Var]string
	within   []types.Object // those that are being composed
	composed bool
}

// enter notes that a variable or function is composed. It is false for one that leads to itself.
func (c *composer) enter(o types.Object) bool {
	if o == nil || slices.Contains(c.within, o) || len(c.within) == maxWithin {
		return false
	}
	c.within = append(c.within, o)
	return true
}

func (c *composer) leave() { c.within = c.within[:len(c.within)-1] }

func (c *composer) all(list []ast.Expr) string {
	var b strings.Builder
	for _, e := range list {
		c.composed = c.composed || c.loose[e]
		b.WriteString(c.text(e))
	}
	return b.String()
}

// texts returns what an expression may be: several for a function with several returns.
func (c *composer) texts(e ast.Expr) []string {
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok {
		if list := c.returns(call, 0); len(list) > 0 {
			return list
		}
	}
	return []string{c.text(e)}
}

// text is an expression with a hole for each part that is not known.
func (c *composer) text(e ast.Expr) string {
	e = ast.Unparen(e)
	c.used[e] = true
	if v := c.info.Types[e].Value; v != nil {
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
		if t := c.info.TypeOf(e.X); e.Op == token.ADD && (t == nil || isString(t)) {
			return c.text(e.X) + c.text(e.Y)
		}
	case *ast.Ident, *ast.SelectorExpr:
		return c.of(c.variable(e))
	case *ast.CallExpr:
		return c.call(e)
	}
	return hole
}

// of is the string of a variable that always has the same one. Those of parameters and fields come
// from elsewhere.
func (c *composer) of(v *types.Var) string {
	if v == nil {
		return hole
	}
	if text, ok := c.bound[v]; ok {
		return text
	}
	if c.params[v] || v.IsField() || !c.enter(v) {
		return hole
	}
	defer c.leave()
	var texts []string
	for _, value := range c.values[v] {
		texts = append(texts, c.result(value))
	}
	text := only(texts)
	if len(texts) == 0 && c.declared[v] && len(c.added[v]) > 0 {
		text = ""
	}
	return text + c.all(c.added[v])
}

// only returns the one string of a list; a hole where there are several.
func only(texts []string) string {
	if slices.Sort(texts); len(slices.Compact(texts)) != 1 {
		return hole
	}
	return texts[0]
}

// result is what a variable is set to.
func (c *composer) result(v value) string {
	call, ok := ast.Unparen(v.expr).(*ast.CallExpr)
	switch {
	case v.expr == nil:
		return hole
	case v.result == 0:
		return c.text(v.expr)
	case !ok:
		return hole
	}
	return only(c.returns(call, v.result))
}

// returns are the strings that a function of the program may return, but for the empty one, which
// comes with an error. There are none of other functions.
func (c *composer) returns(call *ast.CallExpr, result int) (texts []string) {
	f := c.functionOf(call.Fun)
	if len(f.results) == 0 || !c.enter(c.object(call.Fun)) {
		return nil
	}
	defer c.leave()
	inner := &composer{source: c.source, within: c.within, bound: map[*types.Var]string{}}
	for i, arg := range call.Args {
		if i < len(f.params) && f.params[i] != nil && len(f.params) == len(call.Args) {
			inner.bound[f.params[i]] = c.text(arg)
		}
	}
	for _, results := range f.results {
		text := hole
		if result < len(results) {
			text = inner.text(results[result])
		} else if passed, ok := ast.Unparen(results[0]).(*ast.CallExpr); ok {
			text = only(inner.returns(passed, result))
		}
		if text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	c.composed = c.composed || inner.composed
	return texts
}

func (c *composer) call(e *ast.CallExpr) string {
	if c.info.Types[e.Fun].IsType() && len(e.Args) == 1 { // string(x)
		return c.text(e.Args[0])
	}
	if texts := c.returns(e, 0); len(texts) > 0 {
		return only(texts)
	}
	name := ""
	if fn := c.function(e); fn != nil {
		name = fn.FullName()
	}
	if text, ok := c.library(name, e); ok {
		return text
	}
	// What another function makes of its arguments is not known; most keep the query.
	text := hole
	for _, arg := range e.Args {
		if isString(c.info.TypeOf(arg)) {
			text += " " + c.text(arg) + hole
		}
	}
	return text
}

// library is what a function of the standard library makes.
func (c *composer) library(name string, e *ast.CallExpr) (text string, ok bool) {
	args := e.Args
	if e.Ellipsis.IsValid() {
		args = args[:len(args)-1] // the rest is not known
	}
	switch name {
	case "fmt.Sprintf":
		return c.format(args), true
	case "fmt.Appendf":
		return c.text(args[0]) + c.format(args[1:]), true
	case "fmt.Sprint", "fmt.Append":
		return c.all(args), true
	case "fmt.Sprintln", "fmt.Appendln":
		return c.spaced(args), true
	case "strings.Replace", "strings.ReplaceAll":
		return c.replace(c.text(args[0]), args[1:3]), true
	case "(*strings.Replacer).Replace":
		return c.replacer(e)
	case "strings.Join":
		return strings.Join(c.elements(args[0]), c.text(args[1])), true
	case "strings.TrimSpace":
		return strings.TrimSpace(c.text(args[0])), true
	case "strings.ToLower", "strings.ToUpper", "strings.Clone", "strconv.Itoa":
		return c.text(args[0]), true
	case "(*strings.Builder).String", "(*bytes.Buffer).String":
		return c.built(e)
	}
	return "", false
}

var formatVerb = regexp.MustCompile(`%[-+# 0]*(?:\[(\d+)\])?(\*|\d+)?(?:\.(?:\*|\d*))?(?:\[(\d+)\])?(.)`)

// format is what Sprintf makes: an argument's text for %s, %d and %v, a hole for other verbs and
// arguments.
func (c *composer) format(args []ast.Expr) string {
	format := c.text(args[0])
	next := 1
	return formatVerb.ReplaceAllStringFunc(format, func(verb string) string {
		m := formatVerb.FindStringSubmatch(verb)
		if m[4] == "%" {
			return "%"
		}
		if strings.Contains(verb, "*") {
			next = len(args) // their order is not followed
			return hole
		}
		if at, err := strconv.Atoi(m[1] + m[3]); err == nil {
			next = at
		}
		plain := strings.Contains("sdv", m[4]) && m[2] == "" && !strings.ContainsAny(verb, "-+# .")
		if next++; next > len(args) || !plain {
			return hole
		}
		return c.text(args[next-1])
	})
}

func (c *composer) spaced(args []ast.Expr) string {
	var b strings.Builder
	for _, arg := range args {
		b.WriteString(c.text(arg) + " ")
	}
	return b.String()
}

// replace replaces strings, in pairs of an old and a new one.
func (c *composer) replace(text string, pairs []ast.Expr) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		before := c.text(pairs[i])
		if before == "" || strings.Contains(before, hole) {
			return hole + text + hole
		}
		text = strings.ReplaceAll(text, before, c.text(pairs[i+1]))
	}
	return text
}

// replacer is what a strings.Replacer makes.
func (c *composer) replacer(e *ast.CallExpr) (string, bool) {
	receiver := c.receiver(e)
	if v := c.variable(receiver); v != nil && len(c.values[v]) == 1 {
		receiver = c.values[v][0].expr
	}
	made, ok := receiver.(*ast.CallExpr)
	if !ok || c.function(made) == nil || c.function(made).FullName() != "strings.NewReplacer" || made.Ellipsis.IsValid() {
		return "", false
	}
	return c.replace(c.text(e.Args[0]), made.Args), true
}

// receiver returns what a method is called on.
func (c *composer) receiver(e *ast.CallExpr) ast.Expr {
	s, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	return ast.Unparen(s.X)
}

// elements are the strings of a list: of one that is written there, or of a variable that is set to
// one and appended to.
func (c *composer) elements(e ast.Expr) (texts []string) {
	switch e := ast.Unparen(e).(type) {
	case *ast.CompositeLit:
		for _, element := range e.Elts {
			texts = append(texts, c.text(element))
		}
		return texts
	case *ast.CallExpr:
		if id, ok := e.Fun.(*ast.Ident); ok && id.Name == "append" && !e.Ellipsis.IsValid() {
			texts = c.elements(e.Args[0])
			for _, more := range e.Args[1:] {
				texts = append(texts, c.text(more))
			}
			return texts
		}
	case *ast.Ident:
		v := c.variable(e)
		if v == nil || !c.enter(v) {
			return nil // append's own list
		}
		defer c.leave()
		if c.params[v] {
			break
		}
		for _, value := range c.values[v] {
			c.composed = c.composed || c.loose[value.expr]
			texts = append(texts, c.elements(value.expr)...)
		}
		return texts
	}
	return []string{hole}
}

// built is what was written to a builder since it was reset.
func (c *composer) built(e *ast.CallExpr) (string, bool) {
	v := c.builder(c.receiver(e))
	if v == nil || !c.enter(v) {
		return "", false
	}
	defer c.leave()
	var b strings.Builder
	for _, call := range c.written[v] {
		if call.Pos() > e.Pos() && !v.IsField() {
			break
		}
		c.composed = c.composed || c.loose[call]
		fn := c.function(call)
		if fn == nil {
			b.WriteString(hole)
			continue
		}
		switch name := fn.FullName(); {
		case fn.Name() == "Reset":
			b.Reset()
			c.composed = false
		case fn.Name() == "WriteString" || fn.Name() == "Write":
			b.WriteString(c.text(call.Args[len(call.Args)-1])) // also io.WriteString
		case fn.Name() == "WriteByte" || fn.Name() == "WriteRune":
			b.WriteString(c.character(call.Args[0]))
		case name == "fmt.Fprintf":
			b.WriteString(c.format(call.Args[1:]))
		case name == "fmt.Fprint":
			b.WriteString(c.all(call.Args[1:]))
		case name == "fmt.Fprintln":
			b.WriteString(c.spaced(call.Args[1:]))
		case fn.Name() == "Execute":
			b.WriteString(c.template(c.receiver(call)))
		default:
			b.WriteString(hole)
		}
	}
	return b.String(), true
}

func (c *composer) character(e ast.Expr) string {
	if v := c.info.Types[e].Value; v != nil {
		if n, ok := constant.Int64Val(constant.ToInt(v)); ok {
			return string(rune(n))
		}
	}
	return hole
}

var action = regexp.MustCompile(`\{\{.*?\}\}`)

// template is what a text/template makes: a hole for each action.
func (c *composer) template(e ast.Expr) string {
	if v := c.variable(e); v != nil && len(c.values[v]) > 0 {
		e = c.values[v][0].expr
	}
	text := hole
	if e == nil {
		return text
	}
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 && c.name(call) == "Parse" {
			text = action.ReplaceAllString(c.text(call.Args[0]), hole)
		}
		return true
	})
	c.composed = true
	return text
}

// name is the name of the function that is called.
func (s *source) name(call *ast.CallExpr) string {
	if fn := s.function(call); fn != nil {
		return fn.Name()
	}
	return ""
}
