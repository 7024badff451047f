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
	switch p.server() {
	case serverMySQL, serverVitess:
		return literal{"0x" + digits.text, true}, true
	case serverMariaDB:
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

// LiteralKey returns the [Literal] key of a row: an int64, uint64 or string. It returns nil if only
// the server knows its value.
func (plan *Plan) LiteralKey(row int) any {
	in := plan.Insert
	if in.Rows[row].Key != Literal {
		return nil
	}
	r := plan.reader(int(in.places[row].at), int(in.places[row].end))
	v := r.expression(inRow)
	l, ok := r.literal(r.inner(&v))
	switch {
	case !ok:
		return nil
	case !in.Table.Strings:
		return l.integer()
	}
	return l.string()
}

// reader returns a parser for a part of the string, whose plan is only for this part.
func (plan *Plan) reader(start, end int) *parser {
	of := sqltoken.Lexer{Text: plan.text[:end], Pos: start, Mode: plan.mode, Charset: plan.charset}
	return &parser{opts: Options{Server: plan.dialect}, Lexer: of, plan: &Plan{}}
}
