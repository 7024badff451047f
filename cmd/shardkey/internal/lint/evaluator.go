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
func (ev evaluator) enter(o types.Object) (inner evaluator, ok bool) {
	if o == nil || slices.Contains(ev.within, o) || len(ev.within) == maxWithin {
		return ev, false
	}
	ev.within = append(slices.Clip(ev.within), o)
	return ev, true
}

func (ev evaluator) text(e ast.Expr) string {
	ev.first = false
	return ev.chosen(ev.candidates(e))
}

// chosen returns the chosen string of a list, or a hole if one of several is unknown.
func (ev evaluator) chosen(list []candidate) string {
	isUnknown := func(c candidate) bool { return c.text == hole }
	if ev.choices == nil || len(list) < 2 || slices.ContainsFunc(list, isUnknown) {
		return only(list)
	}
	*ev.choices = max(*ev.choices, len(list))
	return list[ev.choice%len(list)].text
}

// only returns the only string of a list, or a hole if there are several.
func only(list []candidate) string {
	if len(list) == 0 || slices.ContainsFunc(list, func(c candidate) bool { return c.text != list[0].text }) {
		return hole
	}
	return list[0].text
}

// joined concatenates the strings of several expressions, each followed by after.
func (ev evaluator) joined(list []ast.Expr, after string) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString(ev.mark(e) + ev.text(e) + after)
	}
	return b.String()
}

func (ev evaluator) mark(n ast.Node) string {
	if ev.loose[n] {
		return loose
	}
	return ""
}

// candidates returns the possible values of an expression, with a hole for each unknown part.
// It returns several only for a string that begins a statement.
func (ev evaluator) candidates(e ast.Expr) (list []candidate) {
	e = ast.Unparen(e)
	ev.used[e] = true
	if value := ev.info.Types[e].Value; value != nil {
		ev.use(e)
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
		if t := ev.info.TypeOf(e.X); e.Op == token.ADD && (t == nil || isString(t)) {
			list = ev.candidates(e.X)
			extend(list, ev.text(e.Y))
		}
	case *ast.CompositeLit:
		if t := ev.info.TypeOf(e); t == nil || isList(t) {
			list = here(ev.joined(e.Elts, end))
		}
	case *ast.Ident, *ast.SelectorExpr:
		return ev.valuesOf(ev.variable(e))
	case *ast.CallExpr:
		list = ev.call(e)
	}
	switch {
	case list == nil:
		return here(hole)
	case !ev.first && len(list) > 1:
		return here(ev.chosen(list))
	}
	return list
}

