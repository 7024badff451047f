package expr

import (
	"errors"
	"strings"
)

// ErrTooMany is the error for an expression that has more than 1,048,576 values in its lists.
var ErrTooMany = errors.New("an expression stands for more than 1048576 values")

const maxItems = 1 << 20

var errZero = &Error{Reason: "division by zero", Offset: -1, Wrong: true}

// scope is the state of one evaluation.
type scope struct {
	column Value
	vars   []Value   // values of closure variables; slot n is vars[n-1], because slot 0 is the column
	lists  [][]Value // the items of each list; a list value has the index
	items  int       // the number of items in all lists
	err    error     // the first error; after it, all values are null
}

// fail records the error and returns null. No operator or method has a result for null.
func (s *scope) fail(format string, args ...any) Value {
	return s.result(Value{}, fail(format, args...))
}

// result returns v, and records err if it is the first error.
func (s *scope) result(v Value, err error) Value {
	if err != nil && s.err == nil {
		s.err = err
	}
	return v
}

// list returns a list of n items. The function item returns the item at an index.
func (s *scope) list(n int, item func(i int) Value) Value {
	if n > maxItems || s.items+n > maxItems {
		return s.result(Value{}, ErrTooMany)
	}
	s.items += n
	items := make([]Value, n)
	for i := 0; i < n && s.err == nil; i++ {
		items[i] = item(i)
	}
	s.lists = append(s.lists, items)
	return Value{class: list, n: int64(len(s.lists) - 1)}
}

// text returns the concatenation of the parts. It fails if the string is too long, because a list
// can hold many such strings.
func (s *scope) text(parts ...string) Value {
	text := strings.Join(parts, "")
	if len(text) > maxString {
		return s.fail("a string is longer than %d bytes", maxString)
	}
	return OfString(text)
}

func (n *node) eval(s *scope) Value {
	switch n.op {
	case constant:
		return n.value
	case variable:
		if n.slot == 0 {
			return s.column
		}
		return s.vars[n.slot-1]
	case logical:
		if isTrue := s.isTrue(n.args[0].eval(s)); isTrue == (n.name == "||") {
			return ofBool(isTrue)
		}
		return ofBool(s.isTrue(n.args[1].eval(s)))
	case ternary:
		if s.isTrue(n.args[0].eval(s)) {
			return n.args[1].eval(s)
		}
		return n.args[2].eval(s)
	case items:
		return s.list(len(n.args), func(i int) Value { return n.args[i].eval(s) })
	}
	v := n.args[0].eval(s)
	switch n.op {
	case between, shift, binary:
		return n.binary(s, v, n.args[1].eval(s))
	case unary:
		return n.unary(s, v)
	case cast:
		if !v.IsInteger() && v.class != quotient {
			return s.fail("a %s as %s is not supported", v.class, n.class)
		}
		return wrapped(n.class, v.n)
	case collect, spread:
		return n.each(s, v)
	}
	return n.call(s, v)
}

// isTrue reports whether a value counts as true: true, a number other than 0, or a string that
// isn't empty.
func (s *scope) isTrue(v Value) bool {
	if v.class == Null || v.class > String {
		s.fail("a %s as a condition is not supported", v.class)
	}
	return v.n != 0 || v.s != ""
}

func (n *node) unary(s *scope, v Value) Value {
	switch {
	case n.name == "!":
		return ofBool(!s.isTrue(v))
	case !v.IsInteger():
		return s.fail("%s of a %s is not supported", n.name, v.class)
	case n.name == "-":
		return wrapped(v.class, -v.n)
	case n.name == "~":
		return wrapped(v.class, ^v.n)
	}
	return v
}

func (n *node) binary(s *scope, a, b Value) Value {
	areStrings := a.class == String && b.class == String
	switch {
	case n.op == between:
		return n.between(s, a, b)
	case a.IsInteger() && b.IsInteger() && n.op == shift:
		return n.shifted(a, b.n)
	case a.IsInteger() && b.IsInteger():
		return n.integers(s, a, b)
	case n.name == "+" && (areStrings || a.class == String && b.IsInteger() || a.IsInteger() && b.class == String):
		return s.text(a.String(), b.String())
	case n.name == "==" && areStrings:
		return ofBool(a.s == b.s)
	case n.name == "!=" && areStrings:
		return ofBool(a.s != b.s)
	}
	return s.fail("%s %s %s is not supported", a.class, n.name, b.class)
}

