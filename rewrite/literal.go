package rewrite

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// literal is a string or number in a statement.
type literal struct {
	text   string // a string's contents, or a number as written, without '+'
	number bool
}

// literal parses a literal: a number with signs, TRUE or FALSE, b'01', x'41', or adjacent strings.
// A string may have a character set in front and a collation after it.
func (p *parser) literal(tokens []sqltoken.Token) (literal, bool) {
	negative, signs := false, 0
	for signs < len(tokens) && (p.IsPunct(tokens[signs], '-') || p.IsPunct(tokens[signs], '+')) {
		negative = negative != p.IsPunct(tokens[signs], '-')
		signs++
	}
	if tokens = tokens[signs:]; len(tokens) == 0 {
		return literal{}, false
	}
	first := p.Text[tokens[0].Start:tokens[0].End]
	switch {
	case tokens[0].Kind == sqltoken.Number:
		if negative {
			first = "-" + first
		}
		return literal{first, true}, len(tokens) == 1
	case signs > 0:
		return literal{}, false
	case tokens[0].Kind == sqltoken.String:
		return p.strings(tokens)
	case tokens[0].Kind != sqltoken.Word:
		return literal{}, false
	case sqltoken.Is(first, "TRUE"):
		return literal{"1", true}, len(tokens) == 1
	case sqltoken.Is(first, "FALSE"):
		return literal{"0", true}, len(tokens) == 1
	case sqltoken.Is(first, "B") && len(tokens) == 2:
		digits, ok := p.strings(tokens[1:])
		return literal{"0b" + digits.text, true}, ok
	case sqltoken.Is(first, "X") && len(tokens) == 2:
		return p.hexadecimal(tokens[1:])
	case sqltoken.Is(first, "N", "_UTF8MB4", "_UTF8MB3", "_UTF8"):
		return p.strings(tokens[1:])
	case sqltoken.Is(first, "_UCS2", "_UTF16", "_UTF16LE", "_UTF32"):
		return literal{}, false // characters have two or four bytes
	case first[0] == '_':
		l, ok := p.strings(tokens[1:])
		return l, ok && sqltoken.IsASCII(l.text)
	}
	return literal{}, false
}

// hexadecimal parses the string of x'41', which is a number to MySQL and a string to MariaDB.
func (p *parser) hexadecimal(tokens []sqltoken.Token) (literal, bool) {
	digits, ok := p.strings(tokens)
	text, err := hex.DecodeString(digits.text)
	if !ok || err != nil {
		return literal{}, false
	}
	switch p.dialect() {
	case DialectMySQL, DialectVitess:
		return literal{"0x" + digits.text, true}, true
	case DialectMariaDB:
		return literal{text: string(text)}, true
	}
	return literal{}, false
}

// strings parses adjacent string literals, which form one string: 'a' "b".
func (p *parser) strings(tokens []sqltoken.Token) (literal, bool) {
	if n := len(tokens) - 2; n > 0 && p.Is(tokens[n], "COLLATE") {
		tokens = tokens[:n]
	}
	text := ""
	for _, t := range tokens {
		if t.Kind != sqltoken.String {
			return literal{}, false
		}
		text += sqltoken.UnquoteString(p.Text[t.Start:t.End], p.Mode)
	}
	return literal{text: text}, len(tokens) > 0
}

func (l literal) isEmpty() bool { return l.text == "" && !l.number }

// isZero reports whether the server converts a literal to 0 in an integer column.
func (l literal) isZero() bool {
	digits, base := l.radix()
	switch {
	case base != 0:
		const longest = 8 // in bytes; longer ones are out of range, even if they are zeros
		bits := len(digits) * map[int]int{2: 1, 16: 4}[base]
		return strings.Trim(digits, "0") == "" && (bits+7)/8 <= longest
	case l.isFloat():
		f, err := strconv.ParseFloat(l.text, 64)
		return err == nil && f >= -0.5 && f <= 0.5 // floats are rounded to even
	}
	return IsZero(l.text)
}

// IsZero reports whether the server converts a string to 0 in an integer column, for example '0',
// '0.4' and 'abc'.
func IsZero(s string) bool {
	zero, _, _ := readZero(s)
	return zero
}

// AsksForKey reports whether a string for an integer key requests a generated key. As with
// AUTO_INCREMENT, it does if the server converts it to 0 without an error. If this is uncertain,
// AsksForKey returns the reason.
//
// The function keeps reports whether the column stores strings, in which only '0' is a zero.
// AsksForKey calls it only if that matters.
func AsksForKey(
	s string, mode sqltoken.Mode, ignore bool, row int, keeps func() (bool, error),
) (asks bool, reason string, err error) {
	zero, whole, certain := readZero(s)
	switch {
	case !zero, mode&sqltoken.NoAutoValueOnZero != 0:
		return false, "", nil
	case whole && certain:
		return true, "", nil
	}
	switch kept, err := keeps(); {
	case err != nil:
		return false, "", err
	case kept:
		return whole, "", nil
	case sqltoken.IsASCII(s) && (ignore || mode&sqltoken.Strict == 0):
		return true, "", nil
	case !whole && certain && row == 0:
		return false, "", nil // the server refuses it
	}
	// Bytes above 0x7F may be blanks before a number. From the second row on, only transactional
	// tables refuse the value.
	return false, "the key is a string that isn't an integer, and the server may accept it; " +
		"write an integer, or leave the key out", nil
}

