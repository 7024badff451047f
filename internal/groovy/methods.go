package groovy

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// method is a method with the number of its arguments, besides its receiver.
type method struct {
	name        string
	least, most int
}

// methods are those of values, and statics those of classes.
var (
	methods = []method{
		{"toString", 0, 0}, {"hashCode", 0, 0}, {"equals", 1, 1},
		// of numbers
		{"intValue", 0, 0}, {"longValue", 0, 0}, {"doubleValue", 0, 0},
		{"toInteger", 0, 0}, {"toLong", 0, 0}, {"toBigInteger", 0, 0}, {"toBigDecimal", 0, 0},
		{"abs", 0, 0}, {"intdiv", 1, 1}, {"mod", 1, 1}, {"plus", 1, 1}, {"minus", 1, 1}, {"multiply", 1, 1}, {"setScale", 2, 2},
		// of texts; those above that parse a text as well
		{"length", 0, 0}, {"size", 0, 0}, {"substring", 1, 2}, {"toLowerCase", 0, 0}, {"toUpperCase", 0, 0}, {"trim", 0, 0},
		{"padLeft", 1, 2}, {"padRight", 1, 2}, {"concat", 1, 1}, {"reverse", 0, 0},
		{"startsWith", 1, 1}, {"endsWith", 1, 1}, {"contains", 1, 1}, {"indexOf", 1, 1}, {"lastIndexOf", 1, 1}, {"isEmpty", 0, 0},
		// of dates
		{"format", 1, 1},
	}
	statics = []method{
		{"Math.abs", 1, 1}, {"Math.floorDiv", 2, 2}, {"Math.floorMod", 2, 2}, {"Math.floor", 1, 1}, {"Math.ceil", 1, 1}, {"Math.round", 1, 1}, {"Math.max", 2, 2}, {"Math.min", 2, 2},
		{"Integer.valueOf", 1, 1}, {"Integer.parseInt", 1, 1}, {"Long.valueOf", 1, 1}, {"Long.parseLong", 1, 1},
		{"BigInteger.valueOf", 1, 1}, {"new BigInteger", 1, 1}, {"new BigDecimal", 1, 1},
		{"String.valueOf", 1, 1}, {"String.format", 1, 4},
	}
	constants = map[string]Value{
		"Integer.MAX_VALUE": OfInt(math.MaxInt32), "Integer.MIN_VALUE": OfInt(math.MinInt32),
		"Long.MAX_VALUE": OfLong(math.MaxInt64), "Long.MIN_VALUE": OfLong(math.MinInt64),
		"BigDecimal.ROUND_DOWN": OfInt(1), "BigDecimal.ROUND_HALF_UP": OfInt(4),
	}
	methodNumbers = numbersOf(methods)
	staticNumbers = numbersOf(statics)
)

func numbersOf(all []method) map[string]int {
	numbers := make(map[string]int, len(all))
	for i, m := range all {
		numbers[m.name] = i
	}
	return numbers
}

func isStaticClass(name string) bool {
	return name == "Math" || name == "BigDecimal" || name == "BigInteger" || name == "String" || name == "Integer" || name == "Long"
}

func (n *node) noMethod(args []Value) error {
	return evalError("a %s has no %s() of these arguments, or it is not understood", args[0].class, n.name)
}

// invoke calls the method on args[0] with the other arguments.
func (n *node) invoke(args []Value) (Value, error) {
	v := args[0]
	switch {
	case v.class == Null:
		return Value{}, evalError("null has no %s()", n.name)
	case n.name == "hashCode":
		h, err := v.HashCode()
		return OfInt(h), err
	case n.name == "toString" && v.class < list:
		return v.asText()
	case n.name == "equals":
		return OfBool(same(v, args[1])), nil
	case n.name == "format":
		return n.formatDate(args)
	case v.isNumber():
		return n.invokeNumber(args)
	case v.class == String:
		return n.invokeText(args)
	}
	return Value{}, n.noMethod(args)
}

// same is equals(): values of two classes are never equal.
func same(a, b Value) bool {
	if a.class != b.class {
		return false
	}
	switch a.class {
	case BigInteger, BigDecimal:
		return a.n == b.n && a.big().Cmp(b.big()) == 0
	case String:
		return a.s == b.s
	case LocalDate, LocalDateTime, Date:
		return a.x.(time.Time).Equal(b.x.(time.Time))
	case UUID:
		return a.x.([16]byte) == b.x.([16]byte)
	}
	return a.class < list && a.n == b.n
}

