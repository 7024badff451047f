package rule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An inline expression is a text with parts in ${…}, each of which stands for
// one or more texts. ShardingSphere runs them as Groovy; what files have in
// practice is understood here:
//
//	0..15   0..<16   'a'..'c'   '00'..'03'   (0..7).step(2)   ranges
//	['a', 'b', 3]   []   null   'x'   7                 lists and single values
//	(1..12).collect{t -> t.toString().padLeft(2, '0')}  closures; also collect(i -> …), it,
//	String.format('%02d', it)                           *.toString(), + and - and *

// product calls yield with each text that one item of an inline expression
// stands for: "ds_${0..1}.t_${['a','b']}" stands for four. The parts vary as
// digits do, the last one fastest.
func product(item string, budget *int, yield func(string) error) error {
	if !strings.Contains(item, "${") && *budget > 0 && len(item) <= 4*maxName {
		*budget--
		return yield(item) // most items of a rule that writes its tables one by one
	}
	parts, err := inlineParts(item)
	if err != nil {
		return err
	}
	nodes := 1
	for _, part := range parts {
		if nodes *= len(part); nodes > *budget {
			return errTooManyNodes
		}
	}
	*budget -= nodes
	return combine(parts, make([]byte, 0, 64), yield)
}

// maxParts bounds the parts of one data node.
const maxParts = 100

func combine(parts [][]string, prefix []byte, yield func(string) error) error {
	if len(parts) == 0 {
		return yield(string(prefix))
	}
	for _, text := range parts[0] {
		if len(prefix)+len(text) > 4*maxName {
			return errLongName // of data source, schema and table together
		}
		if err := combine(parts[1:], append(prefix, text...), yield); err != nil {
			return err
		}
	}
	return nil
}

// inlineParts cuts an item into plain texts (a part of one text) and
// expressions (a part of all their values).
func inlineParts(item string) ([][]string, error) {
	var parts [][]string
	for whole := item; item != ""; {
		if len(parts) > maxParts {
			return nil, fmt.Errorf("more than %d parts in %q", maxParts, clip(whole))
		}
		i := strings.Index(item, "${")
		if i < 0 {
			return append(parts, []string{item}), nil
		}
		if i > 0 {
			parts = append(parts, []string{item[:i]})
		}
		end := closingBrace(item[i+2:])
		if end < 0 {
			return nil, fmt.Errorf("%q is not closed with }", clip(item[i:]))
		}
		values, err := evaluate(strings.TrimSpace(item[i+2 : i+2+end]))
		if err != nil {
			return nil, err
		}
		parts = append(parts, values)
		item = item[i+2+end+1:]
	}
	return parts, nil
}

func closingBrace(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}

// evaluate returns the texts that the expression between ${ and } stands for,
// each once. A [pattern]'s wildcard stands for itself.
func evaluate(expr string) ([]string, error) {
	if isWildcard(expr) {
		return []string{wildcard(expr)}, nil
	}
	tokens, err := tokenize(expr)
	switch {
	case errors.Is(err, errLongName):
		return nil, fmt.Errorf("cannot expand ${%s}: %w", clip(expr), err)
	case err != nil:
		return nil, notUnderstood(expr)
	}
	e := evaluator{tokens: tokens}
	v, err := e.sum()
	switch {
	case errors.Is(err, errNotUnderstood), err == nil && !e.atEnd():
		return nil, notUnderstood(expr)
	case err != nil:
		return nil, fmt.Errorf("cannot expand ${%s}: %w", clip(expr), err)
	case !v.isList:
		return []string{v.text}, nil
	case len(v.list) == 0:
		return nil, fmt.Errorf("cannot expand ${%s}: it stands for nothing", clip(expr))
	}
	texts := make([]string, 0, len(v.list))
	seen := make(map[string]bool, len(v.list))
	for _, item := range v.list {
		if item.isList {
			return nil, notUnderstood(expr)
		}
		if !seen[item.text] {
			seen[item.text] = true
			texts = append(texts, item.text)
		}
	}
	return texts, nil
}

