package rewrite

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

// addKey decides what happens to the key of a row in the text.
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

// wrapper is the text around an expression for a key, and around the
// key that takes its place where it comes to none: before expression between key
// after. The server evaluates the expression once (it evaluates that of NULLIF
// twice), and where it stands.
type wrapper struct{ before, between, after string }

var (
	// wrapZero is for integer keys, which 0 asks for as NULL does. The number as
	// the column would round it, without leading zeros, stands in a list before
	// the key; 0 leaves nothing there, or a comma. The first of the list is the
	// key then:
	//
	//	7.5 → 8 → 8,KEY → 8      0.4 → 0 → ,KEY → KEY      NULL → KEY
	//
	// All are texts of digits, so that no number loses digits as a float would.
	wrapZero = wrapper{"SUBSTRING_INDEX(TRIM(LEADING ',' FROM CONCAT_WS(',', TRIM(LEADING '0' FROM CAST((", ") AS DECIMAL(20))), ", ")), ',', 1)"}
	// wrapNull is for integer keys of which 0 is one.
	wrapNull = wrapper{"COALESCE(CAST((", ") AS DECIMAL(20)), ", ")"}
	// wrapEmpty is for text keys, which NULL and '' ask for. LENGTH
	// distinguishes '' from blanks, whatever the collation.
	wrapEmpty = wrapper{
		"(SELECT IF(LENGTH(`shardkey_given`) > 0, `shardkey_given`, `shardkey_key`) FROM (SELECT (",
		") AS `shardkey_given`, ", " AS `shardkey_key` LIMIT 1) AS `shardkey_row`)",
	}
)

// expressionSlot decides what happens to a key that is an expression.
func (p *parser) expressionSlot(in *Insert, v *value) (SlotKind, error) {
	if in.Table.KeepExplicit || p.dialect() == DialectVitess {
		return SlotUnknown, nil // Vitess evaluates only plain expressions for a sharding column
	}
	kind, err := p.keyKind(in)
	switch {
	case err != nil, kind == KindUnknown:
		return SlotUnknown, err
	case kind == KindText:
		in.wrapper = &wrapEmpty
		return SlotExpression, nil
	}
	if !p.isExact(v) {
		return SlotUnknown, p.fail(v.start, in, "the key is an expression whose type isn't certain, "+
			"so the server may round it otherwise; write CAST(expression AS SIGNED), or give the value")
	}
	p.plan.Consulted |= NoAutoValueOnZero
	if in.wrapper = &wrapZero; p.mode&NoAutoValueOnZero != 0 {
		in.wrapper = &wrapNull
	}
	return SlotExpression, p.modeKnown(in, v)
}

// isExact reports whether an expression is an integer or a decimal for certain, which
// the wrapper converts as the column does: arithmetic with such numbers,
// CAST and CONVERT to an integer, LAST_INSERT_ID and UUID_SHORT.
func (p *parser) isExact(v *value) bool {
	of := lexer{text: p.text[:v.end], pos: v.start, mode: p.mode, charset: p.charset}
	r := &exactReader{parser{lexer: of, plan: &Plan{}}}
	return r.sum() && r.next().kind == tokenEOF
}

type exactReader struct{ parser }

// sum reads operands and the operators between them, whatever their precedence.
// Brackets are counted, as a text may open more of them than a stack can hold.
func (r *exactReader) sum() bool {
	for depth := 0; ; {
		t := r.next()
		for ; r.isOneOf(t, "+-("); t = r.next() {
			if r.isPunct(t, '(') {
				depth++
			}
		}
		if !r.operand(t) {
			return false
		}
		for ; depth > 0 && r.isPunct(r.peek(), ')'); depth-- {
			r.next()
		}
		switch t := r.peek(); {
		case r.isOneOf(t, "+-*/%"), r.is(t, "DIV", "MOD"):
			r.next()
		default:
			return depth == 0
		}
	}
}

func (r *exactReader) isOneOf(t token, operators string) bool {
	for i := range len(operators) {
		if r.isPunct(t, operators[i]) {
			return true
		}
	}
	return false
}

// operand reads the rest of the operand that begins with t.
func (r *exactReader) operand(t token) bool {
	word := r.word(t)
	switch {
	case t.kind == tokenNumber:
		l := literal{r.text[t.start:t.end], true}
		_, base := l.radix()
		return base == 0 && !l.isFloat()
	case !r.isPunct(r.peek(), '('):
		return false
	case fold(word, "LAST_INSERT_ID", "UUID_SHORT"):
		_, ok := r.arguments()
		return ok
	case fold(word, "CAST", "CONVERT"):
		last, ok := r.arguments()
		return ok && (fold(last, "SIGNED", "UNSIGNED"))
	}
	return false
}

// arguments reads the arguments of a function, and returns the word SIGNED or
// UNSIGNED that they end in, with or without INTEGER after it.
func (r *exactReader) arguments() (last string, ok bool) {
	r.next()
	for depth := 1; ; {
		before := r.prev
		switch t := r.next(); {
		case t.kind == tokenEOF, t.kind == tokenBad:
			return "", false
		case r.isPunct(t, '('):
			depth++
		case r.isPunct(t, ')'):
			if depth--; depth == 0 {
				return last, true
			}
		case depth == 1 && (r.isPunct(before, ',') || r.is(before, "AS")):
			last = r.word(t)
		case depth == 1 && !r.is(t, "INTEGER") && !r.is(t, "INT"):
			last = ""
		}
	}
}
