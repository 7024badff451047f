package rewrite

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltext"
)

// literal is a string or number that a text has as a key.
type literal struct {
	text   string // a string's contents, or a number as written, without '+'
	number bool
}

// literal reads a literal: a number with its signs, TRUE or FALSE, b'01', x'41',
// or strings side by side, perhaps after the name of a character set and before
// a collation.
func (p *parser) literal(tokens []token) (literal, bool) {
	negative, signs := false, 0
	for signs < len(tokens) && (p.isPunct(tokens[signs], '-') || p.isPunct(tokens[signs], '+')) {
		negative = negative != p.isPunct(tokens[signs], '-')
		signs++
	}
	if tokens = tokens[signs:]; len(tokens) == 0 {
		return literal{}, false
	}
	first := p.text[tokens[0].start:tokens[0].end]
	switch {
	case tokens[0].kind == tokenNumber:
		if negative {
			first = "-" + first
		}
		return literal{first, true}, len(tokens) == 1
	case signs > 0:
		return literal{}, false
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
	case fold(first, "X") && len(tokens) == 2:
		return p.hexadecimal(tokens[1:])
	case fold(first, "N", "_UTF8MB4", "_UTF8MB3", "_UTF8"):
		return p.strings(tokens[1:])
	case fold(first, "_UCS2", "_UTF16", "_UTF16LE", "_UTF32"):
		return literal{}, false // two bytes or four are a character
	case first[0] == '_':
		l, ok := p.strings(tokens[1:])
		return l, ok && isASCII(l.text)
	}
	return literal{}, false
}