var (
	errNotUnderstood = errors.New("not understood")
	errLongName      = fmt.Errorf("a name is longer than %d bytes", maxName)
)

func notUnderstood(expr string) error {
	return fmt.Errorf("cannot expand ${%s}: write a range (${0..15}), a list (${['a','b']}), a quoted text (${'x'}), ${*} for any number or a date (${yyyyMM}); other Groovy is not run", clip(expr))
}

// value is a text, a number, which has a text too, or a list.
type value struct {
	text   string
	number int64
	isInt  bool
	list   []value
	isList bool
}

func textOf(s string) value  { return value{text: s} }
func intOf(n int64) value    { return value{text: strconv.FormatInt(n, 10), number: n, isInt: true} }
func listOf(l []value) value { return value{list: l, isList: true} }

// evaluator computes one expression, from left to right.
type evaluator struct {
	tokens []string // names, numbers, quoted texts and operators
	at     int
	names  map[string]value // a closure's parameter
	depth  int
	steps  *int // how much is computed yet, in all closures together
}

// maxDepth bounds nested brackets and closures.
const maxDepth = 20

func (e *evaluator) atEnd() bool { return e.at >= len(e.tokens) }

func (e *evaluator) take(tokens ...string) bool {
	for i, token := range tokens {
		if e.at+i >= len(e.tokens) || e.tokens[e.at+i] != token {
			return false
		}
	}
	e.at += len(tokens)
	return true
}

func (e *evaluator) next() string {
	if e.atEnd() {
		return ""
	}
	e.at++
	return e.tokens[e.at-1]
}

// sum reads a range or a sum: a..b, a + b, a - b, a * b.
func (e *evaluator) sum() (value, error) {
	if e.depth++; e.depth > maxDepth {
		return value{}, errNotUnderstood
	}
	defer func() { e.depth-- }()
	left, err := e.operand()
	for err == nil && !e.atEnd() {
		op := e.tokens[e.at]
		switch op {
		case "+", "-", "*", "..", "..<":
		default:
			return left, nil
		}
		e.at++
		var right value
		if right, err = e.operand(); err == nil {
			left, err = binary(op, left, right)
		}
	}
	return left, err
}

func binary(op string, a, b value) (value, error) {
	switch {
	case op == ".." || op == "..<":
		return spread(a, b, op == "..<")
	case a.isList || b.isList:
		return value{}, errNotUnderstood
	case op == "+" && !(a.isInt && b.isInt):
		if len(a.text)+len(b.text) > maxName {
			return value{}, errLongName
		}
		return textOf(a.text + b.text), nil
	case !a.isInt || !b.isInt || max(a.number, b.number) > 1<<31:
		return value{}, errNotUnderstood
	case op == "+":
		return intOf(a.number + b.number), nil
	case op == "-":
		return intOf(a.number - b.number), nil
	}
	return intOf(a.number * b.number), nil
}

// operand reads a value and the methods that are called on it.
func (e *evaluator) operand() (value, error) {
	v, err := e.primary()
	for err == nil {
		switch {
		case e.take("."):
			v, err = e.method(v)
		case e.take("*", "."):
			// list*.method() calls it on each item.
			v, err = e.each(v, func(item value) (value, error) { return e.method(item) })
		default:
			return v, nil
		}
	}
	return v, err
}

func (e *evaluator) primary() (value, error) {
	token := e.next()
	switch {
	case token == "":
		return value{}, errNotUnderstood
	case token == "(":
		v, err := e.sum()
		if err == nil && !e.take(")") {
			err = errNotUnderstood
		}
		return v, err
	case token == "[":
		return e.items()
	case isDigit(token[0]):
		base, digits := 10, token
		if hex, ok := strings.CutPrefix(strings.ToLower(token), "0x"); ok {
			base, digits = 16, hex
		} else if len(token) > 1 && token[0] == '0' {
			return value{}, errLeadingZero
		}
		n, err := strconv.ParseInt(digits, base, 32)
		if err != nil {
			return value{}, errNumber
		}
		return intOf(n), nil
	case token[0] == '\'' || token[0] == '"':
		return textOf(token[1 : len(token)-1]), nil
	case token == "null":
		return textOf(""), nil
	case token == "String" && e.take(".", "format", "("):
		return e.format()
	}
	v, ok := e.names[token]
	if !ok {
		return value{}, errNotUnderstood
	}
	return v, nil
}