// readZero reports whether the server converts a string to 0 in an integer column, whether it
// converts all of it, and whether that is certain. Servers differ in exponents without digits or
// beyond a float's range, and in blanks.
func readZero(s string) (zero, whole, certain bool) {
	zero, whole = convertsToZero(strings.Trim(s, " \t\n\v\f\r"))
	exponent := strings.TrimLeft(s, " \t\n\r+-.0123456789")
	hasExponent := exponent != s && exponent != "" && exponent[0]|0x20 == 'e'
	certain = sqltoken.IsASCII(s) && !strings.ContainsAny(s, "\v\f") && !hasExponent
	return zero, whole, certain
}

func convertsToZero(s string) (zero, whole bool) {
	number := strings.TrimLeft(s, "+-")
	if len(s)-len(number) > 1 {
		return true, false
	}
	integer := number[:sqltoken.DigitsEnd(number, 0)]
	rest, fraction := number[len(integer):], ""
	if strings.HasPrefix(rest, ".") {
		fraction = rest[1:sqltoken.DigitsEnd(rest, 1)]
		rest = rest[1+len(fraction):]
	}
	if integer == "" && fraction == "" {
		return true, false
	}
	exponent := 0
	if end := sqltoken.ExponentEnd(rest, 0); end > 0 {
		var err error
		if exponent, err = strconv.Atoi(rest[1:end]); err != nil { // out of range; Atoi returns the limit
			exponent = math.MaxInt32
			if rest[1] == '-' {
				exponent = math.MinInt32
			}
		}
		exponent = min(max(exponent, math.MinInt32/2), math.MaxInt32/2) // leave range for the digits
		rest = rest[end:]
	}
	digits := strings.TrimLeft(integer+fraction, "0")
	if digits == "" {
		return true, rest == ""
	}
	// The value is 0.digits times 10 to the power of point. 0.5 is rounded up.
	point := len(digits) - len(fraction) + exponent
	return point < 0 || point == 0 && digits[0] < '5', rest == ""
}

// radix returns the digits of 0x… and 0b… and the base 16 or 2; 0 for other literals.
func (l literal) radix() (digits string, base int) {
	digits = strings.TrimPrefix(l.text, "-")
	switch {
	case !l.number:
	case strings.HasPrefix(digits, "0x"):
		return digits[2:], 16
	case strings.HasPrefix(digits, "0b"):
		return digits[2:], 2
	}
	return l.text, 0
}

// isFloat reports whether a number has an exponent. The servers round such numbers to even.
func (l literal) isFloat() bool { return l.number && strings.ContainsAny(l.text, "eE") }

// integer returns a literal's value in an integer column: an int64, or a uint64 if it is larger. It
// returns nil if only the server knows the value.
func (l literal) integer() any {
	if digits, base := l.radix(); base != 0 {
		if l.text[0] == '-' {
			return nil
		}
		return sqltoken.ParseInteger(digits, base)
	}
	s := strings.Trim(l.text, " \t\n\v\f\r")
	if n := sqltoken.ParseInteger(s, 10); n != nil {
		return n
	}
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	const exact = 1 << 53 // float64 has all integers up to it
	switch {
	case err != nil || f < -exact || f > exact:
		return nil
	case l.isFloat():
		return int64(math.RoundToEven(f))
	}
	return int64(math.Round(f))
}

// string returns a literal's value in a string column, nil if only the server knows it: 007 becomes
// '7', and 0x41 becomes 'A'.
func (l literal) string() any {
	digits, ok := sqltoken.AppendLiteral(nil, sqltoken.ParseInteger(l.text, 10))
	if l.number && (!ok || string(digits) != l.text) {
		return nil
	}
	return l.text
}

// Kept returns the literal key of row i: an int64, uint64 or string. It returns nil if the key
// isn't a literal, or if only the server knows its value.
func (p *Plan) Kept(in *Insert, i int) any {
	if in.slots[i].kind != SlotKept {
		return nil
	}
	r := p.reader(int(in.slots[i].at), int(in.slots[i].end))
	v := r.expression(inRow)
	l, ok := r.literal(r.inner(&v))
	switch {
	case !ok:
		return nil
	case in.Table.Kind == KindInteger:
		return l.integer()
	}
	return l.string()
}

// reader returns a parser for a part of the string.
func (p *Plan) reader(start, end int) *parser {
	of := sqltoken.Lexer{Text: p.text[:end], Pos: start, Mode: p.mode, Charset: p.charset}
	return &parser{answered: true, server: p.dialect, Lexer: of, plan: &Plan{}}
}