// hexadecimal reads the string of x'41', which is a number to MySQL and a string
// to MariaDB.
func (p *parser) hexadecimal(tokens []token) (literal, bool) {
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

// strings reads string literals side by side, which are one: 'a' "b".
func (p *parser) strings(tokens []token) (literal, bool) {
	if n := len(tokens) - 2; n > 0 && p.is(tokens[n], "COLLATE") {
		tokens = tokens[:n]
	}
	text := ""
	for _, t := range tokens {
		if t.kind != tokenString {
			return literal{}, false
		}
		text += unquoteString(p.text[t.start:t.end], p.mode)
	}
	return literal{text: text}, len(tokens) > 0
}

func (l literal) isEmpty() bool { return l.text == "" && !l.number }

// isZero reports whether a literal is 0 in an integer column, as far as the server
// converts it.
func (l literal) isZero() bool {
	digits, base := l.radix()
	switch {
	case base != 0:
		const longest = 8 // bytes; more are out of range, even if they are zeros
		bits := len(digits) * map[int]int{2: 1, 16: 4}[base]
		return strings.Trim(digits, "0") == "" && (bits+7)/8 <= longest
	case l.isFloat():
		f, err := strconv.ParseFloat(l.text, 64)
		return err == nil && f >= -0.5 && f <= 0.5 // floats are rounded to even
	}
	return IsZero(l.text)
}

// IsZero reports whether a string is 0 in an integer column, as far as the server
// converts it: '0', '0.4' and 'abc' are.
func IsZero(s string) bool {
	zero, _, _ := readZero(s)
	return zero
}

// AsksForKey reports whether a string for an integer key asks for a generated
// one, as it does with AUTO_INCREMENT: where the server converts it to 0 and
// does not refuse it. The reason is set where that is not certain. What keeps returns is
// whether the column holds strings, and so any that is not wholly 0; it is asked
// where that matters.
func AsksForKey(
	s string, mode Mode, ignore bool, row int, keeps func() (bool, error),
) (asks bool, reason string, err error) {
	zero, whole, certain := readZero(s)
	switch {
	case !zero, mode&NoAutoValueOnZero != 0:
		return false, "", nil
	case whole && certain:
		return true, "", nil
	}
	switch kept, err := keeps(); {
	case err != nil:
		return false, "", err
	case kept:
		return whole, "", nil
	case isASCII(s) && (ignore || mode&Strict == 0):
		return true, "", nil
	case !whole && certain && row == 0:
		return false, "", nil // it is an error
	}
	// There may be blanks above 0x7F before a number; and from the second row on it is
	// an error in transactional tables only.
	return false, "the key is a string that is no integer, and it isn't certain that the server refuses it; " +
		"give an integer, or leave the key out", nil
}

// readZero reports whether a string is 0 in an integer column, as far as the server
// converts it; whether it converts the whole of it; and whether that is
// certain. Servers differ in exponents without digits or beyond a float's, and in blanks.
func readZero(s string) (zero, whole, certain bool) {
	zero, whole = convertsToZero(strings.Trim(s, " \t\n\v\f\r"))
	exponent := strings.TrimLeft(s, " \t\n\r+-.0123456789")
	hasExponent := exponent != s && exponent != "" && exponent[0]|0x20 == 'e'
	certain = isASCII(s) && !strings.ContainsAny(s, "\v\f") && !hasExponent
	return zero, whole, certain
}

func convertsToZero(s string) (zero, whole bool) {
	number := strings.TrimLeft(s, "+-")
	if len(s)-len(number) > 1 {
		return true, false
	}
	integer := number[:digitsEnd(number, 0)]
	rest, fraction := number[len(integer):], ""
	if strings.HasPrefix(rest, ".") {
		fraction = rest[1:digitsEnd(rest, 1)]
		rest = rest[1+len(fraction):]
	}
	if integer == "" && fraction == "" {
		return true, false
	}
	exponent := 0
	if end := exponentEnd(rest, 0); end > 0 {
		var err error
		if exponent, err = strconv.Atoi(rest[1:end]); err != nil { // it is out of range, with its sign
			exponent = math.MaxInt32
			if rest[1] == '-' {
				exponent = math.MinInt32
			}
		}
		exponent = min(max(exponent, math.MinInt32/2), math.MaxInt32/2) // room for the digits
		rest = rest[end:]
	}
	digits := strings.TrimLeft(integer+fraction, "0")
	if digits == "" {
		return true, rest == ""
	}
	// The value is 0.digits, times ten to the power of point: 0.5 is rounded up.
	point := len(digits) - len(fraction) + exponent
	return point < 0 || point == 0 && digits[0] < '5', rest == ""
}

// radix returns the digits of 0x… and 0b…, and 16 or 2; 0 for other literals.
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

// isFloat reports whether a number has an exponent: the servers round those to
// even.
func (l literal) isFloat() bool { return l.number && strings.ContainsAny(l.text, "eE") }

// integer is the key that a literal is in an integer column: int64, or uint64
// where it must be; nil when only the server knows.
func (l literal) integer() any {
	if digits, base := l.radix(); base != 0 {
		if l.text[0] == '-' {
			return nil
		}
		return sqltext.ParseInteger(digits, base)
	}
	s := strings.Trim(l.text, " \t\n\v\f\r")
	if n := sqltext.ParseInteger(s, 10); n != nil {
		return n
	}
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	const exact = 1 << 53 // integers up to it are exact as float64
	switch {
	case err != nil || f < -exact || f > exact:
		return nil
	case l.isFloat():
		return int64(math.RoundToEven(f))
	}
	return int64(math.Round(f))
}

// string is the key that a literal is in a string column, nil when only the
// server knows: 007 becomes '7', and 0x41 'A'.
func (l literal) string() any {
	digits, ok := sqltext.AppendLiteral(nil, sqltext.ParseInteger(l.text, 10))
	if l.number && (!ok || string(digits) != l.text) {
		return nil
	}
	return l.text
}

// Kept returns the key that the text has for row i, an int64, uint64 or string;
// nil when it is not of that kind or needs the server to be understood.
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

// reader reads a part of the text again.
func (p *Plan) reader(start, end int) *parser {
	of := lexer{text: p.text[:end], pos: start, mode: p.mode, charset: p.charset}
	return &parser{answered: true, server: p.dialect, lexer: of, plan: &Plan{}}
}

// maxGiven is how long a text is at most in which GivenNumbers looks.
const maxGiven = 8 << 10

// GivenNumbers reads an INSERT or REPLACE without rule: the numbers that it has
// as values, and whether it is plain, which is to say that literals,
// placeholders, NULL, DEFAULT and functions without arguments are all that it
// has, so that an insert id that is none of them was generated. A long text,
// and whatever is not VALUES with rows alone, is not plain.
func (p *Plan) GivenNumbers() (numbers []float64, plain bool) {
	if len(p.text) > maxGiven || p.charset.readable(p.text) != p.text {
		return nil, false
	}
	r := &parser{lexer: lexer{text: p.text, mode: p.mode, charset: p.charset}}
	return r.givenNumbers()
}

func (p *parser) givenNumbers() (numbers []float64, plain bool) {
	for word := ""; !fold(word, "VALUES") && !fold(word, "VALUE") || !p.isPunct(p.peek(), '(') && !p.is(p.peek(), "ROW"); {
		t := p.next()
		word = p.word(t)
		if t.kind == tokenEOF || t.kind == tokenBad || t.kind == tokenNumber || fold(word, "SELECT") || p.isPunct(t, ';') {
			return nil, false
		}
	}
	for {
		before, number := p.prev, 0.0
		t := p.next()
		switch {
		case t.kind == tokenEOF:
			return numbers, p.unsure == ""
		case t.kind == tokenParam, p.isPunct(t, '('), p.isPunct(t, ')'), p.isPunct(t, ','):
			continue
		case t.kind == tokenNumber, t.kind == tokenString && (p.isPunct(before, '(') || p.isPunct(before, ',')):
			number = p.givenNumber(t)
		case p.isPunct(t, '-') && p.peek().kind == tokenNumber:
			p.next()
			continue // no generated key is negative
		case p.is(t, "TRUE"):
			number = 1
		case t.kind != tokenWord, !p.plainWord(t):
			return nil, false
		}
		if number != 0 {
			numbers = append(numbers, number)
		}
	}
}

func (p *parser) givenNumber(t token) float64 {
	if t.kind == tokenString {
		return sqltext.LeadingNumber(unquoteString(p.text[t.start:t.end], p.mode))
	}
	text := p.text[t.start:t.end]
	if n, err := strconv.ParseUint(text, 0, 64); err == nil && (strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0b")) {
		return float64(n)
	}
	return sqltext.LeadingNumber(text)
}

// plainWord reports whether a word among the values is NULL, DEFAULT, FALSE, the
// ROW before a row, or a function without arguments, whose brackets it takes.
func (p *parser) plainWord(t token) bool {
	word := p.word(t)
	if fold(word, "NULL", "DEFAULT", "FALSE", "ROW") {
		return !fold(word, "DEFAULT") || !p.isPunct(p.peek(), '(')
	}
	if p.isPunct(p.peek(), '(') {
		p.next()
		return p.isPunct(p.next(), ')')
	}
	return strings.HasPrefix(strings.ToUpper(word), "CURRENT_") || strings.HasPrefix(strings.ToUpper(word), "UTC_")
}

// value is an expression as far as it matters: its place, and its tokens
// without brackets around them when they are so few that it may be a literal.
type value struct {
	start, end int
	tokens     [6]token
	n          int
	open       int  // brackets that it begins with
	closed     int  // those of them that are closed again
	complex    bool // it is more than tokens within brackets
	params     int  // placeholders before it
}

func (v *value) isEmpty() bool { return v.start == v.end }

// keyValue reads the key's value in a row of VALUES.
func (r *rowReader) keyValue() error {
	v := r.expression(inRow)
	if v.isEmpty() {
		r.in.Refused = true // no value between the commas
		return nil
	}
	return r.addKey(r.in, &v)
}

// clause is where an expression stands.
type clause uint8

const (
	inRow    clause = iota // of VALUES
	inSet                  // of INSERT … SET
	inUpdate               // the assignments of ON DUPLICATE KEY UPDATE
)

// expression reads tokens up to a comma, closing bracket or semicolon outside
// of brackets, in assignments also up to the word that begins what follows them,
// and leaves the reader before that.
func (p *parser) expression(in clause) value {
	v := value{params: p.params, start: p.pos, end: p.pos}
	for depth := 0; ; {
		saved, params := p.lexer, p.params
		outside := depth == 0
		t := p.take(&depth)
		if t.kind == tokenEOF || t.kind == tokenBad || outside && (p.isPunct(t, ',') || p.isPunct(t, ')') ||
			p.isPunct(t, ';') || in != inRow && !v.isEmpty() && p.endsAssignment(in, saved.prev, t)) {
			p.restore(saved)
			p.params = params
			return v
		}
		p.add(&v, t, depth)
	}
}

// add takes the next token of a value; depth is the number of brackets that
// are open after it.
func (p *parser) add(v *value, t token, depth int) {
	if v.isEmpty() {
		v.start = t.start
	}
	v.end = t.end
	switch {
	case p.isPunct(t, '(') && v.n == 0 && v.closed == 0:
		v.open++
	case p.isPunct(t, ')') && depth < v.open:
		v.closed++
	case v.closed > 0, v.n == len(v.tokens):
		v.complex = true
	default:
		v.tokens[v.n] = t
		v.n++
	}
}

// addKey decides what becomes of the key of a row in the text.
func (p *parser) addKey(in *Insert, v *value) error {
	kind, err := p.keySlot(in, v)
	before := v.params
	if kind == SlotExpression {
		before = p.params // our placeholder stands after the expression's
	}
	p.addSlot(in, slot{uint32(v.start), uint32(v.end), uint32(before), kind})
	return err
}

func (p *parser) keySlot(in *Insert, v *value) (SlotKind, error) {
	tokens := p.inner(v)
	if len(tokens) == 1 && tokens[0].kind == tokenParam {
		return SlotParam, p.modeKnown(in, v) // for a bound 0 the execution asks the session itself
	}
	l, ok := p.literal(tokens)
	switch null := p.isNull(tokens); {
	case null && !in.Table.KeepExplicit:
		return SlotFill, nil
	case null:
		return SlotUnknown, nil
	case !ok:
		return p.expressionSlot(in, v)
	case in.Table.KeepExplicit:
		return SlotKept, nil
	}
	if !l.isZero() {
		return SlotKept, nil
	}
	kind, err := p.keyKind(in)
	switch {
	case err != nil, kind == KindUnknown:
		return SlotUnknown, err
	case kind == KindText && l.isEmpty():
		return SlotFill, nil
	case kind == KindText:
		return SlotKept, nil
	}
	return p.zeroSlot(in, v, l)
}

// zeroSlot decides about a key of an integer column that the server converts to 0.
func (p *parser) zeroSlot(in *Insert, v *value, l literal) (SlotKind, error) {
	if l.isEmpty() {
		p.plan.Consulted |= EmptyStringIsNull
		if p.mode&EmptyStringIsNull != 0 {
			return SlotFill, nil
		}
	}
	p.plan.Consulted |= NoAutoValueOnZero
	asks, whole, reason := p.mode&NoAutoValueOnZero == 0, true, ""
	if !l.number {
		var certain bool
		if _, whole, certain = readZero(l.text); !whole || !certain {
			p.plan.Consulted |= Strict
		}
		var err error
		keeps := func() (bool, error) { return p.keepsStrings(in) }
		if asks, reason, err = AsksForKey(l.text, p.mode, in.Ignore, in.Rows(), keeps); err != nil {
			return SlotUnknown, err
		}
	}
	switch {
	case reason != "":
		return SlotUnknown, p.fail(v.start, in, reason)
	case asks:
		return SlotFill, p.modeKnown(in, v)
	case whole:
		return SlotKept, p.modeKnown(in, v)
	}
	return SlotUnknown, p.modeKnown(in, v) // the server converts or refuses it
}

// keepsStrings reports whether the key column holds strings.
func (p *parser) keepsStrings(in *Insert) (bool, error) {
	if p.opts.KeepsStrings == nil {
		return false, nil
	}
	return p.opts.KeepsStrings(in)
}

// modeKnown refuses a key that may be 0 in a statement that sets sql_mode for
// itself: whether 0 asks for a key depends on that.
func (p *parser) modeKnown(in *Insert, v *value) error {
	if !p.modeSet || in.Table.KeepExplicit || in.Table.Kind == KindText {
		return nil
	}
	return p.fail(v.start, in, "sql_mode is set for this statement alone, and decides whether 0 asks for a key; set it for the session, or leave the key out")
}

// keyKind is the kind of the table's keys.
func (p *parser) keyKind(in *Insert) (Kind, error) {
	if in.Table.Kind != KindUnknown || p.opts.Kind == nil {
		return in.Table.Kind, nil
	}
	return p.opts.Kind(in.Table)
}

// inner returns the tokens of a value without brackets around them: (NULL) is
// NULL. (DEFAULT) is nothing: the servers refuse it.
func (p *parser) inner(v *value) []token {
	if v.complex || v.n == 0 || v.open > 0 && (p.is(v.tokens[0], "DEFAULT", "IGNORE")) {
		return nil
	}
	return v.tokens[:v.n]
}

// isNull: NULL, DEFAULT, IGNORE, which MariaDB takes for DEFAULT, and the \N of MariaDB and of MySQL 5.7.
func (p *parser) isNull(tokens []token) bool {
	switch len(tokens) {
	case 1:
		return p.is(tokens[0], "NULL", "DEFAULT") || p.is(tokens[0], "IGNORE") && !p.isMySQL()
	case 2:
		return p.isPunct(tokens[0], '\\') && p.word(tokens[1]) == "N"
	}
	return false
}