var (
	errNumber = errors.New("a number is too large, or no number")
	// errLeadingZero: Groovy takes 01..12 for 1..12 and refuses 08, and what is meant is
	// mostly 01, 02, … 12.
	errLeadingZero = errors.New("a number with a leading zero is octal in ShardingSphere, " +
		"which expands ${01..12} to 1, 2, … 12: write ${1..12} for 1, 2, … 12 " +
		"and ${(1..12).collect{it.toString().padLeft(2, '0')}} for 01, 02, … 12")
	errTextRange = errors.New("the ends of a range of strings must differ in their last letter or digit alone, " +
		"as in ${'a'..'c'} and ${'00'..'03'}: write ${(8..12).collect{it.toString().padLeft(2, '0')}} for 08, 09, … 12")
)

// items reads a list after its "[".
func (e *evaluator) items() (value, error) {
	var list []value
	for !e.take("]") {
		if len(list) > 0 && !e.take(",") {
			return value{}, errNotUnderstood
		}
		v, err := e.sum()
		if err != nil {
			return value{}, err
		}
		list = append(list, v)
	}
	return listOf(list), nil
}

// method reads the name of a method and its arguments, and calls it on v.
func (e *evaluator) method(v value) (value, error) {
	name := e.next()
	switch {
	case name == "collect" && v.isList:
		return e.collect(v)
	case name == "step" && v.isList && e.take("("):
		return e.step(v)
	case name == "toString" && !v.isList && e.take("(", ")"):
		return textOf(v.text), nil
	case name == "padLeft" && !v.isList && e.take("("):
		return e.padLeft(v)
	case (name == "toList" || name == "flatten") && v.isList && e.take("(", ")"):
		return v, nil
	}
	return value{}, errNotUnderstood
}

// each calls f, which reads the same tokens each time, with each item of a list.
func (e *evaluator) each(v value, f func(value) (value, error)) (value, error) {
	if !v.isList {
		return value{}, errNotUnderstood
	}
	if e.steps == nil {
		e.steps = new(int)
	}
	if *e.steps += len(v.list); *e.steps > maxNodes {
		return value{}, errTooManyNodes
	}
	list := make([]value, len(v.list))
	begin := e.at
	for i, item := range v.list {
		e.at = begin
		var err error
		if list[i], err = f(item); err != nil {
			return value{}, err
		}
	}
	if len(list) == 0 {
		return value{}, errNotUnderstood // the end of the body is not known
	}
	return listOf(list), nil
}

// collect reads {x -> …}, {… it …} or (x -> …), and computes it for each item.
func (e *evaluator) collect(v value) (value, error) {
	end := "}"
	if !e.take("{") {
		if end = ")"; !e.take("(") {
			return value{}, errNotUnderstood
		}
	}
	name := "it"
	if e.at+1 < len(e.tokens) && e.tokens[e.at+1] == "->" {
		name = e.next()
		e.at++
	}
	outer := e.names
	defer func() { e.names = outer }()
	mapped, err := e.each(v, func(item value) (value, error) {
		e.names = map[string]value{name: item}
		return e.sum()
	})
	if err == nil && !e.take(end) {
		err = errNotUnderstood
	}
	return mapped, err
}

func (e *evaluator) step(v value) (value, error) {
	by, err := e.sum()
	if err != nil || !e.take(")") || !by.isInt || by.number < 1 {
		return value{}, errNotUnderstood
	}
	var list []value
	for i := int64(0); i < int64(len(v.list)); i += by.number {
		list = append(list, v.list[i])
	}
	return listOf(list), nil
}

func (e *evaluator) padLeft(v value) (value, error) {
	width, err := e.sum()
	with := textOf(" ")
	if err == nil && e.take(",") {
		with, err = e.sum()
	}
	if err != nil || !e.take(")") || !width.isInt || width.number > 64 || len(with.text) != 1 {
		return value{}, errNotUnderstood
	}
	return textOf(strings.Repeat(with.text, max(0, int(width.number)-len(v.text))) + v.text), nil
}

