package groovy

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// maxDepth bounds nested brackets, each of which takes three calls.
const maxDepth = 3 * 64

// op is what a node does with its arguments.
type op uint8

const (
	constant op = iota
	variable    // index
	unary       // sign: - + ~ !
	infix       // sign
	ternary     // condition, then, else
	elvis
	and
	or
	cast // to class
	call // name, of args[0] with the others
	static
	index // args[0][args[1]]
	slice // args[0][args[1]..args[2]]
	text  // a text with ${…}: its parts
	listOf
	mapOf // keys and values in turn
)

// node is an expression.
type node struct {
	op    op
	sign  token // of a unary or binary
	index int
	class Class
	name  string
	call  int // of a method, in methods
	value Value
	args  []*node
}

func (n *node) uses(i int) bool {
	return n.op == variable && n.index == i ||
		slices.ContainsFunc(n.args, func(a *node) bool { return a.uses(i) })
}

// token is an operator; zero for none.
type token uint8

const (
	plus token = iota + 1
	minus
	times
	slash
	percent
	power
	shiftLeft
	shiftRight
	shiftRightZero
	bitAnd
	bitOr
	bitXor
	bitNot
	not
	equal
	notEqual
	less
	lessEqual
	greater
	greaterEqual
	logicalAnd
	logicalOr
	asClass
)

// levels are the binary operators, from those that bind least. Longer ones stand
// in front of those that they begin with.
var levels = [][]struct {
	text  string
	token token
}{
	{{"||", logicalOr}},
	{{"&&", logicalAnd}},
	{{"|", bitOr}},
	{{"^", bitXor}},
	{{"&", bitAnd}},
	{{"==", equal}, {"!=", notEqual}},
	{{"<=", lessEqual}, {">=", greaterEqual}, {"<", less}, {">", greater}, {"as", asClass}},
	{{"<<", shiftLeft}, {">>>", shiftRightZero}, {">>", shiftRight}},
	{{"+", plus}, {"-", minus}},
	{{"*", times}, {"/", slash}, {"%", percent}},
}

// operators are the texts that are one operator each, so that "<" is not taken
// off "<<". The ones that are no operators here are not understood.
var operators = []string{">>>=", "<=>", ">>>", "<<=", ">>=", "**=", "===", "!==", "==~", "..<", "<..", "**", "||", "&&", "==", "!=", "<=", ">=", "<<", ">>",
	"++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "=~", "?.", "*.", ".&", "::", "?:", "->", ".."}

// parser reads one expression of a template.
type parser struct {
	template *Template
	text     string
	at       int
	depth    int
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{Text: p.text, Offset: min(p.at, len(p.text)), Reason: fmt.Sprintf(format, args...)}
}

// notUnderstood is the error at what stands next.
func (p *parser) notUnderstood() error {
	p.space()
	if p.at >= len(p.text) {
		return p.fail("${ is not closed")
	}
	return p.fail("%q is not understood", clip(p.peekToken()))
}

// whole reads an expression and the "}" after it.
func (p *parser) whole() (*node, error) {
	n, err := p.expression()
	if err != nil {
		return nil, err
	}
	if !p.take("}") {
		return nil, p.notUnderstood()
	}
	return n, nil
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t", p.text[p.at]) >= 0 {
		p.at++
	}
}

// peekToken returns the operator, name or character that stands next.
func (p *parser) peekToken() string {
	p.space()
	rest := p.text[p.at:]
	if rest == "" {
		return ""
	}
	if isNameByte(rest[0]) {
		return rest[:nameLength(rest)]
	}
	for _, o := range operators {
		if strings.HasPrefix(rest, o) {
			return o
		}
	}
	return rest[:1]
}

// take takes a token when it stands next.
func (p *parser) take(want string) bool {
	if p.peekToken() != want {
		return false
	}
	p.at += len(want)
	return true
}

func isNameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func nameLength(s string) int {
	n := 0
	for n < len(s) && isNameByte(s[n]) {
		n++
	}
	return n
}

// expression reads a ternary, which binds least.
func (p *parser) expression() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("the expression is nested too deep")
	}
	defer func() { p.depth-- }()
	condition, err := p.binary(0)
	if err != nil {
		return nil, err
	}
	if p.take("?:") {
		other, err := p.expression()
		return &node{op: elvis, args: []*node{condition, other}}, err
	}
	if !p.take("?") {
		return condition, nil
	}
	then, err := p.expression()
	if err != nil {
		return nil, err
	}
	if !p.take(":") {
		return nil, p.notUnderstood()
	}
	other, err := p.expression()
	return &node{op: ternary, args: []*node{condition, then, other}}, err
}

