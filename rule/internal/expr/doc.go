// Package expr evaluates the expressions ${…} in rules, which ShardingSphere runs as Groovy. There
// are expressions in data nodes, which stand for many names, and expressions of INLINE, which choose
// a table by the value of a column:
//
//	ds_${0..1}.t_order_${(1..12).collect{it.toString().padLeft(2, '0')}}
//	t_order_${Math.abs(user_id.hashCode()) % 4}
//
// [Compile] parses a string with expressions. [Template.Names] returns the names that it stands for.
// [Template.Append] evaluates it for a value of the column. It allocates no memory for integers and
// short strings.
//
// The package supports the expressions that occur in real rules:
//
//   - - * / %  << >> >>>  & | ^ ~  && || !  == != < <= > >=  ?:  ( )  (int) (long) (Integer) (Long)
//     12  12L  0x1F  'string'  "string"  null  Integer.MAX_VALUE  Long.MAX_VALUE
//     0..15  0..<16  'a'..'c'  '00'..'03'  ['a', 'b', 3]  (0..7).step(2)
//     list.collect{t -> …}  list.collect(t -> …)  list.collect{… it …}  list*.method()
//     x.hashCode() .abs() .intdiv(n) .intValue() .longValue() .toInteger() .toLong() .toString()
//     s.length() .substring(a, b) .padLeft(n, '0') .toInteger() .toLong()
//     Math.abs floorMod floorDiv, Integer.valueOf parseInt, Long.valueOf parseLong
//
// Integers have Java's classes Integer and Long, which wrap around at 32 and 64 bits. The quotient
// a / b is a BigDecimal. Only its integral part is known, so write (a / b).intValue(). Any other
// expression is an [*Error].
package expr

import (
	"fmt"
	"strings"
)

// Error is the error for an expression that package expr doesn't understand, or that has no result
// for a value.
type Error struct {
	Reason string
	// Offset is the number of bytes before the token at fault. It is -1 for an expression that has
	// no result.
	Offset int
	// Wrong reports whether the expression is a mistake: Groovy can't evaluate it either.
	Wrong bool
}

func (e *Error) Error() string { return e.Reason }

func fail(format string, args ...any) error {
	return &Error{Reason: fmt.Sprintf(format, args...), Offset: -1}
}

// Clip shortens a string for an error.
func Clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
