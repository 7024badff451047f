package groovy

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Class is the Java class of a value.
type Class uint8

// The classes that a value of a sharding column may have. Numbers stand in the
// order in which an operator of two of them chooses its class.
const (
	Null Class = iota
	Boolean
	Integer
	Long
	BigInteger
	BigDecimal
	Double
	String
	LocalDate
	LocalDateTime
	Date // java.util.Date
	UUID
	list
	mapping
)

var classNames = [...]string{"null", "Boolean", "Integer", "Long", "BigInteger", "BigDecimal", "Double", "String",
	"LocalDate", "LocalDateTime", "Date", "UUID", "List", "Map"}

func (c Class) String() string { return classNames[c] }

// ParseClass finds a class by its name, as "Long".
func ParseClass(name string) (Class, bool) {
	for c := Boolean; c <= UUID; c++ {
		if classNames[c] == name {
			return c, true
		}
	}
	return Null, false
}

// Value is a value of Java. The zero Value is null. It never changes.
type Value struct {
	class Class
	n     int64 // of a Boolean (0 or 1), Integer or Long; a BigDecimal's scale; a Double's bits
	s     string
	x     any // *big.Int of a BigInteger, or of a BigDecimal without its scale; time.Time; [16]byte; []Value; []entry
}

type entry struct{ key, value Value }

// OfInt returns an Integer, OfLong a Long, OfString a String, and so on.
func OfInt(n int32) Value     { return Value{class: Integer, n: int64(n)} }
func OfLong(n int64) Value    { return Value{class: Long, n: n} }
func OfString(s string) Value { return Value{class: String, s: s} }
func OfDouble(f float64) Value {
	return Value{class: Double, n: int64(math.Float64bits(f))}
}
func OfBool(b bool) Value {
	v := Value{class: Boolean}
	if b {
		v.n = 1
	}
	return v
}

// OfBig returns a BigInteger. The number must not be changed afterwards.
func OfBig(n *big.Int) Value { return Value{class: BigInteger, x: n} }

// OfTime returns a LocalDateTime, of what t's clock shows in its own time zone.
func OfTime(t time.Time) Value { return Value{class: LocalDateTime, x: t} }

// Class returns the value's class.
func (v Value) Class() Class { return v.class }

// IsInteger reports whether the value is an Integer or a Long, whose number
// [Value.Int64] returns.
func (v Value) IsInteger() bool { return v.class == Integer || v.class == Long }

// Int64 returns the number of an Integer or a Long.
func (v Value) Int64() int64 { return v.n }

// Time returns the time of a LocalDate, LocalDateTime or Date.
func (v Value) Time() (time.Time, bool) {
	t, ok := v.x.(time.Time)
	return t, ok
}

func (v Value) isNumber() bool { return v.class >= Integer && v.class <= Double }

func (v Value) double() float64 { return math.Float64frombits(uint64(v.n)) }

// Parse returns the value that a text stands for in a class: the text of a
// number, "true", an ISO date, a UUID.
func Parse(class Class, text string) (Value, error) {
	bad := func() (Value, error) {
		return Value{}, evalError("%q is no %s", clip(text), class)
	}
	switch class {
	case Null:
		return Value{}, nil
	case String:
		return OfString(text), nil
	case Integer, Long:
		v, err := parseInteger(text, class)
		if err != nil {
			return bad()
		}
		return v, nil
	case BigInteger:
		return parseBig(text)
	case BigDecimal:
		return parseDecimal(text)
	case Double:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return bad()
		}
		return OfDouble(f), nil
	case Boolean:
		return OfBool(text == "true"), nil
	case LocalDate, LocalDateTime, Date:
		for _, layout := range dateLayouts {
			if t, err := time.Parse(layout, text); err == nil {
				return Value{class: class, x: t}, nil
			}
		}
	case UUID:
		digits := strings.ReplaceAll(text, "-", "")
		n, ok := new(big.Int).SetString(digits, 16)
		if ok && len(digits) == 32 {
			return Value{class: UUID, x: [16]byte(n.FillBytes(make([]byte, 16)))}, nil
		}
	}
	return bad()
}

var dateLayouts = []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", time.DateTime, "2006-01-02 15:04", time.RFC3339,
	"Mon Jan 02 15:04:05 MST 2006"}

