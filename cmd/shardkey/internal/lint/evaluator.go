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

// Marks in an evaluated string.
const (
	// hole stands for a part that is known only at run time. It may be part of a name, such as
	// the number in t_order_%d.
	hole = "\uFFFC"
	// loose precedes a part that may be missing or repeated, because a loop or a condition adds it.
	loose = "\uFFFB"
	// end follows each element of a list of strings.
	end = "\uFFFA"
)

// plain returns a string without the marks other than holes.
func plain(text string) string { return strings.NewReplacer(loose, "", end, hole).Replace(text) }

// candidate is a possible value of a string expression at run time.
type candidate struct {
	text string
	at   ast.Expr // expression that begins the string; nil for the evaluated expression
}

func here(text string) []candidate { return []candidate{{text: text}} }

// maxWithin limits the depth of variables and functions that refer to one another.
const maxWithin = 8

type evaluator struct {
	*source
	// first means that the string begins a statement. Each value of a variable is then a
	// statement.
	first bool
	// choice selects one of several values of a variable, or results of a function, in other parts
	// of a string. choices is raised to their number.
	choice  int
	choices *int
	bound   map[*types.Var]string // arguments of the function that is evaluated
	within  []types.Object        // variables and functions that are evaluated, outermost first
}

// enter returns the evaluator for a variable's values or a function's results. ok is false if
// the object refers to itself, or the depth exceeds maxWithin.
func (v evaluator) enter(o types.Object) (inner evaluator, ok bool) {
	if o == nil || slices.Contains(v.within, o) || len(v.within) == maxWithin {
		return v, false
	}
	v.within = append(slices.Clip(v.within), o)
	return v, true
}

func (v evaluator) text(e ast.Expr) string {
	v.first = false
	return v.chosen(v.candidates(e))
}

// chosen returns the chosen string of a list, or a hole if one of several is unknown.
func (v evaluator) chosen(list []candidate) string {
	isUnknown := func(c candidate) bool { return c.text == hole }
	if v.choices == nil || len(list) < 2 || slices.ContainsFunc(list, isUnknown) {
		return only(list)
	}
	*v.choices = max(*v.choices, len(list))
	return list[v.choice%len(list)].text
}

// only returns the only string of a list, or a hole if there are several.
func only(list []candidate) string {
	if len(list) == 0 || slices.ContainsFunc(list, func(c candidate) bool { return c.text != list[0].text }) {
		return hole
	}
	return list[0].text
}

// joined concatenates the strings of several expressions, each followed by after.
func (v evaluator) joined(list []ast.Expr, after string) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString(v.mark(e) + v.text(e) + after)
	}
	return b.String()
}

func (v evaluator) mark(n ast.Node) string {
	if v.loose[n] {
		return loose
	}
	return ""
}

// candidates returns the possible values of an expression, with a hole for each unknown part.
// It returns several only for a string that begins a statement.
func (v evaluator) candidates(e ast.Expr) (list []candidate) {
	e = ast.Unparen(e)
	v.used[e] = true
	if value := v.info.Types[e].Value; value != nil {
		v.use(e)
		switch value.Kind() {
		case constant.String:
			return here(constant.StringVal(value))
		case constant.Int:
			return here(value.ExactString())
		}
		return here(hole)
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if t := v.info.TypeOf(e.X); e.Op == token.ADD && (t == nil || isString(t)) {
			list = v.candidates(e.X)
			extend(list, v.text(e.Y))
		}
	case *ast.CompositeLit:
		if t := v.info.TypeOf(e); t == nil || isList(t) {
			list = here(v.joined(e.Elts, end))
		}
	case *ast.Ident, *ast.SelectorExpr:
		return v.valuesOf(v.variable(e))
	case *ast.CallExpr:
		list = v.call(e)
	}
	switch {
	case list == nil:
		return here(hole)
	case !v.first && len(list) > 1:
		return here(v.chosen(list))
	}
	return list
}

// use marks a constant expression, its parts, and the constants that it names as used.
func (v evaluator) use(e ast.Expr) {
	for n := range ast.Preorder(e) {
		if part, ok := n.(ast.Expr); ok {
			v.used[part] = true
		}
		id, _ := n.(*ast.Ident)
		of := v.info.Uses[id]
		if value := v.constants[of]; value != nil {
			delete(v.constants, of)
			v.use(value)
		}
	}
}