// format reads '%02d', x) after "String.format(".
func (e *evaluator) format() (value, error) {
	layout, err := e.sum()
	if err != nil || !e.take(",") {
		return value{}, errNotUnderstood
	}
	v, err := e.sum()
	before, verb, ok := strings.Cut(layout.text, "%")
	digits, after, isInt := strings.Cut(verb, "d")
	width, numErr := strconv.Atoi("0" + digits)
	if err != nil || !e.take(")") || !ok || !isInt || numErr != nil || width > 64 || !v.isInt || strings.Contains(after, "%") {
		return value{}, errNotUnderstood
	}
	return textOf(before + pad(strconv.FormatInt(v.number, 10), width) + after), nil
}

// spread returns the values of a..b, both ends included unless exclusive,
// downwards when a is the greater. Texts differ in their last characters.
func spread(a, b value, exclusive bool) (value, error) {
	isText := !a.isInt && !b.isInt && !a.isList && !b.isList
	prefix := ""
	if isText {
		last := len(a.text) - 1
		if last < 0 || len(b.text) != last+1 || a.text[:last] != b.text[:last] ||
			!isLetterOrDigit(a.text[last]) || !isLetterOrDigit(b.text[last]) {
			return value{}, errTextRange
		}
		prefix, a.number, b.number = a.text[:last], int64(a.text[last]), int64(b.text[last])
	}
	if !isText && (!a.isInt || !b.isInt || a.number < 0 || b.number < 0) {
		return value{}, errors.New("the ends of a range must be two non-negative integers, as in ${0..15}")
	}
	step := int64(1)
	if b.number < a.number {
		step = -1
	}
	count := (b.number-a.number)*step + 1
	if exclusive {
		count--
	}
	switch {
	case count > maxNodes:
		return value{}, errTooManyNodes
	case count < 1:
		return value{}, errors.New("the range is empty")
	}
	list := make([]value, count)
	for i := range list {
		n := a.number + int64(i)*step
		list[i] = intOf(n)
		if isText {
			list[i] = textOf(prefix + string(rune(n)))
		}
	}
	return listOf(list), nil
}

func pad(s string, width int) string {
	return strings.Repeat("0", max(0, width-len(s))) + s
}

var operators = []string{"..<", "..", "->", "(", ")", "[", "]", "{", "}", ",", ".", "+", "-", "*"}

// tokenize cuts an expression into names, numbers, quoted texts and operators.
func tokenize(expr string) (tokens []string, err error) {
	for expr = strings.TrimSpace(expr); expr != ""; expr = strings.TrimSpace(expr) {
		n := tokenLength(expr)
		switch {
		case n == 0:
			return nil, errNotUnderstood
		case n > maxName:
			return nil, errLongName // it may stand for a million texts as long
		}
		tokens, expr = append(tokens, expr[:n]), expr[n:]
	}
	return tokens, nil
}

func tokenLength(s string) int {
	c := s[0]
	switch {
	case isDigit(c):
		if n := len(s) - len(strings.TrimLeft(s, "0123456789")); n != 1 || c != '0' || len(s) < 3 || s[1]|0x20 != 'x' {
			return n
		}
		return len(s) - len(strings.TrimLeft(s[2:], "0123456789abcdefABCDEF"))
	case isLetter(c):
		n := 1
		for n < len(s) && (isLetter(s[n]) || isDigit(s[n])) {
			n++
		}
		return n
	case c == '\'' || c == '"':
		end := strings.IndexByte(s[1:], c)
		if end < 0 || strings.ContainsAny(s[1:1+end], "'\"\\$") {
			return 0
		}
		return end + 2
	}
	i := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(s, op) })
	if i < 0 {
		return 0
	}
	return len(operators[i])
}

func isDigit(c byte) bool         { return '0' <= c && c <= '9' }
func isLetterOrDigit(c byte) bool { return isDigit(c) || isLetter(c) }

func isLetter(c byte) bool { return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' }