// integers applies an operator to two integers. The result is a Long if either integer is a Long.
func (n *node) integers(s *scope, a, b Value) Value {
	switch {
	case b.n == 0 && (n.name == "%" || n.name == "/"):
		return s.result(Value{}, errZero)
	case n.name == "/" && (b.n > 1e9 || b.n < -1e9):
		// Groovy's quotient has ten digits after the decimal point. With a larger divisor, Groovy
		// may round it up to an integer.
		return s.fail("a quotient by %d is not supported", b.n)
	}
	return n.apply(max(a.class, b.class), a.n, b.n)
}

// integerOperators are the binary operators of two integers.
var integerOperators = map[string]func(class Class, x, y int64) Value{
	"+":  func(class Class, x, y int64) Value { return wrapped(class, x+y) },
	"-":  func(class Class, x, y int64) Value { return wrapped(class, x-y) },
	"*":  func(class Class, x, y int64) Value { return wrapped(class, x*y) },
	"%":  func(class Class, x, y int64) Value { return wrapped(class, x%y) },
	"/":  func(_ Class, x, y int64) Value { return Value{class: quotient, n: x / y} },
	"&":  func(class Class, x, y int64) Value { return wrapped(class, x&y) },
	"|":  func(class Class, x, y int64) Value { return wrapped(class, x|y) },
	"^":  func(class Class, x, y int64) Value { return wrapped(class, x^y) },
	"==": func(_ Class, x, y int64) Value { return ofBool(x == y) },
	"!=": func(_ Class, x, y int64) Value { return ofBool(x != y) },
	"<":  func(_ Class, x, y int64) Value { return ofBool(x < y) },
	"<=": func(_ Class, x, y int64) Value { return ofBool(x <= y) },
	">":  func(_ Class, x, y int64) Value { return ofBool(x > y) },
	">=": func(_ Class, x, y int64) Value { return ofBool(x >= y) },
}

// shifted shifts an Integer by the low five bits of by, or a Long by the low six. The result has the
// same class.
func (n *node) shifted(v Value, by int64) Value {
	distance := by & 63
	if v.class == Integer {
		distance = by & 31
	}
	switch {
	case n.name == "<<":
		return wrapped(v.class, v.n<<distance)
	case n.name == ">>":
		return wrapped(v.class, v.n>>distance)
	case v.class == Integer:
		return wrapped(v.class, int64(uint32(v.n)>>distance))
	}
	return wrapped(v.class, int64(uint64(v.n)>>distance))
}

// between returns the list from a to b, in descending order if a is greater. Two strings must
// differ only in their last letter or digit.
func (n *node) between(s *scope, a, b Value) Value {
	prefix, isText := "", a.class == String && b.class == String
	switch last := len(a.s) - 1; {
	case isText && (last < 0 || len(b.s) != last+1 || a.s[:last] != b.s[:last] || nameLength(a.s[last:]+b.s[last:]) != 2):
		return s.fail("expected the ends of a range of strings to differ in their last letter or digit only, " +
			"for example ${'a'..'c'} or ${'00'..'03'}; write ${(8..12).collect{it.toString().padLeft(2, '0')}} for 08, 09, … 12")
	case isText:
		prefix, a.n, b.n = a.s[:last], int64(a.s[last]), int64(b.s[last])
	case a.class != Integer || b.class != Integer || a.n < 0 || b.n < 0:
		return s.fail("expected integers from 0 to 2147483647 as the ends of a range, for example ${0..15}")
	}
	step := int64(1)
	if b.n < a.n {
		step = -1
	}
	count := (b.n-a.n)*step + 1
	if n.name == "..<" {
		count--
	}
	return s.list(int(count), func(i int) Value {
		at := a.n + int64(i)*step
		if isText {
			return OfString(prefix + string(rune(at)))
		}
		return Value{class: Integer, n: at}
	})
}