// binary reads the operators of a level and of those that bind more.
func (p *parser) binary(level int) (*node, error) {
	if level == len(levels) {
		return p.unary()
	}
	left, err := p.binary(level + 1)
	for err == nil {
		next, found := p.peekToken(), token(0)
		for _, o := range levels[level] {
			if o.text == next {
				found = o.token
			}
		}
		if found == 0 {
			break
		}
		p.at += len(next)
		left, err = p.operation(left, found, level)
	}
	return left, err
}

// operation reads what stands on the right of an operator.
func (p *parser) operation(left *node, sign token, level int) (*node, error) {
	if sign == asClass {
		class, err := p.className()
		return &node{op: cast, class: class, name: "as", args: []*node{left}}, err
	}
	right, err := p.binary(level + 1)
	if err != nil {
		return nil, err
	}
	n := &node{op: infix, sign: sign, args: []*node{left, right}}
	switch sign {
	case logicalAnd:
		n.op = and
	case logicalOr:
		n.op = or
	}
	return n, nil
}

// unary reads the signs in front of a power.
func (p *parser) unary() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("the expression is nested too deep")
	}
	defer func() { p.depth-- }()
	for _, o := range []struct {
		text string
		sign token
	}{{"-", minus}, {"+", plus}} {
		if p.take(o.text) {
			arg, err := p.unary()
			if err != nil {
				return nil, err
			}
			if o.sign == minus && arg.op == constant && arg.value.class == BigInteger && arg.value.big().Cmp(minLong) == 0 {
				return &node{op: constant, value: OfLong(-1 << 63)}, nil
			}
			return &node{op: unary, sign: o.sign, args: []*node{arg}}, nil
		}
	}
	base, err := p.prefixed()
	for err == nil && p.take("**") {
		var exponent *node
		if p.peekToken() == "-" {
			return nil, p.notUnderstood()
		}
		exponent, err = p.prefixed()
		base = &node{op: infix, sign: power, args: []*node{base, exponent}}
	}
	return base, err
}

// minLong is 2^63, which with a minus is a Long.
var minLong = new(big.Int).Lsh(big.NewInt(1), 63)

// prefixed reads "~", "!" and casts, and what they are in front of.
func (p *parser) prefixed() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("the expression is nested too deep")
	}
	defer func() { p.depth-- }()
	sign := token(0)
	switch {
	case p.take("~"):
		sign = bitNot
	case p.take("!"):
		sign = not
	}
	if sign != 0 {
		arg, err := p.prefixed()
		return &node{op: unary, sign: sign, args: []*node{arg}}, err
	}
	before := p.at
	if p.take("(") {
		name := p.peekToken()
		class, err := p.className()
		if err == nil && p.take(")") {
			operand := p.prefixed
			if name == "int" || name == "long" || name == "double" {
				operand = p.unary // (Integer) - 1 subtracts from a name
			}
			arg, err := operand()
			return &node{op: cast, class: class, args: []*node{arg}}, err
		}
		p.at = before
	}
	return p.postfix()
}

// classes are what a value can be turned into.
var classes = map[string]Class{
	"int": Integer, "Integer": Integer, "long": Long, "Long": Long, "BigInteger": BigInteger,
	"BigDecimal": BigDecimal, "double": Double, "Double": Double, "String": String,
}

func (p *parser) className() (Class, error) {
	name := p.peekToken()
	class, ok := classes[name]
	if !ok {
		return 0, p.notUnderstood()
	}
	p.at += len(name)
	return class, nil
}

// postfix reads a value and the methods and indexes after it.
func (p *parser) postfix() (*node, error) {
	n, err := p.primary()
	for err == nil {
		switch {
		case p.take("."):
			n, err = p.method(n)
		case p.take("["):
			n, err = p.indexed(n)
		default:
			return n, nil
		}
	}
	return nil, err
}

func (p *parser) method(receiver *node) (*node, error) {
	name := p.peekToken()
	number, ok := methodNumbers[name]
	if !ok {
		return nil, p.notUnderstood()
	}
	p.at += len(name)
	if !p.take("(") {
		return nil, p.notUnderstood()
	}
	args, err := p.arguments(")")
	if err != nil {
		return nil, err
	}
	if m := methods[number]; len(args) < m.least || len(args) > m.most {
		return nil, p.fail("%s() has %d arguments here, which is not understood", name, len(args))
	}
	return &node{op: call, name: name, call: number, args: append([]*node{receiver}, args...)}, nil
}