func (n *node) invokeNumber(args []Value) (Value, error) {
	v := args[0]
	if len(args) == 2 && !args[1].isNumber() {
		return Value{}, n.noMethod(args)
	}
	switch n.name {
	case "intValue", "toInteger":
		return castTo(v, Integer, false)
	case "longValue", "toLong":
		return castTo(v, Long, false)
	case "toBigInteger":
		return castTo(v, BigInteger, false)
	case "toBigDecimal":
		return castTo(v, BigDecimal, false)
	case "doubleValue":
		return castTo(v, Double, false)
	case "abs":
		return absolute(v)
	case "intdiv":
		return intdiv(v, args[1])
	case "mod":
		return binaryOf(percent, v, args[1])
	case "plus":
		return binaryOf(plus, v, args[1])
	case "minus":
		return binaryOf(minus, v, args[1])
	case "multiply":
		return binaryOf(times, v, args[1])
	case "setScale":
		return n.setScale(args)
	}
	return Value{}, n.noMethod(args)
}

// absolute leaves the least Integer and the least Long as they are.
func absolute(v Value) (Value, error) {
	switch {
	case v.class == Double:
		return OfDouble(math.Abs(v.double())), nil
	case v.IsInteger() && v.n < 0:
		return wrapped(v.class, -v.n), nil
	case v.IsInteger():
		return v, nil
	}
	return Value{class: v.class, n: v.n, x: new(big.Int).Abs(v.big())}, nil
}

func intdiv(a, b Value) (Value, error) {
	switch {
	case !a.isNumber() || !b.isNumber() || max(a.class, b.class) > BigInteger:
		return Value{}, evalError("there is no %s.intdiv(%s)", a.class, b.class)
	case b.big().Sign() == 0:
		return Value{}, evalError("division by zero")
	case a.IsInteger() && b.IsInteger():
		if b.n == -1 {
			return wrapped(max(a.class, b.class), -a.n), nil
		}
		return wrapped(max(a.class, b.class), a.n/b.n), nil
	}
	return OfBig(new(big.Int).Quo(a.big(), b.big())), nil
}

func (n *node) setScale(args []Value) (Value, error) {
	v, scale, mode := args[0], args[1], args[2]
	if v.class != BigDecimal || scale.class != Integer || mode.class != Integer || mode.n != 1 && mode.n != 4 {
		return Value{}, n.noMethod(args)
	}
	how := towardZero
	if mode.n == 4 {
		how = halfUp
	}
	unscaled, err := scaled(v.big(), scale.n-v.n, how)
	return ofDecimal(unscaled, scale.n), err
}

// castTo is (class) x, and x as class, which parses texts.
func castTo(v Value, class Class, parse bool) (Value, error) {
	switch {
	case v.class == class || v.class == Null:
		return v, nil
	case class == String && v.class < list:
		return v.asText()
	case v.class == String && parse && class != Double:
		return Parse(class, trimmed(v.s))
	case !v.isNumber():
		return Value{}, evalError("a %s is no %s", v.class, class)
	}
	switch class {
	case Integer, Long:
		n, err := v.longValue()
		if class == Integer && v.class == Double {
			n = min(max(n, math.MinInt32), math.MaxInt32)
		}
		return wrapped(class, n), err
	case BigInteger:
		n, err := v.truncated()
		return OfBig(n), err
	case BigDecimal:
		return v.decimal()
	}
	return OfDouble(v.float()), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// units returns a text as Java has it.
func units(s string) []uint16 { return utf16.Encode([]rune(s)) }

// textLength is the number of UTF-16 units.
func textLength(s string) int {
	if isASCII(s) {
		return len(s)
	}
	return len(units(s))
}

// part returns the units from begin up to end.
func substring(s string, begin, end int) (Value, error) {
	switch length := textLength(s); {
	case begin < 0 || end > length || begin > end:
		return Value{}, evalError("a text of %d characters has none from %d to %d", length, begin, end)
	case length == len(s):
		return OfString(s[begin:end]), nil
	}
	part := units(s)[begin:end]
	if n := len(part); n > 0 && (isLowSurrogate(part[0]) || isLowSurrogate(part[n-1]+0x400)) {
		return Value{}, evalError("half of a character beyond the Basic Multilingual Plane is not understood")
	}
	return OfString(string(utf16.Decode(part))), nil
}

func isLowSurrogate(unit uint16) bool { return unit>>10 == 0xdc00>>10 }

// trimmed is String.trim().
func trimmed(s string) string { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) }

