package groovy

import (
	"math/big"
)

// eval computes the expression for the values of the template's names.
func (n *node) eval(values []Value) (Value, error) {
	switch n.op {
	case constant:
		return n.value, nil
	case variable:
		return values[n.index], nil
	case unary:
		v, err := n.args[0].eval(values)
		if err != nil {
			return Value{}, err
		}
		return unaryOf(n.sign, v)
	case infix:
		a, err := n.args[0].eval(values)
		if err != nil {
			return Value{}, err
		}
		b, err := n.args[1].eval(values)
		if err != nil {
			return Value{}, err
		}
		return binaryOf(n.sign, a, b)
	case ternary, elvis, and, or:
		return n.branch(values)
	case cast:
		v, err := n.args[0].eval(values)
		if err != nil {
			return Value{}, err
		}
		return castTo(v, n.class, n.name == "as")
	case text:
		return n.text(values)
	case listOf, mapOf:
		return n.items(values)
	}
	// The others take up to four arguments.
	var buf [4]Value
	args := buf[:0]
	for _, arg := range n.args {
		v, err := arg.eval(values)
		if err != nil {
			return Value{}, err
		}
		args = append(args, v)
	}
	switch n.op {
	case call:
		return n.invoke(args)
	case static:
		return n.invokeStatic(args)
	case index:
		return at(args[0], args[1])
	}
	return between(args[0], args[1], args[2])
}

// integer computes an expression of integers, without the copies that [Value]s of
// all classes need. ok is false where eval must compute it.
func (n *node) integer(values []Value) (number int64, class Class, ok bool) {
	switch n.op {
	case constant:
		return n.value.n, n.value.class, n.value.IsInteger()
	case variable:
		v := &values[n.index]
		return v.n, v.class, v.IsInteger()
	case infix:
		a, class, ok := n.args[0].integer(values)
		if !ok {
			return 0, 0, false
		}
		b, other, ok := n.args[1].integer(values)
		if !ok {
			return 0, 0, false
		}
		switch class = max(class, other); n.sign {
		case plus:
			a += b
		case minus:
			a -= b
		case times:
			a *= b
		case percent:
			if b <= 0 {
				return 0, 0, false
			}
			a %= b
		case bitAnd:
			a &= b
		default:
			return 0, 0, false
		}
		if class == Integer {
			a = int64(int32(a))
		}
		return a, class, true
	case call:
		return n.integerCall(values)
	case static:
		if n.name != "Math.abs" {
			return 0, 0, false
		}
		a, class, ok := n.args[0].integer(values)
		if ok && a < 0 {
			a = wrapped(class, -a).n
		}
		return a, class, ok
	}
	return 0, 0, false
}

func (n *node) integerCall(values []Value) (number int64, class Class, ok bool) {
	arg := n.args[0]
	switch n.name {
	case "hashCode":
		if arg.op != variable {
			return 0, 0, false
		}
		switch v := &values[arg.index]; v.class {
		case String:
			return int64(HashString(v.s)), Integer, true
		case Long:
			return int64(fold(v.n)), Integer, true
		}
	case "longValue", "toLong":
		a, _, ok := arg.integer(values)
		return a, Long, ok
	case "intdiv":
		a, class, ok := arg.integer(values)
		b, other, also := n.args[1].integer(values)
		if !ok || !also || b <= 0 {
			return 0, 0, false
		}
		return a / b, max(class, other), true
	}
	return 0, 0, false
}

// branch computes the operators that leave one of their arguments alone.
func (n *node) branch(values []Value) (Value, error) {
	v, err := n.args[0].eval(values)
	if err != nil {
		return Value{}, err
	}
	isTrue := v.isTrue()
	switch n.op {
	case ternary:
		if isTrue {
			return n.args[1].eval(values)
		}
		return n.args[2].eval(values)
	case elvis:
		if isTrue {
			return v, nil
		}
		return n.args[1].eval(values)
	case and:
		if !isTrue {
			return OfBool(false), nil
		}
	case or:
		if isTrue {
			return OfBool(true), nil
		}
	}
	v, err = n.args[1].eval(values)
	return OfBool(v.isTrue()), err
}

func (n *node) text(values []Value) (Value, error) {
	var b []byte
	for _, arg := range n.args {
		v, err := arg.eval(values)
		if err != nil {
			return Value{}, err
		}
		shown, err := v.asText()
		if err != nil {
			return Value{}, err
		}
		b = append(b, shown.s...)
	}
	return OfString(string(b)), nil
}