// each evaluates a closure or calls a method for each item of a list.
func (n *node) each(s *scope, v Value) Value {
	if v.class != list {
		return n.noMethod(s, v)
	}
	from := s.lists[v.n]
	return s.list(len(from), func(i int) Value {
		if n.op == spread {
			return n.call(s, from[i])
		}
		s.vars = append(s.vars[:n.slot-1], from[i])
		return n.args[1].eval(s)
	})
}

func (n *node) noMethod(s *scope, v Value) Value {
	name := n.name
	if !strings.Contains(name, ".") {
		name += "()"
	}
	return s.fail("%s of a %s is not supported", name, v.class)
}

// arg returns the value of argument i, or null if there is no such argument.
func (n *node) arg(s *scope, i int) Value {
	if i >= len(n.args) {
		return Value{}
	}
	return n.args[i].eval(s)
}

func (n *node) call(s *scope, v Value) Value {
	one := n.arg(s, 1)
	switch {
	case n.name == "hashCode":
		h, err := v.Hash()
		return s.result(OfInt(h), err)
	case n.name == "toString" && (v.IsInteger() || v.class == String):
		return s.text(v.String())
	case v.IsInteger() || v.class == quotient:
		return n.callInteger(s, v, one)
	case v.class == String:
		return n.callString(s, v.s, one, n.arg(s, 2))
	case v.class == list && n.name == "step" && one.class == Integer && one.n > 0:
		from, step := s.lists[v.n], int(one.n)
		return s.list((len(from)+step-1)/step, func(i int) Value { return from[i*step] })
	}
	return n.noMethod(s, v)
}

func (n *node) callInteger(s *scope, v, arg Value) Value {
	switch {
	case n.name == "intValue" || n.name == "toInteger":
		return wrapped(Integer, v.n)
	case n.name == "longValue" || n.name == "toLong":
		return wrapped(Long, v.n)
	case v.class == quotient:
	case n.name == "abs" || n.name == "Math.abs":
		return absolute(v)
	case n.name == "Integer.valueOf" && v.class == Integer:
		return v
	case n.name == "Long.valueOf":
		return OfLong(v.n)
	case n.name == "intdiv" && arg.IsInteger():
		if arg.n == 0 {
			return s.result(Value{}, errZero)
		}
		return wrapped(max(v.class, arg.class), v.n/arg.n)
	case strings.HasPrefix(n.name, "Math.floor") && arg.IsInteger():
		return n.floored(s, v, arg)
	}
	return n.noMethod(s, v)
}

// absolute returns the absolute value. As in Java, the smallest Integer and the smallest Long
// remain negative.
func absolute(v Value) Value { return wrapped(v.class, max(v.n, -v.n)) }

func (n *node) callString(s *scope, text string, one, two Value) Value {
	switch {
	case n.name == "length":
		return OfInt(int32(Length(text)))
	case n.name == "toInteger":
		return s.result(parse(Integer, trimmed(text)))
	case n.name == "toLong":
		return s.result(parse(Long, trimmed(text)))
	case strings.HasPrefix(n.name, "Integer."):
		return s.result(parse(Integer, text))
	case strings.HasPrefix(n.name, "Long."):
		return s.result(parse(Long, text))
	case n.name == "substring" && one.class == Integer && (two.class == Integer || len(n.args) == 2):
		if len(n.args) == 2 {
			two.n = int64(Length(text))
		}
		part, err := Substring(text, one.n, two.n)
		return s.result(OfString(part), err)
	case n.name == "padLeft" && one.class == Integer && (two.class == String && len(two.s) == 1 || len(n.args) == 2):
		if len(n.args) == 2 {
			two.s = " "
		}
		missing := min(int(one.n)-Length(text), maxString+1)
		return s.text(strings.Repeat(two.s, max(0, missing)), text)
	}
	return n.noMethod(s, OfString(text))
}

func trimmed(s string) string { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) }

// floored implements Math.floorDiv and Math.floorMod.
func (n *node) floored(s *scope, a, b Value) Value {
	if b.n == 0 {
		return s.result(Value{}, errZero)
	}
	result, rest := a.n/b.n, a.n%b.n
	if rest != 0 && (rest < 0) != (b.n < 0) {
		result, rest = result-1, rest+b.n
	}
	if n.name == "Math.floorMod" {
		result = rest
	}
	return wrapped(max(a.class, b.class), result)
}