func (n *node) invokeText(args []Value) (Value, error) {
	s := args[0].s
	switch n.name {
	case "length", "size":
		return OfInt(int32(textLength(s))), nil
	case "isEmpty":
		return OfBool(s == ""), nil
	case "trim":
		return OfString(trimmed(s)), nil
	case "toInteger":
		return parseInteger(trimmed(s), Integer)
	case "toLong":
		return parseInteger(trimmed(s), Long)
	case "toBigInteger":
		return parseBig(trimmed(s))
	case "toBigDecimal":
		return parseDecimal(trimmed(s))
	case "substring":
		return n.substring(args)
	case "padLeft", "padRight":
		return n.pad(args)
	case "toLowerCase", "toUpperCase", "reverse":
		if !isASCII(s) {
			return Value{}, evalError("%s() of a text beyond ASCII is not understood", n.name)
		}
	}
	switch n.name {
	case "toLowerCase":
		return OfString(strings.ToLower(s)), nil
	case "toUpperCase":
		return OfString(strings.ToUpper(s)), nil
	case "reverse":
		b := []byte(s)
		for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
		return OfString(string(b)), nil
	}
	if len(args) != 2 || args[1].class != String {
		return Value{}, n.noMethod(args)
	}
	switch other := args[1].s; n.name {
	case "concat":
		return OfString(s + other), nil
	case "startsWith":
		return OfBool(strings.HasPrefix(s, other)), nil
	case "endsWith":
		return OfBool(strings.HasSuffix(s, other)), nil
	case "contains":
		return OfBool(strings.Contains(s, other)), nil
	case "indexOf":
		return unitsBefore(s, strings.Index(s, other)), nil
	case "lastIndexOf":
		return unitsBefore(s, strings.LastIndex(s, other)), nil
	}
	return Value{}, n.noMethod(args)
}

// unitsBefore is the number of UTF-16 units before a byte of a text, -1 for none.
func unitsBefore(s string, at int) Value {
	if at > 0 {
		at = textLength(s[:at])
	}
	return OfInt(int32(at))
}

func (n *node) substring(args []Value) (Value, error) {
	s := args[0].s
	end := int64(textLength(s))
	for i, arg := range args[1:] {
		if arg.class != Integer {
			return Value{}, n.noMethod(args)
		}
		if i == 1 {
			end = arg.n
		}
	}
	return substring(s, int(args[1].n), int(end))
}

// maxPadding bounds the width that a text is padded to.
const maxPadding = 1024

func (n *node) pad(args []Value) (Value, error) {
	with := " "
	if len(args) == 3 {
		if args[2].class != String || textLength(args[2].s) != 1 {
			return Value{}, n.noMethod(args)
		}
		with = args[2].s
	}
	if !args[1].IsInteger() || args[1].n > maxPadding {
		return Value{}, n.noMethod(args)
	}
	s := args[0].s
	padding := strings.Repeat(with, max(0, int(args[1].n)-textLength(s)))
	if n.name == "padLeft" {
		return OfString(padding + s), nil
	}
	return OfString(s + padding), nil
}

// formatDate is date.format("yyyyMM"), with the letters whose meaning all
// classes of dates share.
func (n *node) formatDate(args []Value) (Value, error) {
	t, ok := args[0].Time()
	if !ok || args[1].class != String {
		return Value{}, n.noMethod(args)
	}
	layout, ok := DateLayout(args[1].s)
	if !ok {
		return Value{}, evalError("the date pattern %q is not understood", clip(args[1].s))
	}
	return OfString(t.Format(layout)), nil
}

func (n *node) invokeStatic(args []Value) (Value, error) {
	v := args[0]
	isText := v.class == String
	switch n.name {
	case "Math.abs":
		if v.isNumber() && v.class != BigInteger && v.class != BigDecimal {
			return absolute(v)
		}
	case "Math.floorDiv", "Math.floorMod":
		if v.IsInteger() && args[1].IsInteger() {
			return floored(n.name, v, args[1])
		}
	case "Math.floor", "Math.ceil", "Math.round":
		// Groovy rounds an Integer and a Long as a float, which has 24 bits.
		if v.isNumber() && (n.name != "Math.round" || v.class >= BigDecimal) {
			return rounded(n.name, v.float()), nil
		}
	case "Math.max", "Math.min":
		if v.IsInteger() && args[1].IsInteger() {
			class, least, most := max(v.class, args[1].class), min(v.n, args[1].n), max(v.n, args[1].n)
			if n.name == "Math.min" {
				return Value{class: class, n: least}, nil
			}
			return Value{class: class, n: most}, nil
		}
	case "Integer.valueOf", "Integer.parseInt":
		switch {
		case isText:
			return parseInteger(v.s, Integer)
		case n.name == "Integer.valueOf" && v.class == Integer:
			return v, nil
		}
	case "Long.valueOf", "Long.parseLong", "BigInteger.valueOf":
		switch {
		case n.name == "BigInteger.valueOf" && v.IsInteger():
			return OfBig(v.big()), nil
		case isText && n.name != "BigInteger.valueOf":
			return parseInteger(v.s, Long)
		case n.name == "Long.valueOf" && v.IsInteger():
			return OfLong(v.n), nil
		}
	case "new BigInteger":
		if isText {
			return parseBig(v.s)
		}
	case "new BigDecimal":
		switch {
		case isText:
			return parseDecimal(v.s)
		case v.isNumber() && v.class <= BigInteger:
			return v.decimal()
		}
	case "String.valueOf":
		if v.class < list && v.class != Null {
			return v.asText()
		}
	case "String.format":
		if isText {
			return formatted(v.s, args[1:])
		}
	}
	return Value{}, evalError("there is no %s(%s), or it is not understood", n.name, v.class)
}

