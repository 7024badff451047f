package rewrite

import (
	"strconv"
	"strings"
)

// literal is a string or number that a text gives as a key.
type literal struct {
	text   string // a string's contents, or a number as written, without '+'
	number bool
}

// literal reads a literal: a number with its sign, TRUE or FALSE, b'01', or
// strings side by side, perhaps behind N or the name of a UTF-8 character set.
func (p *parser) literal(tokens []token) (literal, bool) {
	if len(tokens) == 0 {
		return literal{}, false
	}
	first := p.text[tokens[0].start:tokens[0].end]
	switch {
	case len(tokens) == 2 && (first == "-" || first == "+") && tokens[1].kind == tokenNumber:
		return literal{strings.TrimPrefix(first, "+") + p.text[tokens[1].start:tokens[1].end], true}, true
	case tokens[0].kind == tokenNumber:
		return literal{first, true}, len(tokens) == 1
	case tokens[0].kind == tokenString:
		return p.strings(tokens)
	case tokens[0].kind != tokenWord:
		return literal{}, false
	case fold(first, "TRUE"):
		return literal{"1", true}, len(tokens) == 1
	case fold(first, "FALSE"):
		return literal{"0", true}, len(tokens) == 1
	case fold(first, "B") && len(tokens) == 2:
		digits, ok := p.strings(tokens[1:])
		return literal{"0b" + digits.text, true}, ok
	case fold(first, "N"), fold(first, "_UTF8MB4"), fold(first, "_UTF8MB3"), fold(first, "_UTF8"):
		return p.strings(tokens[1:])
	}
	return literal{}, false
}

// strings reads string literals side by side, which are one: 'a' "b".
func (p *parser) strings(tokens []token) (literal, bool) {
	text := ""
	for _, t := range tokens {
		if t.kind != tokenString {
			return literal{}, false
		}
		text += unquoteString(p.text[t.start:t.end], p.mode)
	}
	return literal{text: text}, len(tokens) > 0
}

func (l literal) isEmpty() bool { return l.text == "" }

// isZero tells whether a literal is 0 in an integer column, however it is
// written; the servers round 0.4 and '0.4' to it.
func (l literal) isZero() bool {
	s := l.text
	if l.number && (strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0b")) {
		return strings.Trim(s[2:], "0") == ""
	}
	if !l.number {
		s = strings.Trim(s, " \t\n\v\f\r")
	}
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return false // what ParseFloat knows besides: Inf, hexadecimal, 1_0
	}
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && f > -0.5 && f < 0.5
}

// IsZero tells whether a string is 0 in an integer column.
func IsZero(s string) bool { return literal{text: s}.isZero() }

// integer is the key that a literal is in an integer column: int64, or uint64
// where it must be; nil when only the server can tell.
func (l literal) integer() any {
	if hex, ok := strings.CutPrefix(l.text, "0x"); ok && l.number {
		return parseInteger(hex, 16)
	}
	return ParseInteger(strings.Trim(l.text, " \t\n\v\f\r"))
}

// string is the key that a literal is in a string column, nil when only the
// server can tell: 007 becomes '7', and 0x41 'A'.
func (l literal) string() any {
	if n := ParseInteger(l.text); l.number && (n == nil || string(appendInteger(nil, n)) != l.text) {
		return nil
	}
	return l.text
}

// Kept returns the key that the text gives row i, an int64, uint64 or string;
// nil when it is not of that kind or needs the server to be understood.
func (p *Plan) Kept(in *Insert, i int, mode Mode) any {
	if in.slots.kind(i) != Kept {
		return nil
	}
	r := &parser{lexer: lexer{text: p.text[:in.slots.end(i)], pos: int(in.slots.at[i]), mode: mode, execute: true}, plan: &Plan{}}
	v := r.expression(false)
	l, ok := r.literal(r.inner(&v))
	switch {
	case !ok:
		return nil
	case in.Table.Kind == Integer:
		return l.integer()
	}
	return l.string()
}

// ParseInteger reads a decimal integer as int64, or as uint64 where it must;
// nil for what is not one.
func ParseInteger(decimal string) any { return parseInteger(decimal, 10) }

func parseInteger(digits string, base int) any {
	if n, err := strconv.ParseInt(digits, base, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(digits, base, 64); err == nil {
		return n
	}
	return nil
}