// arguments reads expressions separated by commas, up to a closing bracket.
func (p *parser) arguments(end string) (args []*node, err error) {
	for !p.take(end) {
		if len(args) > 0 && !p.take(",") {
			return nil, p.notUnderstood()
		}
		arg, err := p.expression()
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	return args, nil
}

// indexed reads n] or a..b] after "[".
func (p *parser) indexed(receiver *node) (*node, error) {
	from, err := p.expression()
	if err != nil {
		return nil, err
	}
	if p.take("]") {
		return &node{op: index, args: []*node{receiver, from}}, nil
	}
	if !p.take("..") {
		return nil, p.notUnderstood()
	}
	to, err := p.expression()
	if err == nil && !p.take("]") {
		err = p.notUnderstood()
	}
	return &node{op: slice, args: []*node{receiver, from, to}}, err
}

func (p *parser) primary() (*node, error) {
	switch next := p.peekToken(); {
	case next == "(":
		p.at++
		n, err := p.expression()
		if err == nil && !p.take(")") {
			err = p.notUnderstood()
		}
		return n, err
	case next == "[":
		p.at++
		return p.items()
	case next == "'" || next == "\"":
		return p.quoted(next[0])
	case next == "":
		return nil, p.notUnderstood()
	case isDigit(next[0]):
		return p.number()
	case isNameByte(next[0]):
		return p.name(next)
	}
	return nil, p.notUnderstood()
}

// quoted reads 'text', or "text" which may have ${…} in it.
func (p *parser) quoted(quote byte) (*node, error) {
	if strings.HasPrefix(p.text[p.at+1:], strings.Repeat(string(quote), 2)) {
		return nil, p.fail("three quotes are not understood")
	}
	if quote == '"' {
		parts, end, err := p.template.read(p.text, p.at+1, p.depth)
		if err != nil {
			return nil, err
		}
		if end == len(p.text) {
			return nil, p.fail("the quote is not closed")
		}
		p.at = end + 1
		return textNode(parts), nil
	}
	inner := p.text[p.at+1:]
	end := strings.IndexAny(inner, "'\\\n\r")
	if end < 0 || inner[end] != '\'' {
		return nil, p.fail("the quote is not closed, or has a backslash, which is not understood")
	}
	p.at += end + 2
	return &node{op: constant, value: OfString(inner[:end])}, nil
}

func textNode(parts []part) *node {
	n := &node{op: text}
	for _, part := range parts {
		arg := part.expr
		if arg == nil {
			arg = &node{op: constant, value: OfString(part.text)}
		}
		n.args = append(n.args, arg)
	}
	switch {
	case len(n.args) == 0:
		return &node{op: constant, value: OfString("")}
	case len(n.args) == 1 && n.args[0].op == constant:
		return n.args[0]
	}
	return n
}

// items reads a list or a map after "[".
func (p *parser) items() (*node, error) {
	if p.take(":") {
		if !p.take("]") {
			return nil, p.notUnderstood()
		}
		return &node{op: mapOf}, nil
	}
	n := &node{op: listOf}
	for !p.take("]") {
		if len(n.args) > 0 && !p.take(",") {
			return nil, p.notUnderstood()
		}
		key, isMap, err := p.item()
		if err != nil {
			return nil, err
		}
		if isMap != (n.op == mapOf) && len(n.args) > 0 {
			return nil, p.notUnderstood()
		}
		n.args = append(n.args, key)
		if isMap {
			n.op = mapOf
			value, err := p.expression()
			if err != nil {
				return nil, err
			}
			n.args = append(n.args, value)
		}
	}
	return n, nil
}

// item reads an item of a list, or the key of a map's entry and the colon after
// it. A name before a colon is a text.
func (p *parser) item() (key *node, isMap bool, err error) {
	next := p.peekToken()
	before := p.at
	if next != "" && isNameByte(next[0]) && !isDigit(next[0]) {
		p.at += len(next)
		if p.take(":") {
			return &node{op: constant, value: OfString(next)}, true, nil
		}
		p.at = before
	}
	key, err = p.expression()
	return key, err == nil && p.take(":"), err
}

// name reads a variable, a word, or a call of a class's method.
func (p *parser) name(name string) (*node, error) {
	if !isName(name) {
		return nil, p.notUnderstood()
	}
	at := p.at
	p.at += len(name)
	if i := slices.Index(p.template.names, name); i >= 0 {
		return &node{op: variable, index: i, name: name}, nil
	}
	switch name {
	case "null":
		return &node{op: constant}, nil
	case "true", "false":
		return &node{op: constant, value: OfBool(name == "true")}, nil
	case "new":
		return p.constructor()
	}
	next := p.peekToken()
	if next == "(" || slices.Contains(keywords, name) {
		p.at = at
		return nil, p.notUnderstood()
	}
	if isStaticClass(name) && next == "." {
		p.at++
		return p.static(name)
	}
	if !slices.Contains(p.template.unknown, name) {
		p.template.unknown = append(p.template.unknown, name)
	}
	return &node{op: constant, name: name}, nil
}

var keywords = []string{"it", "this", "super", "in", "as", "instanceof", "if", "else", "return", "def", "switch", "case", "for", "while", "try", "throw", "assert", "class", "import"}

func isName(s string) bool { return s != "" && !isDigit(s[0]) }

// constructor reads what stands after "new".
func (p *parser) constructor() (*node, error) {
	name := p.peekToken()
	number, ok := staticNumbers["new "+name]
	if !ok {
		return nil, p.notUnderstood()
	}
	p.at += len(name)
	return p.staticCall(number)
}

// static reads a method or a constant of a class, after the dot.
func (p *parser) static(class string) (*node, error) {
	name := class + "." + p.peekToken()
	if v, ok := constants[name]; ok {
		p.at += len(p.peekToken())
		return &node{op: constant, value: v}, nil
	}
	number, ok := staticNumbers[name]
	if !ok {
		return nil, p.notUnderstood()
	}
	p.at += len(p.peekToken())
	return p.staticCall(number)
}

func (p *parser) staticCall(number int) (*node, error) {
	m := statics[number]
	if !p.take("(") {
		return nil, p.notUnderstood()
	}
	args, err := p.arguments(")")
	if err != nil {
		return nil, err
	}
	if len(args) < m.least || len(args) > m.most {
		return nil, p.fail("%s() has %d arguments here, which is not understood", m.name, len(args))
	}
	return &node{op: static, name: m.name, call: number, args: args}, nil
}

// number reads 12, 12L, 12I, 12G, 0x1F, 017, 0b11, 1_000 and 1.5.
func (p *parser) number() (*node, error) {
	digits := p.peekToken()
	if rest := p.text[p.at+len(digits):]; len(rest) > 1 && rest[0] == '.' && isDigit(rest[1]) {
		fraction := rest[1 : 1+nameLength(rest[1:])]
		v, err := parseDecimal(digits + "." + fraction)
		if err != nil {
			return nil, p.notUnderstood()
		}
		p.at += len(digits) + 1 + len(fraction)
		return &node{op: constant, value: v}, nil
	}
	v, ok := integerLiteral(digits)
	if !ok {
		return nil, p.notUnderstood()
	}
	p.at += len(digits)
	return &node{op: constant, value: v}, nil
}

// integerLiteral is an Integer, or what it does not fit, unless its suffix says
// more. Hexadecimal and the like must be in the range of an Integer, or a Long
// with a suffix: versions of Groovy differ in what they make of the others.
func integerLiteral(text string) (Value, bool) {
	suffix := Null
	digits := strings.ReplaceAll(text, "_", "")
	prefixed := len(digits) > 1 && digits[0] == '0'
	if i := strings.IndexByte("iIlLgG", digits[len(digits)-1]); i >= 0 {
		suffix = []Class{Integer, Long, BigInteger}[i/2]
		digits = digits[:len(digits)-1]
	}
	n, ok := new(big.Int).SetString(digits, map[bool]int{true: 0, false: 10}[prefixed])
	if !ok || strings.HasSuffix(text, "_") || len(digits) > maxDigits {
		return Value{}, false
	}
	switch isInt := n.IsInt64() && n.Int64() <= 1<<31-1; {
	case suffix == BigInteger, suffix == Null && !n.IsInt64() && !prefixed:
		return OfBig(n), true
	case suffix != Long && isInt:
		return OfInt(int32(n.Int64())), true
	case suffix != Integer && n.IsInt64() && (suffix == Long || !prefixed):
		return OfLong(n.Int64()), true
	}
	return Value{}, false
}
