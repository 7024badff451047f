package expr

import (
	"fmt"
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
	call        // name, of args[0] with the others
	spread      // as call, of each item of args[0]
	static      // name: Math.abs
	collect     // args[1] for each item of args[0], which is in slot
	items       // of a list
	and
	or
	// The operators of two arguments that are both evaluated.
	bitOr
	bitXor
	bitAnd
	equal
	notEqual
	less
	lessEqual
	greater
	greaterEqual
	shiftLeft
	shiftRight
	shiftRightZero
	to
	until
	plus
	minus
	times
	slash
	percent
)

// names are the operators of two arguments, by op.
var names = [...]string{and: "&&", or: "||", bitOr: "|", bitXor: "^", bitAnd: "&", equal: "==", notEqual: "!=",
	less: "<", lessEqual: "<=", greater: ">", greaterEqual: ">=", shiftLeft: "<<", shiftRight: ">>", shiftRightZero: ">>>",
	to: "..", until: "..<", plus: "+", minus: "-", times: "*", slash: "/", percent: "%"}

// node is an expression.
type node struct {
	op    op
	class Class
	slot  int
	name  string
	value Value
	args  []*node
}

// Bounds of an expression: of its nested brackets, its operators and its strings, which can be
// repeated for each item of a list.
const (
	maxDepth     = 20
	maxOperators = 1000
	maxString    = 256
)

// levels are the operators of two arguments, from those that bind least.
var levels = [][]op{
	{or}, {and}, {bitOr}, {bitXor}, {bitAnd}, {equal, notEqual}, {less, lessEqual, greater, greaterEqual},
	{shiftLeft, shiftRight, shiftRightZero, to, until}, {plus, minus}, {times, slash, percent},
}

// operators are the tokens of several characters, those in front that begin with others. Tokens
// that no expression has here keep "<" from being taken off "<=>".
var operators = []string{
	">>>=", "<=>", ">>>", "<<=", ">>=", "**=", "===", "!==", "==~", "..<", "<..", "**", "*.", "||", "&&", "==", "!=",
	"<=", ">=", "<<", ">>", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "=~", "?.", ".&", "::", "?:",
	"->", "..",
}

// methods are the methods of values, and statics those of classes, with their least and greatest
// number of arguments.
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

// parser reads one expression of a template.
type parser struct {
	text      string
	at        int
	names     []string // of variables, by slot
	used      bool     // the column is
	depth     int
	operators int
}

// fail returns the error at the next token.
func (p *parser) fail(format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	return &Error{Reason: fmt.Sprintf("%s at character %d", reason, p.at+1), Offset: p.at}
}

func (p *parser) notUnderstood() error {
	token := p.peek()
	if token == "" {
		return p.fail("${ is not closed with }")
	}
	return p.fail("%q is not understood", clip(token))
}

// peek returns the next token: an operator, a name or number, or a character.
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

// take skips the next token if it is the wanted one.
func (p *parser) take(want string) bool {
	if p.peek() != want {
		return false
	}
	p.at += len(want)
	return true
}

// expect skips the next token, which must be the wanted one.
func (p *parser) expect(want string) error {
	if !p.take(want) {
		return p.notUnderstood()
	}
	return nil
}

func nameLength(s string) int {
	n := 0
	for n < len(s) && (s[n] == '_' || isDigit(s[n]) || 'a' <= s[n]|0x20 && s[n]|0x20 <= 'z') {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// operator counts the operators, which make the tree of nodes deep.
func (p *parser) operator() error {
	if p.operators++; p.operators > maxOperators {
		return p.fail("an expression with more than %d operators is not understood", maxOperators)
	}
	return nil
}

// expression reads the operator that binds least, a ? b : c.
func (p *parser) expression() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("an expression nested more than %d deep is not understood", maxDepth)
	}
	defer func() { p.depth-- }()
	condition, err := p.binary(0)
	if err != nil || !p.take("?") {
		return condition, err
	}
	then, err := p.expression()
	if err == nil {
		err = p.expect(":")
	}
	if err != nil {
		return nil, err
	}
	otherwise, err := p.expression()
	return &node{op: ternary, args: []*node{condition, then, otherwise}}, err
}

// binary reads the operators of a level, and those that bind more.
func (p *parser) binary(level int) (*node, error) {
	if level == len(levels) {
		return p.unary()
	}
	left, err := p.binary(level + 1)
	for err == nil {
		token := p.peek()
		i := slices.IndexFunc(levels[level], func(o op) bool { return names[o] == token })
		if i < 0 {
			return left, nil
		}
		p.at += len(token)
		if err = p.operator(); err != nil {
			break
		}
		var right *node
		right, err = p.binary(level + 1)
		left = &node{op: levels[level][i], args: []*node{left, right}}
	}
	return nil, err
}

// unary reads signs and casts, and what they apply to.
func (p *parser) unary() (*node, error) {
	switch token := p.peek(); token {
	case "-", "+", "~", "!":
		p.at++
		if err := p.operator(); err != nil {
			return nil, err
		}
		arg, err := p.unary()
		return &node{op: unary, name: token, args: []*node{arg}}, err
	case "(":
		before := p.at
		p.at++
		name := p.peek()
		class, ok := casts[name]
		if p.at += len(name); !ok || !p.take(")") {
			p.at = before
			break
		}
		if next := p.peek(); (next == "-" || next == "+") && name[0] <= 'Z' {
			return nil, p.notUnderstood() // an operator after a class in brackets
		}
		if err := p.operator(); err != nil {
			return nil, err
		}
		arg, err := p.unary()
		return &node{op: cast, class: class, args: []*node{arg}}, err
	}
	return p.postfix()
}