// Convert returns the value in another class, as an application in Java that
// holds the column in this class would send it. Numbers must fit without loss.
func (v Value) Convert(class Class) (Value, error) {
	switch {
	case v.class == class || v.class == Null:
		return v, nil
	case v.class == Integer && class == Long:
		return OfLong(v.n), nil
	case v.class == Long && class == Integer && v.n == int64(int32(v.n)):
		return OfInt(int32(v.n)), nil
	case class == String && v.class <= String:
		return OfString(v.String()), nil
	case class == BigDecimal && v.isNumber() || v.class <= BigInteger && class <= BigInteger || v.class == String:
		if converted, err := Parse(class, v.String()); err == nil {
			return converted, nil
		}
	}
	return Value{}, evalError("%s %q is no %s", v.class, clip(v.String()), class)
}

// String returns what toString() returns; "null" for null.
func (v Value) String() string {
	if v.class == String {
		return v.s
	}
	return string(v.append(nil))
}

// asText is toString(). Of Doubles it is known for eighths that Java writes without an
// exponent; versions of Java write different digits of others.
func (v Value) asText() (Value, error) {
	if f := 8 * v.double(); v.class == Double && (f != math.Trunc(f) || math.Abs(f) >= 8e7) {
		return Value{}, evalError("the text of a Double with so many digits is not understood")
	}
	return OfString(v.String()), nil
}

// append appends the value's text.
func (v Value) append(b []byte) []byte {
	switch v.class {
	case Null:
		return append(b, "null"...)
	case Boolean:
		return strconv.AppendBool(b, v.n == 1)
	case Integer, Long:
		return strconv.AppendInt(b, v.n, 10)
	case BigInteger:
		return v.big().Append(b, 10)
	case BigDecimal:
		return appendDecimal(b, v)
	case Double:
		return append(b, doubleText(v.double())...)
	case String:
		return append(b, v.s...)
	case LocalDate:
		return v.x.(time.Time).AppendFormat(b, time.DateOnly)
	case LocalDateTime:
		return appendDateTime(b, v.x.(time.Time))
	case Date:
		return v.x.(time.Time).AppendFormat(b, "Mon Jan 02 15:04:05 MST 2006")
	case UUID:
		u := v.x.([16]byte)
		return fmt.Appendf(b, "%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	}
	return append(b, v.class.String()...)
}

// appendDateTime leaves out what LocalDateTime.toString() leaves out: seconds
// that are zero, and the digits of a fraction in groups of three.
func appendDateTime(b []byte, t time.Time) []byte {
	layout := "2006-01-02T15:04:05.000000000"
	switch ns := t.Nanosecond(); {
	case ns == 0 && t.Second() == 0:
		layout = "2006-01-02T15:04"
	case ns == 0:
		layout = "2006-01-02T15:04:05"
	case ns%1e6 == 0:
		layout = "2006-01-02T15:04:05.000"
	case ns%1e3 == 0:
		layout = "2006-01-02T15:04:05.000000"
	}
	return t.AppendFormat(b, layout)
}

// doubleText is Double.toString: at least one digit after the point, and an
// exponent for what is below 0.001 or from ten million on.
func doubleText(f float64) string {
	switch a := math.Abs(f); {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case a != 0 && (a < 1e-3 || a >= 1e7):
		digits, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		if !strings.Contains(digits, ".") {
			digits += ".0"
		}
		n, _ := strconv.Atoi(exponent)
		return digits + "E" + strconv.Itoa(n)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// isTrue is Groovy's truth: not null, not 0, not empty.
func (v Value) isTrue() bool {
	switch v.class {
	case Null:
		return false
	case Boolean, Integer, Long:
		return v.n != 0
	case Double:
		return v.double() != 0
	case BigInteger, BigDecimal:
		return v.x.(*big.Int).Sign() != 0
	case String:
		return v.s != ""
	case list:
		return len(v.x.([]Value)) > 0
	case mapping:
		return len(v.x.([]entry)) > 0
	}
	return true
}

// EvalError is the error for a value of which an expression has no result: in
// Java it would throw.
type EvalError struct{ Reason string }

func (e *EvalError) Error() string { return e.Reason }

func evalError(format string, args ...any) error {
	return &EvalError{Reason: fmt.Sprintf(format, args...)}
}

// clip shortens a text for an error.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