func extend(list []candidate, text string) {
	for i := range list {
		list[i].text += text
	}
}

// valuesOf returns the values of a variable. Parameters and fields are unknown unless they
// begin a statement, because they are set elsewhere.
func (v evaluator) valuesOf(of *types.Var) (list []candidate) {
	if text, ok := v.bound[of]; ok {
		return here(text)
	}
	values := v.values[of]
	v.first = v.first && len(values) > 0 && isString(of.Type())
	inner, ok := v.enter(of)
	if of == nil || !ok || !v.first && (of.Kind() == types.ParamVar || of.IsField()) {
		return here(hole)
	}
	for _, value := range values {
		if value.expr == nil && v.first {
			continue // an unknown value is no statement
		}
		for _, c := range inner.result(value) {
			if v.first && c.at == nil {
				c.at = value.expr
			}
			list = append(list, c)
		}
	}
	added := v.added[of]
	switch {
	case len(values) == 0 && v.declared[of] && len(added) > 0:
		list = here("")
	case !v.first:
		list = here(v.chosen(list))
	}
	extend(list, inner.joined(added, ""))
	return list
}

func (v evaluator) result(set value) []candidate {
	call, ok := ast.Unparen(set.expr).(*ast.CallExpr)
	switch {
	case set.expr == nil || set.result > 0 && !ok:
		return here(hole)
	case set.result == 0:
		return v.candidates(set.expr)
	}
	return v.returns(call, set.result)
}

// returns returns the strings that a function of the program may return, except "", which
// usually accompanies an error. It returns nil for functions of other modules.
func (v evaluator) returns(call *ast.CallExpr, result int) (list []candidate) {
	f := v.functionOf(call)
	inner, ok := v.enter(v.callee(call))
	if len(f.results) == 0 || !ok {
		return nil
	}
	inner.bound = map[*types.Var]string{}
	for i, arg := range call.Args {
		if len(f.params) == len(call.Args) && f.params[i] != nil {
			inner.bound[f.params[i]] = v.text(arg)
		}
	}
	for _, results := range f.results {
		text := hole
		if result < len(results) {
			text = inner.text(results[result])
		} else if passed, ok := ast.Unparen(results[0]).(*ast.CallExpr); ok {
			text = inner.chosen(inner.returns(passed, result))
		}
		if text != "" && !slices.Contains(list, candidate{text: text}) {
			list = append(list, candidate{text: text})
		}
	}
	return list
}

func (v evaluator) call(e *ast.CallExpr) []candidate {
	if v.info.Types[e.Fun].IsType() && len(e.Args) == 1 { // string(x)
		return v.candidates(e.Args[0])
	}
	if list := v.returns(e, 0); len(list) > 0 {
		return list
	}
	if b := v.builder(receiver(e)); b != nil && v.name(e) == "String" {
		return here(v.built(b, e))
	}
	if list := v.library(e, e.Args); list != nil {
		return list
	}
	// Most unknown functions with a query as an argument return the query with changes.
	text := hole
	for _, arg := range e.Args {
		if isString(v.info.TypeOf(arg)) {
			text += " " + v.text(arg) + hole
		}
	}
	return here(text)
}