// floored is Math.floorDiv and Math.floorMod.
func floored(name string, a, b Value) (Value, error) {
	if b.n == 0 {
		return Value{}, evalError("division by zero")
	}
	quotient, rest := -a.n, int64(0) // by -1, which overflows for the least number
	if b.n != -1 {
		quotient, rest = a.n/b.n, a.n%b.n
	}
	if rest != 0 && (rest < 0) != (b.n < 0) {
		quotient, rest = quotient-1, rest+b.n
	}
	if name == "Math.floorMod" {
		quotient = rest
	}
	return wrapped(max(a.class, b.class), quotient), nil
}

func rounded(name string, f float64) Value {
	switch name {
	case "Math.floor":
		return OfDouble(math.Floor(f))
	case "Math.ceil":
		return OfDouble(math.Ceil(f))
	}
	n, _ := OfDouble(math.Floor(f + 0.5)).longValue()
	return OfLong(n)
}

// formatted is String.format of %d, %02d, %5d, %s and %%.
func formatted(layout string, args []Value) (Value, error) {
	var b strings.Builder
	notUnderstood := func() (Value, error) {
		return Value{}, evalError("String.format(%q) of these arguments is not understood", clip(layout))
	}
	for rest := layout; ; {
		before, verb, found := strings.Cut(rest, "%")
		b.WriteString(before)
		if !found {
			return OfString(b.String()), nil
		}
		digits := len(verb) - len(strings.TrimLeft(verb, "0123456789"))
		width, err := strconv.Atoi("0" + verb[:digits])
		if digits == len(verb) || err != nil || width > maxPadding {
			return notUnderstood()
		}
		kind := verb[digits]
		rest = verb[digits+1:]
		if kind == '%' && digits == 0 {
			b.WriteByte('%')
			continue
		}
		if len(args) == 0 || digits > 0 && (width == 0 || kind == 's' && verb[0] == '0') {
			return notUnderstood()
		}
		arg := args[0]
		args = args[1:]
		shown, err := arg.asText()
		if err != nil {
			return Value{}, err
		}
		text := shown.s
		padding := strings.Repeat(" ", max(0, width-textLength(text)))
		switch {
		case kind == 's' && arg.class < list:
		case kind == 'd' && arg.isNumber() && arg.class <= BigInteger:
			if digits > 0 && verb[0] == '0' {
				sign := ""
				if text[0] == '-' {
					sign, text = "-", text[1:]
				}
				padding = sign + strings.Repeat("0", len(padding))
			}
		default:
			return notUnderstood()
		}
		b.WriteString(padding + text)
	}
}

// at is v[i].
func at(v, i Value) (Value, error) {
	switch {
	case v.class == mapping:
		for _, e := range v.x.([]entry) {
			if same(e.key, i) {
				return e.value, nil
			}
		}
		return Value{}, nil
	case i.class != Integer:
		return Value{}, evalError("there is no %s[%s]", v.class, i.class)
	case v.class == list:
		items := v.x.([]Value)
		n := int(i.n)
		if n < 0 {
			n += len(items)
		}
		switch {
		case n < 0:
			return Value{}, evalError("a list of %d has no item %d", len(items), i.n)
		case n >= len(items):
			return Value{}, nil
		}
		return items[n], nil
	case v.class == String:
		return between(v, i, i)
	}
	return Value{}, evalError("there is no %s[%s]", v.class, i.class)
}

// between is v[from..to]: both ends are part of it, and negative ones count from
// the end.
func between(v, from, to Value) (Value, error) {
	if v.class != String || from.class != Integer || to.class != Integer {
		return Value{}, evalError("there is no %s[%s..%s]", v.class, from.class, to.class)
	}
	length := int64(textLength(v.s))
	begin, end := from.n, to.n
	if begin < 0 {
		begin += length
	}
	if end < 0 {
		end += length
	}
	if begin < 0 || begin >= length || end < begin || end >= length {
		return Value{}, evalError("a text of %d characters has none from %d to %d, in this order", length, from.n, to.n)
	}
	return substring(v.s, int(begin), int(end)+1)
}