// postfix reads a value and the calls of its methods.
func (p *parser) postfix() (*node, error) {
	n, err := p.primary()
	for err == nil {
		switch {
		case p.take("."):
			n, err = p.method(n, call)
		case p.take("*."):
			n, err = p.method(n, spread)
		default:
			return n, nil
		}
	}
	return nil, err
}

func (p *parser) method(receiver *node, op op) (*node, error) {
	if err := p.operator(); err != nil {
		return nil, err
	}
	name := p.peek()
	if name == "collect" && op == call {
		p.at += len(name)
		return p.collect(receiver)
	}
	count, ok := methods[name]
	if !ok {
		return nil, p.notUnderstood()
	}
	args, err := p.arguments(name, count)
	return &node{op: op, name: name, args: append([]*node{receiver}, args...)}, err
}

// arguments reads the name of a method, and its arguments in brackets.
func (p *parser) arguments(name string, count [2]int) (args []*node, err error) {
	p.at += len(p.peek())
	if err := p.expect("("); err != nil {
		return nil, err
	}
	if args, err = p.list(")"); err == nil && (len(args) < count[0] || len(args) > count[1]) {
		err = p.fail("%s() with %d arguments is not understood", name, len(args))
	}
	return args, err
}

// list reads expressions separated by commas, up to a closing bracket.
func (p *parser) list(end string) (list []*node, err error) {
	for !p.take(end) {
		if len(list) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		n, err := p.expression()
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// collect reads a closure: {x -> …}, {… it …} or (x -> …).
func (p *parser) collect(receiver *node) (*node, error) {
	end := ")"
	if p.take("{") {
		end = "}"
	} else if err := p.expect("("); err != nil {
		return nil, err
	}
	before, name := p.at, p.peek()
	if p.at += len(name); !p.take("->") {
		p.at, name = before, "it"
	}
	p.names = append(p.names, name)
	slot := len(p.names) - 1
	body, err := p.expression()
	p.names = p.names[:slot]
	if err == nil {
		err = p.expect(end)
	}
	return &node{op: collect, slot: slot, args: []*node{receiver, body}}, err
}

func (p *parser) primary() (*node, error) {
	switch token := p.peek(); {
	case token == "":
	case token == "(":
		p.at++
		n, err := p.expression()
		if err == nil {
			err = p.expect(")")
		}
		return n, err
	case token == "[":
		p.at++
		list, err := p.list("]")
		return &node{op: items, args: list}, err
	case token == "'" || token == `"`:
		return p.quoted(token)
	case isDigit(token[0]):
		return p.number(token)
	case nameLength(token) > 0:
		return p.name(token)
	}
	return nil, p.notUnderstood()
}

// quoted reads 'string' or "string", without escapes and expressions in it.
func (p *parser) quoted(quote string) (*node, error) {
	inner := p.text[p.at+1:]
	end := strings.IndexAny(inner, "'\"\\$\n\r")
	if end < 0 || inner[end] != quote[0] {
		return nil, p.fail("a string that is not closed, or has a quote, a backslash or $ in it, is not understood")
	}
	if end > maxString {
		return nil, p.fail("a string is longer than %d bytes", maxString)
	}
	p.at += end + 2
	return &node{op: constant, value: OfString(inner[:end])}, nil
}

// number reads 12, 12L and 0x1F: an Integer, or a Long where it does not fit.
func (p *parser) number(token string) (*node, error) {
	digits, isLong := strings.CutSuffix(strings.ToUpper(token), "L")
	hex := strings.HasPrefix(digits, "0X")
	if len(digits) > 1 && digits[0] == '0' && !hex {
		return nil, fail("a number with a leading zero is octal in ShardingSphere, which expands ${01..12} " +
			"to 1, 2, … 12: write ${1..12} for 1, 2, … 12 " +
			"and ${(1..12).collect{it.toString().padLeft(2, '0')}} for 01, 02, … 12")
	}
	base := 10
	if hex {
		base, digits = 16, digits[2:]
	}
	n, err := strconv.ParseInt(digits, base, 64)
	fits := n <= 1<<31-1
	if rest := p.text[p.at+len(token):]; err != nil || hex && !fits && !isLong ||
		len(rest) > 1 && rest[0] == '.' && isDigit(rest[1]) {
		return nil, p.notUnderstood()
	}
	p.at += len(token)
	class := Integer
	if isLong || !fits {
		class = Long
	}
	return &node{op: constant, value: Value{class: class, n: n}}, nil
}

// name reads a variable, null, or a class's constant or method.
func (p *parser) name(name string) (*node, error) {
	for slot, known := range slices.Backward(p.names) {
		if known == name {
			p.used = p.used || slot == 0
			p.at += len(name)
			return &node{op: variable, slot: slot}, nil
		}
	}
	if name == "null" {
		p.at += len(name)
		return &node{op: constant}, nil
	}
	before := p.at
	if p.at += len(name); p.take(".") {
		name += "." + p.peek()
		if v, ok := constants[name]; ok {
			p.at += len(p.peek())
			return &node{op: constant, value: v}, nil
		}
		if count, ok := statics[name]; ok {
			args, err := p.arguments(name, count)
			return &node{op: static, name: name, args: args}, err
		}
		if strings.HasPrefix(name, "Math.") || strings.HasPrefix(name, "Integer.") || strings.HasPrefix(name, "Long.") {
			return nil, p.notUnderstood()
		}
	}
	p.at = before
	if column := p.names[0]; column != "" && strings.EqualFold(column, name) {
		return nil, p.fail("%q is not understood: the sharding column is %s (names are case-sensitive)", name, column)
	}
	return nil, p.notUnderstood()
}