func (n *node) items(values []Value) (Value, error) {
	items := make([]Value, len(n.args))
	for i, arg := range n.args {
		var err error
		if items[i], err = arg.eval(values); err != nil {
			return Value{}, err
		}
	}
	if n.op == listOf {
		return Value{class: list, x: items}, nil
	}
	entries := make([]entry, 0, len(items)/2)
	for i := 0; i < len(items); i += 2 {
		entries = append(entries, entry{items[i], items[i+1]})
	}
	return Value{class: mapping, x: entries}, nil
}

func unaryOf(sign token, v Value) (Value, error) {
	switch {
	case sign == not:
		return OfBool(!v.isTrue()), nil
	case !v.isNumber() || sign == bitNot && v.class > BigInteger:
		return Value{}, noOperator(sign, v)
	case sign == plus:
		return v, nil
	case v.IsInteger():
		n := -v.n
		if sign == bitNot {
			n = ^v.n
		}
		return wrapped(v.class, n), nil
	case v.class == Double:
		return OfDouble(-v.double()), nil
	case sign == bitNot:
		return OfBig(new(big.Int).Not(v.big())), nil
	}
	return Value{class: v.class, n: v.n, x: new(big.Int).Neg(v.big())}, nil
}

// wrapped is n as an Integer, of which the low 32 bits stay, or as a Long.
func wrapped(class Class, n int64) Value {
	if class == Integer {
		n = int64(int32(n))
	}
	return Value{class: class, n: n}
}

var signs = func() map[token]string {
	texts := map[token]string{bitNot: "~", not: "!", power: "**"}
	for _, level := range levels {
		for _, o := range level {
			texts[o.token] = o.text
		}
	}
	return texts
}()

func noOperator(sign token, values ...Value) error {
	if len(values) == 1 {
		return evalError("there is no %s %s", signs[sign], values[0].class)
	}
	return evalError("there is no %s %s %s", values[0].class, signs[sign], values[1].class)
}

func binaryOf(sign token, a, b Value) (Value, error) {
	switch {
	case sign >= equal && sign <= greaterEqual:
		return compare(sign, a, b)
	case a.IsInteger() && b.IsInteger():
		if v, done, err := integers(sign, a, b); done {
			return v, err
		}
	}
	switch isText := a.class == String || b.class == String && (a.isNumber() || a.class == Null); {
	case sign == plus && isText && b.class < list:
		left, err := a.asText()
		if err != nil {
			return Value{}, err
		}
		right, err := b.asText()
		return OfString(left.s + right.s), err
	case !a.isNumber() || !b.isNumber():
		return Value{}, noOperator(sign, a, b)
	case sign == shiftLeft || sign == shiftRight || sign == shiftRightZero:
		return shift(sign, a, b)
	case sign == power:
		return powerOf(a, b)
	}
	switch class := max(a.class, b.class); {
	case class == Double:
		return doubles(sign, a, b)
	case class == BigDecimal || sign == slash:
		return decimals(sign, a, b)
	}
	return bigs(sign, a, b)
}

// integers computes what two of Integer and Long make an Integer or a Long.
func integers(sign token, a, b Value) (v Value, done bool, err error) {
	x, y := a.n, b.n
	class := max(a.class, b.class)
	switch sign {
	case plus:
		x += y
	case minus:
		x -= y
	case times:
		x *= y
	case percent:
		switch y {
		case 0:
			return Value{}, true, evalError("division by zero")
		case -1:
			x = 0 // the least number divided by -1 overflows
		default:
			x %= y
		}
	case bitAnd:
		x &= y
	case bitOr:
		x |= y
	case bitXor:
		x ^= y
	case shiftLeft, shiftRight, shiftRightZero:
		return shiftInteger(sign, a, y), true, nil
	default:
		return Value{}, false, nil
	}
	return wrapped(class, x), true, nil
}

// shiftInteger shifts by the low five or six bits of the distance. The class is
// that of what is shifted.
func shiftInteger(sign token, a Value, by int64) Value {
	distance := by & 63
	if a.class == Integer {
		distance = by & 31
	}
	switch {
	case sign == shiftLeft:
		return wrapped(a.class, a.n<<distance)
	case sign == shiftRight:
		return wrapped(a.class, a.n>>distance)
	case a.class == Integer:
		return wrapped(a.class, int64(uint32(a.n)>>distance))
	}
	return wrapped(a.class, int64(uint64(a.n)>>distance))
}