// use marks a constant expression, its parts, and the constants that it names as used.
func (ev evaluator) use(e ast.Expr) {
	for n := range ast.Preorder(e) {
		if part, ok := n.(ast.Expr); ok {
			ev.used[part] = true
		}
		id, _ := n.(*ast.Ident)
		of := ev.info.Uses[id]
		if value := ev.constants[of]; value != nil {
			delete(ev.constants, of)
			ev.use(value)
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
func (ev evaluator) valuesOf(of *types.Var) (list []candidate) {
	if text, ok := ev.bound[of]; ok {
		return here(text)
	}
	values := ev.values[of]
	ev.first = ev.first && len(values) > 0 && isString(of.Type())
	inner, ok := ev.enter(of)
	if of == nil || !ok || !ev.first && (of.Kind() == types.ParamVar || of.IsField()) {
		return here(hole)
	}
	for _, value := range values {
		if value.expr == nil && ev.first {
			continue // an unknown value is no statement
		}
		for _, c := range inner.result(value) {
			if ev.first && c.at == nil {
				c.at = value.expr
			}
			list = append(list, c)
		}
	}
	added := ev.added[of]
	switch {
	case len(values) == 0 && ev.declared[of] && len(added) > 0:
		list = here("")
	case !ev.first:
		list = here(ev.chosen(list))
	}
	extend(list, inner.joined(added, ""))
	return list
}

func (ev evaluator) result(set value) []candidate {
	call, ok := ast.Unparen(set.expr).(*ast.CallExpr)
	switch {
	case set.expr == nil || set.result > 0 && !ok:
		return here(hole)
	case set.result == 0:
		return ev.candidates(set.expr)
	}
	return ev.returns(call, set.result)
}

// returns returns the strings that a function of the program may return, except "", which
// usually accompanies an error. It returns nil for functions of other modules.
func (ev evaluator) returns(call *ast.CallExpr, result int) (list []candidate) {
	f := ev.functionOf(call)
	inner, ok := ev.enter(ev.callee(call))
	if len(f.results) == 0 || !ok {
		return nil
	}
	inner.bound = map[*types.Var]string{}
	for i, arg := range call.Args {
		if len(f.params) == len(call.Args) && f.params[i] != nil {
			inner.bound[f.params[i]] = ev.text(arg)
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

func (ev evaluator) call(e *ast.CallExpr) []candidate {
	if ev.info.Types[e.Fun].IsType() && len(e.Args) == 1 { // string(x)
		return ev.candidates(e.Args[0])
	}
	if list := ev.returns(e, 0); len(list) > 0 {
		return list
	}
	if b := ev.builder(receiver(e)); b != nil && ev.name(e) == "String" {
		return here(ev.built(b, e))
	}
	if list := ev.library(e, e.Args); list != nil {
		return list
	}
	// Most unknown functions with a query as an argument return the query with changes.
	text := hole
	for _, arg := range e.Args {
		if isString(ev.info.TypeOf(arg)) {
			text += " " + ev.text(arg) + hole
		}
	}
	return here(text)
}

// library returns the string that a function of the standard library returns or writes, or nil
// for an unknown function. args are its arguments without the writer.
func (ev evaluator) library(call *ast.CallExpr, args []ast.Expr) []candidate {
	fn := ev.function(call)
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
		of = func(text string) string { return ev.format(text, rest) }
	case "fmt.Appendf":
		of = func(text string) string { return text + ev.format(ev.joined(rest[:1], ""), rest[1:]) }
	case "fmt.Sprint", "fmt.Fprint", "fmt.Append":
		of = func(text string) string { return text + ev.joined(rest, "") }
	case "fmt.Sprintln", "fmt.Fprintln", "fmt.Appendln":
		of = func(text string) string { return text + " " + ev.joined(rest, " ") }
	case "strings.Replace", "strings.ReplaceAll":
		of = func(text string) string { return ev.replace(text, rest) }
	case "(*strings.Replacer).Replace":
		made, ok := ev.definition(receiver(call)).(*ast.CallExpr)
		if !ok || ev.name(made) != "NewReplacer" || made.Ellipsis.IsValid() {
			return nil
		}
		of = func(text string) string { return ev.replace(text, made.Args) }
	case "strings.Join":
		of = func(text string) string {
			return strings.ReplaceAll(strings.TrimSuffix(text, end), end, ev.joined(rest, ""))
		}
	case "strings.TrimSpace":
		of = strings.TrimSpace
	case "strings.ToLower", "strings.ToUpper", "strings.Clone", "strconv.Itoa", "io.WriteString",
		"(*strings.Builder).WriteString", "(*strings.Builder).Write":
		of = strings.Clone
	case "(*strings.Builder).WriteByte", "(*strings.Builder).WriteRune":
		of = character
	case "(*text/template.Template).Execute":
		return here(loose + ev.template(receiver(call)))
	default:
		return nil
	}
	list := ev.candidates(args[0])
	for i := range list {
		list[i].text = of(list[i].text)
	}
	return list
}

var formatVerb = regexp.MustCompile(`%[-+# 0]*(?:\[(\d+)\])?(\*|\d+)?(?:\.(?:\*|\d*))?(?:\[(\d+)\])?(.)`)

// format formats like Sprintf. It replaces %s, %d and %v with an argument, and other verbs
// with a hole.
func (ev evaluator) format(format string, args []ast.Expr) string {
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
		return ev.text(args[next-1])
	})
}

// replace replaces strings in text. pairs alternates old and new strings.
func (ev evaluator) replace(text string, pairs []ast.Expr) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		before := ev.text(pairs[i])
		if before == "" || strings.Contains(before, hole) {
			return hole + text + hole
		}
		text = strings.ReplaceAll(text, before, ev.text(pairs[i+1]))
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
func (ev evaluator) definition(e ast.Expr) ast.Expr {
	if of := ev.variable(e); of != nil && len(ev.values[of]) == 1 {
		return ast.Unparen(ev.values[of][0].expr)
	}
	return e
}

// built returns the content of a builder at the call e: the strings written since its last
// Reset.
func (ev evaluator) built(of *types.Var, e *ast.CallExpr) (text string) {
	inner, ok := ev.enter(of)
	if !ok {
		return hole
	}
	inner.first = false
	for _, call := range ev.written[of] {
		if call.Pos() > e.Pos() && !of.IsField() {
			break
		}
		if ev.name(call) == "Reset" {
			text = ""
			continue
		}
		args := call.Args
		if ev.builder(args[0]) != nil {
			args = args[1:]
		}
		text += ev.mark(call) + only(inner.library(call, args))
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
func (ev evaluator) template(e ast.Expr) string {
	if e = ev.definition(e); e == nil {
		return hole
	}
	for n := range ast.Preorder(e) {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 && ev.name(call) == "Parse" {
			return action.ReplaceAllString(ev.text(call.Args[0]), hole)
		}
	}
	return hole
}