// library returns the string that a function of the standard library returns or writes, or nil
// for an unknown function. args are its arguments without the writer.
func (v evaluator) library(call *ast.CallExpr, args []ast.Expr) []candidate {
	fn := v.function(call)
	if call.Ellipsis.IsValid() {
		args = args[:len(args)-1] // the variadic arguments are unknown
	}
	if fn == nil || len(args) == 0 {
		return nil
	}
	var of func(text string) string // maps the first argument to the result
	rest := args[1:]
	switch name := strings.Replace(fn.FullName(), "bytes.Buffer", "strings.Builder", 1); name {
	case "fmt.Sprintf", "fmt.Fprintf":
		of = func(text string) string { return v.format(text, rest) }
	case "fmt.Appendf":
		of = func(text string) string { return text + v.format(v.joined(rest[:1], ""), rest[1:]) }
	case "fmt.Sprint", "fmt.Fprint", "fmt.Append":
		of = func(text string) string { return text + v.joined(rest, "") }
	case "fmt.Sprintln", "fmt.Fprintln", "fmt.Appendln":
		of = func(text string) string { return text + " " + v.joined(rest, " ") }
	case "strings.Replace", "strings.ReplaceAll":
		of = func(text string) string { return v.replace(text, rest) }
	case "(*strings.Replacer).Replace":
		made, ok := v.definition(receiver(call)).(*ast.CallExpr)
		if !ok || v.name(made) != "NewReplacer" || made.Ellipsis.IsValid() {
			return nil
		}
		of = func(text string) string { return v.replace(text, made.Args) }
	case "strings.Join":
		of = func(text string) string {
			return strings.ReplaceAll(strings.TrimSuffix(text, end), end, v.joined(rest, ""))
		}
	case "strings.TrimSpace":
		of = strings.TrimSpace
	case "strings.ToLower", "strings.ToUpper", "strings.Clone", "strconv.Itoa", "io.WriteString",
		"(*strings.Builder).WriteString", "(*strings.Builder).Write":
		of = strings.Clone
	case "(*strings.Builder).WriteByte", "(*strings.Builder).WriteRune":
		of = character
	case "(*text/template.Template).Execute":
		return here(loose + v.template(receiver(call)))
	default:
		return nil
	}
	list := v.candidates(args[0])
	for i := range list {
		list[i].text = of(list[i].text)
	}
	return list
}

var formatVerb = regexp.MustCompile(`%[-+# 0]*(?:\[(\d+)\])?(\*|\d+)?(?:\.(?:\*|\d*))?(?:\[(\d+)\])?(.)`)

// format formats like Sprintf. It replaces %s, %d and %v with an argument, and other verbs
// with a hole.
func (v evaluator) format(format string, args []ast.Expr) string {
	next := 0
	return formatVerb.ReplaceAllStringFunc(format, func(verb string) string {
		m := formatVerb.FindStringSubmatch(verb)
		if m[4] == "%" {
			return "%"
		}
		if strings.Contains(verb, "*") {
			next = len(args) // a hole for this verb and all that follow
			return hole
		}
		if at, err := strconv.Atoi(m[1] + m[3]); err == nil {
			next = max(at-1, 0)
		}
		plain := strings.Contains("sdv", m[4]) && m[2] == "" && !strings.ContainsAny(verb, "-+# .")
		if next++; next > len(args) || !plain {
			return hole
		}
		return v.text(args[next-1])
	})
}

// replace replaces strings in text. pairs alternates old and new strings.
func (v evaluator) replace(text string, pairs []ast.Expr) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		before := v.text(pairs[i])
		if before == "" || strings.Contains(before, hole) {
			return hole + text + hole
		}
		text = strings.ReplaceAll(text, before, v.text(pairs[i+1]))
	}
	return text
}

// receiver returns the operand of a method call.
func receiver(e *ast.CallExpr) ast.Expr {
	if s, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr); ok {
		return ast.Unparen(s.X)
	}
	return nil
}

// definition returns the value of a variable that is set once, or the expression itself.
func (v evaluator) definition(e ast.Expr) ast.Expr {
	if of := v.variable(e); of != nil && len(v.values[of]) == 1 {
		return ast.Unparen(v.values[of][0].expr)
	}
	return e
}

// built returns the content of a builder at the call e: the strings written since its last
// Reset.
func (v evaluator) built(of *types.Var, e *ast.CallExpr) (text string) {
	inner, ok := v.enter(of)
	if !ok {
		return hole
	}
	inner.first = false
	for _, call := range v.written[of] {
		if call.Pos() > e.Pos() && !of.IsField() {
			break
		}
		if v.name(call) == "Reset" {
			text = ""
			continue
		}
		args := call.Args
		if v.builder(args[0]) != nil {
			args = args[1:]
		}
		text += v.mark(call) + only(inner.library(call, args))
	}
	return text
}

// character returns the character with the code number.
func character(number string) string {
	if n, err := strconv.Atoi(number); err == nil {
		return string(rune(n))
	}
	return hole
}

var action = regexp.MustCompile(`\{\{.*?\}\}`)

// template returns the content of a text/template with a hole for each action.
func (v evaluator) template(e ast.Expr) string {
	if e = v.definition(e); e == nil {
		return hole
	}
	for n := range ast.Preorder(e) {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 && v.name(call) == "Parse" {
			return action.ReplaceAllString(v.text(call.Args[0]), hole)
		}
	}
	return hole
}
