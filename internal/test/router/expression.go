package testrouter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Expression is an expression of a column, in the syntax of rules and as a Go function.
type Expression struct {
	Groovy string
	column string
	digits int // digits of its string, with leading zeros
	of     func(v any, isInt bool) (number, error)
}

// number is an Integer or a Long.
type number struct {
	n     int64
	isInt bool
}

// of truncates n to the type of x.
func (x number) of(n int64) number {
	if x.isInt {
		n = int64(int32(n))
	}
	return number{n, x.isInt}
}

// numeric returns an expression of an integer column. %[1]s in groovy stands for the column.
func numeric(column, groovy string, of func(x number) number) *Expression {
	return &Expression{Groovy: fmt.Sprintf(groovy, column), column: column, of: func(v any, isInt bool) (number, error) {
		n, ok := v.(int64)
		if !ok {
			return number{}, errors.New("no integer")
		}
		return of(number{n, isInt}), nil
	}}
}

// Column returns the expression of an integer column itself.
func Column(column string) *Expression {
	return numeric(column, "%[1]s", func(x number) number { return x })
}

// AbsHash returns the expression of the absolute hash of a column.
func AbsHash(column string) *Expression {
	return (&Expression{Groovy: column + ".hashCode()", column: column, of: func(v any, isInt bool) (number, error) {
		return number{hashOf(v, isInt), true}, nil
	}}).abs()
}

// Random returns one of a dozen expressions of an integer column.
func Random(r *rand.Rand, column string) *Expression {
	in := func(groovy string, of func(x number) number) *Expression { return numeric(column, groovy, of) }
	return []*Expression{
		Column(column),
		in("(%[1]s + 7) * 31", func(x number) number { return x.of((x.n + 7) * 31) }),
		in("%[1]s - 2147483647 * 2", func(x number) number { return x.of(x.n + 2) }),
		in("%[1]s - 4294967296", func(x number) number { return number{x.n - 1<<32, false} }),
		in("%[1]s.intdiv(10)", func(x number) number { return x.of(x.n / 10) }),
		in("(%[1]s / 10).longValue()", func(x number) number { return number{x.n / 10, false} }),
		in("(%[1]s >> 22 & 4095)", func(x number) number { return x.of(x.n >> 22 & 4095) }),
		in("(%[1]s >>> 3)", func(x number) number {
			if x.isInt {
				return x.of(int64(uint32(x.n) >> 3))
			}
			return x.of(int64(uint64(x.n) >> 3))
		}),
		in("(~%[1]s ^ 255)", func(x number) number { return x.of(^x.n ^ 255) }),
		in("Math.floorMod(%[1]s, 1000)", func(x number) number { return x.of((x.n%1000 + 1000) % 1000) }),
		in("%[1]s.intValue()", func(x number) number { return number{int64(int32(x.n)), true} }),
		in("(%[1]s < 0 ? 5 : %[1]s)", func(x number) number {
			if x.n < 0 {
				return number{5, true}
			}
			return x
		}),
		AbsHash(column),
	}[r.IntN(13)]
}

// textPieces are the parts of random strings.
var textPieces = []string{"a", "b", "A", "1", "7", "-", " ", "é", "ß", "中", "文", "\U0001f600"}

// RandomString returns a random string, often with characters beyond ASCII.
func RandomString(r *rand.Rand) string {
	text := ""
	for range r.IntN(6) {
		text += textPieces[r.IntN(len(textPieces))]
	}
	return text
}

// RandomOfText returns one of a few expressions of a string column.
func RandomOfText(r *rand.Rand, column string) *Expression {
	from := r.IntN(3)
	piece := textPieces[r.IntN(len(textPieces))]
	length := func(units []uint16) int64 { return int64(len(units)) }
	all := []struct {
		groovy string
		of     func(rest []uint16, text string) int64
	}{
		{"hashCode()", func(rest []uint16, _ string) int64 { return hashOf(string(utf16.Decode(rest)), false) }},
		{"length() * 7", func(rest []uint16, _ string) int64 { return length(rest) * 7 }},
		{"length() - " + column + ".length() * 3", func(rest []uint16, text string) int64 {
			return length(rest) - 3*length(utf16.Encode([]rune(text)))
		}},
		{"length() + (" + column + " == '" + piece + "' ? 1 : 0)", func(rest []uint16, text string) int64 {
			if text == piece {
				return length(rest) + 1
			}
			return length(rest)
		}},
	}
	one := all[r.IntN(len(all))]
	return &Expression{Groovy: fmt.Sprintf("%s.substring(%d).%s", column, from, one.groovy), column: column, of: func(v any, _ bool) (number, error) {
		text, _ := v.(string)
		units := utf16.Encode([]rune(text))
		if len(units) < from {
			return number{}, errors.New("substring: out of range")
		}
		if rest := units[from:]; len(rest) > 0 && rest[0]>>10 == 0xdc00>>10 {
			return number{}, errors.New("half a character: not computed here")
		}
		return number{int64(int32(one.of(units[from:], text))), true}, nil
	}}
}

func (e *Expression) abs() *Expression {
	to := *e
	to.Groovy = "Math.abs(" + e.Groovy + ")"
	to.of = func(v any, isInt bool) (number, error) {
		x, err := e.of(v, isInt)
		return x.of(max(x.n, -x.n)), err
	}
	return &to
}

// Modulo returns e modulo n, formatted with that many digits.
func (e *Expression) Modulo(n int64, digits int) *Expression {
	to := *e
	to.Groovy = fmt.Sprintf("(%s) %% %d", e.Groovy, n)
	if to.digits = digits; digits > 1 {
		to.Groovy = fmt.Sprintf("(%s).toString().padLeft(%d, '0')", to.Groovy, digits)
	}
	to.of = func(v any, isInt bool) (number, error) {
		x, err := e.of(v, isInt)
		return x.of(x.n % n), err
	}
	return &to
}

// Text returns the expression's string for a row.
func (e *Expression) Text(row map[string]any, integer map[string]bool) (string, error) {
	x, err := e.of(row[e.column], integer[e.column])
	text := strconv.FormatInt(x.n, 10)
	return strings.Repeat("0", max(0, e.digits-len(text))) + text, err
}