func shift(sign token, a, b Value) (Value, error) {
	switch {
	case a.class != BigInteger || !b.IsInteger() || sign != shiftLeft:
		return Value{}, noOperator(sign, a, b)
	case b.n < 0 || b.n > maxBits:
		return Value{}, errTooLarge
	}
	return bounded(new(big.Int).Lsh(a.big(), uint(b.n)))
}

func bounded(n *big.Int) (Value, error) {
	if n.BitLen() > maxBits {
		return Value{}, errTooLarge
	}
	return OfBig(n), nil
}

// powerOf is a ** b: an Integer or a Long where it fits the class of a, else a
// BigInteger.
func powerOf(a, b Value) (Value, error) {
	switch {
	case a.class > BigInteger || b.class != Integer || b.n < 0:
		return Value{}, noOperator(power, a, b)
	case int64(a.big().BitLen()) > 1 && b.n > maxBits:
		return Value{}, errTooLarge
	case int64(a.big().BitLen())*b.n > maxBits:
		return Value{}, errTooLarge
	}
	n := new(big.Int).Exp(a.big(), big.NewInt(b.n), nil)
	if a.class != BigInteger && n.IsInt64() {
		if v := OfLong(n.Int64()); a.class == Long || v.n == int64(int32(v.n)) {
			return wrapped(a.class, v.n), nil
		}
	}
	return OfBig(n), nil
}

func bigs(sign token, a, b Value) (Value, error) {
	x, y, n := a.big(), b.big(), new(big.Int)
	switch sign {
	case plus:
		n.Add(x, y)
	case minus:
		n.Sub(x, y)
	case times:
		n.Mul(x, y)
	case percent:
		if y.Sign() <= 0 {
			return Value{}, evalError("BigInteger %% %s: the divisor must be positive", clip(y.String()))
		}
		n.Mod(x, y)
	case bitAnd:
		n.And(x, y)
	case bitOr:
		n.Or(x, y)
	case bitXor:
		n.Xor(x, y)
	default:
		return Value{}, noOperator(sign, a, b)
	}
	return bounded(n)
}

func decimals(sign token, a, b Value) (Value, error) {
	x, err := a.decimal()
	if err != nil {
		return Value{}, err
	}
	y, err := b.decimal()
	if err != nil {
		return Value{}, err
	}
	switch sign {
	case slash:
		return quotient(x, y)
	case times:
		n, err := bounded(new(big.Int).Mul(x.big(), y.big()))
		return ofDecimal(n.big(), x.n+y.n), err
	case plus, minus:
		scale := max(x.n, y.n)
		m, err := scaled(x.big(), scale-x.n, towardZero)
		if err != nil {
			return Value{}, err
		}
		n, err := scaled(y.big(), scale-y.n, towardZero)
		if err != nil {
			return Value{}, err
		}
		if sign == minus {
			n = new(big.Int).Neg(n)
		}
		sum, err := bounded(new(big.Int).Add(m, n))
		return ofDecimal(sum.big(), scale), err
	}
	return Value{}, noOperator(sign, a, b)
}

// compare compares numbers by value, whatever their classes, and texts in the
// order of their UTF-16 units.
func compare(sign token, a, b Value) (Value, error) {
	order, err := 0, error(nil)
	switch {
	case a.IsInteger() && b.IsInteger():
		order = compareInts(a.n, b.n)
	case a.isNumber() && b.isNumber():
		order, err = compareNumbers(a, b)
	case a.class == String && b.class == String:
		order = compareTexts(a.s, b.s)
	case (sign == equal || sign == notEqual) && (a.class == Null || b.class == Null):
		order = compareInts(int64(a.class), int64(b.class))
	case (sign == equal || sign == notEqual) && a.class == Boolean && b.class == Boolean:
		order = compareInts(a.n, b.n)
	default:
		return Value{}, noOperator(sign, a, b)
	}
	if err != nil {
		return Value{}, err
	}
	switch sign {
	case equal:
		return OfBool(order == 0), nil
	case notEqual:
		return OfBool(order != 0), nil
	case less:
		return OfBool(order < 0), nil
	case lessEqual:
		return OfBool(order <= 0), nil
	case greater:
		return OfBool(order > 0), nil
	}
	return OfBool(order >= 0), nil
}
