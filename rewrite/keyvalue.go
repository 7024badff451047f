package rewrite

import (
	"strconv"
	"strings"
)

// value is an expression as far as it matters: its place, and its tokens when
// they are so few that it may be a literal.
type value struct {
	start, end int
	tokens     [6]token
	n          int
	long       bool // more tokens than that
	params     int  // placeholders before it
}

// keyValue reads the key's value in a row of VALUES.
func (r *rowReader) keyValue() error {
	v, _ := r.expression(nil)
	if v.n == 0 {
		r.in.Refused = true // no value between the commas
		return nil
	}
	r.addKey(r.in, &v)
	return nil
}

// expression reads tokens up to a comma, closing bracket, semicolon or ending
// word outside of brackets, and leaves the reader before that. It returns the
// end of the last token as well.
func (p *parser) expression(ends func(token) bool) (value, int) {
	v := value{params: p.params, start: p.pos, end: p.pos}
	for depth := 0; ; {
		saved := p.lexer
		t := p.next()
		outside := depth == 0 && (p.isPunct(t, ',') || p.isPunct(t, ')') || p.isPunct(t, ';') ||
			ends != nil && v.n > 0 && ends(t))
		if outside || t.kind == tokenEOF || t.kind == tokenBad {
			consulted, executable := p.consulted, p.executable
			p.lexer = saved
			p.consulted |= consulted
			p.executable = p.executable || executable
			return v, v.end
		}
		switch {
		case t.kind == tokenParam:
			p.params++
		case t.kind == tokenWord:
			p.noteWord(t)
		case p.isPunct(t, '('):
			depth++
		case p.isPunct(t, ')'):
			depth--
		}
		v.add(t)
	}
}

func (v *value) add(t token) {
	if v.n == 0 && !v.long {
		v.start = t.start
	}
	v.end = t.end
	if v.n == len(v.tokens) {
		v.long = true
		return
	}
	v.tokens[v.n] = t
	v.n++
}

// addKey decides what becomes of a key that the text gives.
func (p *parser) addKey(in *Insert, v *value) {
	kind := p.keyKind(in, v)
	in.slots.add(v.start, v.end, kind, v.params)
}

func (p *parser) keyKind(in *Insert, v *value) SlotKind {
	tokens := p.strip(v)
	if len(tokens) == 1 && tokens[0].kind == tokenParam {
		return Param // for a bound 0 the execution asks the session itself
	}
	if p.isNull(tokens) {
		if in.Table.KeepExplicit {
			return Unknown
		}
		return Fill
	}
	literal, ok := p.literal(tokens)
	switch {
	case !ok:
		return Unknown
	case in.Table.KeepExplicit:
		return Kept
	case literal == "" && in.Table.Kind == Text:
		return Fill
	case literal == "" && in.Table.Kind == Integer:
		return Unknown // the server converts or refuses it
	case literal == "" || isZero(literal) && in.Table.Kind == UnknownKind:
		p.missing1(in)
		return Unknown
	case isZero(literal) && in.Table.Kind == Integer:
		p.plan.Consulted |= NoAutoValueOnZero
		if p.mode&NoAutoValueOnZero == 0 {
			return Fill
		}
	}
	return Kept
}

// missing1 asks for the kind of the table's keys.
func (p *parser) missing1(in *Insert) {
	if p.plan.Missing == nil {
		p.plan.Missing = in
	}
}

// strip takes off brackets around a single value: (NULL) is NULL.
func (p *parser) strip(v *value) []token {
	if v.long {
		return nil
	}
	tokens := v.tokens[:v.n]
	for len(tokens) > 2 && p.isPunct(tokens[0], '(') && p.isPunct(tokens[len(tokens)-1], ')') {
		tokens = tokens[1 : len(tokens)-1]
	}
	return tokens
}

// isNull: NULL, DEFAULT and MariaDB's \N.
func (p *parser) isNull(tokens []token) bool {
	switch len(tokens) {
	case 1:
		word := p.word(tokens[0])
		return fold(word, "NULL") || fold(word, "DEFAULT")
	case 2:
		return p.isPunct(tokens[0], '\\') && p.word(tokens[1]) == "N"
	}
	return false
}

// literal is the text of a string or number, sign included.
func (p *parser) literal(tokens []token) (string, bool) {
	sign := ""
	if len(tokens) == 2 && (p.isPunct(tokens[0], '-') || p.isPunct(tokens[0], '+')) && tokens[1].kind == tokenNumber {
		sign = strings.TrimPrefix(p.text[tokens[0].start:tokens[0].end], "+")
		tokens = tokens[1:]
	}
	if len(tokens) != 1 {
		return "", false
	}
	text := p.text[tokens[0].start:tokens[0].end]
	switch tokens[0].kind {
	case tokenNumber:
		return sign + text, true
	case tokenString:
		return unquoteString(text, p.mode), true
	case tokenWord:
		switch {
		case fold(text, "TRUE"):
			return "1", true
		case fold(text, "FALSE"):
			return "0", true
		}
	}
	return "", false
}

// isZero tells whether a literal is 0 as a number, however it is written.
func isZero(literal string) bool {
	s := strings.TrimLeft(strings.TrimSpace(literal), "+-")
	if s == "" {
		return false
	}
	if strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0b") {
		return strings.Trim(s[2:], "0") == ""
	}
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && f == 0 && s[0] != 'N' && s[0] != 'I'
}

// Kept returns the key that the text gives row i, an int64, uint64 or string;
// nil when it is not of that kind or needs the server to be understood.
func (p *Plan) Kept(in *Insert, i int, mode Mode) any {
	if in.slots.kind(i) != Kept {
		return nil
	}
	r := &parser{lexer: lexer{text: p.text[:in.slots.end(i)], pos: int(in.slots.at[i]), mode: mode, execute: true}, plan: &Plan{}}
	v, _ := r.expression(nil)
	literal, ok := r.literal(r.strip(&v))
	if !ok {
		return nil
	}
	if in.Table.Kind == Integer {
		return ParseInteger(literal)
	}
	return literal
}

// ParseInteger reads a decimal or 0x integer as int64, or uint64 where it must;
// nil for what is not one.
func ParseInteger(literal string) any {
	base := 10
	if digits, hex := strings.CutPrefix(literal, "0x"); hex {
		literal, base = digits, 16
	}
	if n, err := strconv.ParseInt(literal, base, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(literal, base, 64); err == nil {
		return n
	}
	return nil
}
