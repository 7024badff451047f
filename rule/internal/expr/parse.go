package expr

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// op is the kind of a node.
type op uint8

const (
	constant op = iota
	variable    // slot
	unary       // name: - + ~ !
	ternary     // condition, then, otherwise
	cast        // to class
	call        // calls the method name of args[0], or the static method Class.name, with the other arguments
	spread      // like call, for each item of args[0]
	collect     // evaluates args[1] for each item of args[0], with the item in slot
	items       // a list of args
	logical     // name: && ||
	between     // name: .. ..<
	shift       // name: << >> >>>
	binary      // name: any other operator with two operands
)

type node struct {
	op    op
	class Class
	slot  int
	name  string
	value Value
	args  []*node
	apply func(class Class, x, y int64) Value // of a binary operator; see integerOperators
}

// Limits of an expression. They bound nested brackets, operators, and the length of strings,
// because a list can repeat a string for each item.
const (
	maxDepth     = 20
	maxOperators = 1000
	maxString    = 256
)

// levels are the binary operators by precedence, lowest first.
var levels = [][]string{
	{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<", "<=", ">", ">="},
	{"<<", ">>", ">>>", "..", "..<"}, {"+", "-"}, {"*", "/", "%"},
}

// kinds are the operators in levels that aren't binary.
var kinds = map[string]op{
	"||": logical, "&&": logical, "..": between, "..<": between, "<<": shift, ">>": shift, ">>>": shift,
}

// operators are the tokens of several characters. A token that begins with another one comes before
// it. Tokens that this package doesn't understand are listed too, so that "<=>" isn't read as "<="
// and ">".
var operators = []string{
	">>>=", "<=>", ">>>", "<<=", ">>=", "**=", "===", "!==", "==~", "..<", "<..", "**", "*.", "||", "&&", "==", "!=",
	"<=", ">=", "<<", ">>", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "=~", "?.", ".&", "::", "?:",
	"->", "..",
}

// methods are the methods of values, and statics are the static methods of classes. Each has its
// smallest and largest number of arguments.
var (
	methods = map[string][2]int{
		"toString": {0, 0}, "hashCode": {0, 0}, "abs": {0, 0}, "intdiv": {1, 1},
		"intValue": {0, 0}, "longValue": {0, 0}, "toInteger": {0, 0}, "toLong": {0, 0},
		"length": {0, 0}, "substring": {1, 2}, "padLeft": {1, 2}, "step": {1, 1},
	}
	statics = map[string][2]int{
		"Math.abs": {1, 1}, "Math.floorMod": {2, 2}, "Math.floorDiv": {2, 2},
		"Integer.valueOf": {1, 1}, "Integer.parseInt": {1, 1}, "Long.valueOf": {1, 1}, "Long.parseLong": {1, 1},
	}
	constants = map[string]Value{"Integer.MAX_VALUE": OfInt(1<<31 - 1), "Long.MAX_VALUE": OfLong(1<<63 - 1)}
	casts     = map[string]Class{"int": Integer, "Integer": Integer, "long": Long, "Long": Long}
)

// parser reads one expression of a template. After the first error it reads no more tokens.
type parser struct {
	text      string
	at        int
	names     []string // names of variables, by slot
	depth     int
	operators int
	err       *Error
	foreign   *Error // the first part of Groovy that the package doesn't evaluate
}

func (p *parser) error(format string, args ...any) *Error {
	reason := fmt.Sprintf(format, args...)
	return &Error{Reason: fmt.Sprintf("%s at character %d", reason, p.at+1), Offset: p.at}
}

// fail records that the package doesn't support the next token.
func (p *parser) fail(format string, args ...any) *node {
	if p.err == nil {
		p.err = p.error(format, args...)
	}
	p.at = len(p.text)
	return nil
}

// wrong records a mistake at the next token.
func (p *parser) wrong(format string, args ...any) *node {
	if p.err == nil {
		p.err = p.error(format, args...)
		p.err.Wrong = true
	}
	p.at = len(p.text)
	return nil
}

// expected records that the next token isn't the expected one.
func (p *parser) expected(want string) *node {
	switch token := p.peek(); {
	case token == "":
		return p.wrong("expected } after ${")
	case want != "a value" && slices.Contains(foreignOperators, token),
		// Groovy's names may have letters beyond ASCII.
		want == "a value" && (slices.Contains(foreignValues, token) || token[0] >= utf8.RuneSelf):
		return p.fail("%q is not supported", Clip(token))
	default:
		return p.wrong("expected %s, found %q", want, Clip(token))
	}
}

// peek returns the next token without reading it: an operator, a name, a number, or a single
// character.
func (p *parser) peek() string {
	rest := strings.TrimLeft(p.text[p.at:], " \t")
	p.at = len(p.text) - len(rest)
	if n := nameLength(rest); n > 0 {
		return rest[:n]
	}
	for _, o := range operators {
		if strings.HasPrefix(rest, o) {
			return o
		}
	}
	_, size := utf8.DecodeRuneInString(rest)
	return rest[:size]
}

// take reads the next token if it is want, and reports whether it is.
func (p *parser) take(want string) bool {
	if p.peek() != want {
		return false
	}
	p.at += len(want)
	return true
}

// expect reads the next token, which must be want.
func (p *parser) expect(want string) {
	if !p.take(want) {
		p.expected(want)
	}
}

func nameLength(s string) int {
	n := 0
	for n < len(s) && (s[n] == '_' || isDigit(s[n]) || 'a' <= s[n]|0x20 && s[n]|0x20 <= 'z') {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// operator counts operators. Each of them makes the tree of nodes deeper.
func (p *parser) operator() {
	if p.operators++; p.operators > maxOperators {
		p.fail("more than %d operators", maxOperators)
	}
}

// expression reads an expression, including the ternary operator a ? b : c.
func (p *parser) expression() *node {
	if p.depth++; p.depth > maxDepth {
		return p.fail("more than %d nested expressions", maxDepth)
	}
	defer func() { p.depth-- }()
	condition := p.binary(0)
	if !p.take("?") {
		return condition
	}
	then := p.expression()
	p.expect(":")
	return &node{op: ternary, args: []*node{condition, then, p.expression()}}
}

// binary reads an expression whose operators have at least the precedence of level.
func (p *parser) binary(level int) *node {
	if level == len(levels) {
		return p.unary()
	}
	left := p.binary(level + 1)
	for {
		token := p.peek()
		if !slices.Contains(levels[level], token) {
			return left
		}
		p.at += len(token)
		p.operator()
		left = &node{op: cmp.Or(kinds[token], binary), name: token, apply: integerOperators[token],
			args: []*node{left, p.binary(level + 1)}}
	}
}

// unary reads signs and casts, and their operand.
func (p *parser) unary() *node {
	switch token := p.peek(); token {
	case "-", "+", "~", "!":
		p.at++
		p.operator()
		return &node{op: unary, name: token, args: []*node{p.unary()}}
	case "(":
		before := p.at
		p.at++
		name := p.peek()
		class, ok := casts[name]
		p.at += len(name)
		closed := nameLength(name) > 0 && p.take(")")
		next := p.peek()
		switch isValue := nameLength(next) > 0 || next == "'" || next == `"` || next == "("; {
		case closed && !ok && isValue && !slices.Contains(p.names, name):
			p.at = before
			return p.fail("the cast to %s is not supported", Clip(name))
		case !closed || !ok:
			p.at = before
			return p.postfix()
		case (next == "-" || next == "+") && name[0] <= 'Z':
			// a class in parentheses that is followed by an operator isn't a cast
			return p.fail("%q is not supported", next)
		}
		p.operator()
		return &node{op: cast, class: class, args: []*node{p.unary()}}
	}
	return p.postfix()
}

// postfix reads a value and the method calls after it.
func (p *parser) postfix() *node {
	n := p.primary()
	for {
		switch {
		case p.take("."):
			n = p.method(n, call)
		case p.take("*."):
			n = p.method(n, spread)
		default:
			return n
		}
	}
}

func (p *parser) method(receiver *node, op op) *node {
	p.operator()
	name := p.peek()
	if name == "collect" && op == call {
		p.at += len(name)
		return p.collect(receiver)
	}
	count, ok := methods[name]
	if !ok {
		return p.member()
	}
	return &node{op: op, name: name, args: append([]*node{receiver}, p.arguments(name, count)...)}
}

// arguments reads a method name and the arguments in parentheses.
func (p *parser) arguments(name string, count [2]int) []*node {
	p.at += len(p.peek())
	p.expect("(")
	args := p.list(")")
	switch {
	case len(args) < count[0], len(args) > count[1] && !slices.Contains(overloaded, name):
		p.wrong("%s() has no form with %d arguments", name, len(args))
	case len(args) > count[1]:
		p.fail("%s() with %d arguments is not supported", name, len(args))
	}
	return args
}

// list reads expressions separated by commas, up to the closing bracket end.
func (p *parser) list(end string) (list []*node) {
	for p.err == nil && !p.take(end) {
		if len(list) > 0 {
			p.expect(",")
		}
		if p.peek() != ":" {
			list = append(list, p.expression())
		}
		if p.peek() == ":" {
			p.fail("a map is not supported")
		}
	}
	return list
}

// collect reads a closure: {x -> …}, {… it …} or (x -> …).
func (p *parser) collect(receiver *node) *node {
	end := "}"
	if !p.take("{") {
		end = ")"
		p.expect("(")
	}
	before, name := p.at, p.peek()
	if p.at += len(name); !p.take("->") {
		p.at, name = before, "it"
	}
	p.names = append(p.names, name)
	slot := len(p.names) - 1
	body := p.expression()
	p.names = p.names[:slot]
	p.expect(end)
	return &node{op: collect, slot: slot, args: []*node{receiver, body}}
}

func (p *parser) primary() *node {
	switch token := p.peek(); {
	case token == "":
	case token == "(":
		p.at++
		n := p.expression()
		p.expect(")")
		return n
	case token == "[":
		p.at++
		return &node{op: items, args: p.list("]")}
	case token == "'" || token == `"`:
		return p.quoted(token)
	case isDigit(token[0]):
		return p.number(token)
	case nameLength(token) > 0:
		return p.name(token)
	}
	return p.expected("a value")
}

// quoted reads 'string' or "string". Escapes and embedded expressions aren't supported.
func (p *parser) quoted(quote string) *node {
	inner := p.text[p.at+1:]
	end := 0
	for end < len(inner) && inner[end] != quote[0] && inner[end] != '\n' {
		if end++; inner[end-1] == '\\' {
			end++
		}
	}
	if end >= len(inner) || inner[end] == '\n' {
		return p.wrong("expected a closed string")
	}
	if strings.ContainsAny(inner[:end], "'\"\\$\r") {
		return p.skip(p.text[p.at:][:end+2])
	}
	if end > maxString {
		return p.fail("a string is longer than %d bytes", maxString)
	}
	p.at += end + 2
	return &node{op: constant, value: OfString(inner[:end])}
}

// number reads a number such as 12, 12L or 0x1F. It is an Integer if it fits, and a Long otherwise.
func (p *parser) number(token string) *node {
	digits, isLong := strings.CutSuffix(strings.ToUpper(token), "L")
	hex := strings.HasPrefix(digits, "0X")
	if len(digits) > 1 && digits[0] == '0' && !hex {
		p.err = &Error{Offset: -1, Wrong: !groovyNumber.MatchString(token),
			Reason: "a number with a leading zero is octal in ShardingSphere, which expands ${01..12} " +
				"to 1, 2, … 12: write ${1..12} for 1, 2, … 12 " +
				"and ${(1..12).collect{it.toString().padLeft(2, '0')}} for 01, 02, … 12"}
		p.at = len(p.text)
		return nil
	}
	base := 10
	if hex {
		base, digits = 16, digits[2:]
	}
	n, err := strconv.ParseInt(digits, base, 64)
	fits := n <= 1<<31-1
	rest := p.text[p.at+len(token):]
	isDecimal := len(rest) > 1 && rest[0] == '.' && isDigit(rest[1])
	switch {
	case !groovyNumber.MatchString(token):
		return p.expected("a number")
	case isDecimal:
		return p.skip(token + rest[:1+nameLength(rest[1:])])
	case err != nil || hex && !fits && !isLong:
		return p.skip(token)
	}
	p.at += len(token)
	class := Integer
	if isLong || !fits {
		class = Long
	}
	return &node{op: constant, value: Value{class: class, n: n}}
}

// name reads a variable, null, a constant of a class, or a call of a static method.
func (p *parser) name(name string) *node {
	for slot, known := range slices.Backward(p.names) {
		if known == name {
			p.at += len(name)
			return &node{op: variable, slot: slot}
		}
	}
	if name == "null" {
		p.at += len(name)
		return &node{op: constant}
	}
	before := p.at
	p.at += len(name)
	next := p.peek()
	if next == "." && slices.Contains(javaClasses, name) {
		p.at++
		full := name + "." + p.peek()
		if v, ok := constants[full]; ok {
			p.at += len(p.peek())
			return &node{op: constant, value: v}
		}
		if count, ok := statics[full]; ok {
			return &node{op: call, name: full, args: p.arguments(full, count)}
		}
		if right := misspelt(full, slices.Collect(maps.Keys(statics))); right != "" {
			return p.wrong("expected %s, found %q", right, full)
		}
		return p.member()
	}
	p.at = before
	return p.foreignName(name, next)
}
