package expr

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Class is the Java class of a value.
type Class uint8

// Classes of values. If one operand is an Integer and the other a Long, the result is a Long.
const (
	Null Class = iota
	Boolean
	Integer
	Long
	String
	Unsigned // a BigInteger from 2^63 to 2^64−1; no expression can use it
	Time     // a LocalDateTime, Timestamp or other class of times; it isn't known which
	list
	quotient // a BigDecimal, the quotient of two integers, whose integral part is known
)

var classNames = [...]string{"null", "Boolean", "Integer", "Long", "String", "BigInteger", "time", "List", "BigDecimal"}

func (c Class) String() string { return classNames[c] }

// Value is a Java value. The zero Value is null. A Value never changes.
type Value struct {
	class Class
	// n is 0 or 1 for a Boolean, and the low 64 bits for an Unsigned. It is the Unix time in
	// microseconds for a Time, and the index in scope.lists for a list.
	n int64
	s string
}

// OfInt returns an Integer.
func OfInt(n int32) Value { return Value{class: Integer, n: int64(n)} }

// OfLong returns a Long.
func OfLong(n int64) Value { return Value{class: Long, n: n} }

// OfString returns a String.
func OfString(s string) Value { return Value{class: String, s: s} }

func ofBool(b bool) Value {
	if b {
		return Value{class: Boolean, n: 1}
	}
	return Value{class: Boolean}
}

// Of returns the Java value of a Go value. An integer becomes a Long, or an Unsigned if it is too
// large. A string becomes a String, the wall clock of a time.Time becomes a Time, and nil becomes
// null. ok is false for other types.
func Of(v any) (value Value, ok bool) {
	switch v := v.(type) {
	case nil:
		return Value{}, true
	case int64:
		return OfLong(v), true
	case string:
		return OfString(v), true
	case time.Time:
		_, offset := v.Zone()
		return Value{class: Time, n: v.UnixMicro() + int64(offset)*1e6}, true
	}
	switch rv := reflect.ValueOf(v); {
	case rv.CanInt():
		return OfLong(rv.Int()), true
	case rv.CanUint() && rv.Uint() >= 1<<63:
		return Value{class: Unsigned, n: int64(rv.Uint())}, true
	case rv.CanUint():
		return OfLong(int64(rv.Uint())), true
	case rv.Kind() == reflect.String:
		return OfString(rv.String()), true
	}
	return Value{}, false
}

// Class returns the class of the value.
func (v Value) Class() Class { return v.class }

// IsInteger reports whether the value is an Integer or a Long.
func (v Value) IsInteger() bool { return v.class == Integer || v.class == Long }

// Int64 returns the number of an Integer or a Long, or the low 64 bits of an Unsigned.
func (v Value) Int64() int64 { return v.n }

// Clock returns the wall clock of a Time, in UTC.
func (v Value) Clock() time.Time { return time.UnixMicro(v.n).UTC() }

// Convert returns the value in another class, as a Java program sends it if its field for the
// column has that class. The error is an [*Error].
func (v Value) Convert(class Class) (Value, error) {
	switch {
	case v.class == class || class == Null:
		return v, nil
	case class == String && v.IsInteger():
		return OfString(v.String()), nil
	case class == Integer || class == Long:
		if converted, err := parse(class, v.String()); err == nil && v.class <= String {
			return converted, nil
		}
	}
	return Value{}, fail("a %s can't be converted to %s", v.class, class)
}

// parse implements Integer.parseInt and Long.parseLong.
func parse(class Class, s string) (Value, error) {
	bits := 64
	if class == Integer {
		bits = 32
	}
	n, err := strconv.ParseInt(s, 10, bits)
	if err != nil {
		return Value{}, fail("the string is not a valid %s", class)
	}
	return Value{class: class, n: n}, nil
}

// String returns the result of Java's toString().
func (v Value) String() string {
	if v.class == String {
		return v.s
	}
	return string(v.append(nil))
}

func (v Value) append(b []byte) []byte {
	switch v.class {
	case Boolean:
		return strconv.AppendBool(b, v.n == 1)
	case Integer, Long:
		return strconv.AppendInt(b, v.n, 10)
	case String:
		return append(b, v.s...)
	case Unsigned:
		return strconv.AppendUint(b, uint64(v.n), 10)
	case Time:
		return v.Clock().AppendFormat(b, time.DateTime)
	}
	return append(b, v.class.String()...)
}

// wrapped returns an Integer with the low 32 bits of n, or a Long.
func wrapped(class Class, n int64) Value {
	if class == Integer {
		n = int64(int32(n))
	}
	return Value{class: class, n: n}
}

// Hash returns the result of Java's hashCode() for an integer or a string. The error is an
// [*Error].
func (v Value) Hash() (int32, error) {
	switch v.class {
	case Integer:
		return int32(v.n), nil
	case Long:
		return int32(v.n ^ v.n>>32), nil
	case String:
		return hashString(v.s), nil
	}
	return 0, fail("hashCode() of a %s is not supported", v.class)
}

// hashString implements String.hashCode(), which hashes UTF-16 code units.
func hashString(s string) int32 {
	var h int32
	for _, r := range s {
		if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
			h, r = 31*h+high, low
		}
		h = 31*h + r
	}
	return h
}

// Length returns the length of a string in Java, which is its number of UTF-16 code units.
func Length(s string) int {
	n := len(s)
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		n = len(utf16.Encode([]rune(s)))
	}
	return n
}

// Substring returns the UTF-16 code units of a string from begin up to, but not including, end. The
// error is an [*Error].
func Substring(s string, begin, end int64) (string, error) {
	length := Length(s)
	if begin < 0 || end > int64(length) || begin > end {
		return "", fail("a string of %d characters has no substring from %d to %d", length, begin, end)
	}
	if length == len(s) {
		return s[begin:end], nil
	}
	part := utf16.Decode(utf16.Encode([]rune(s))[begin:end])
	if slices.Contains(part, utf8.RuneError) {
		return "", fail("half of a character is not supported")
	}
	return string(part), nil
}
