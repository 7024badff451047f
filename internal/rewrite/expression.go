package rewrite

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
func (r *exactReader) sum() bool {
	for {
		if !r.operand() {
			return false
		}
		switch t := r.peek(); {
		case r.isOneOf(t, "+-*/%"), r.is(t, "DIV", "MOD"):
			r.next()
		default:
			return true
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

func (r *exactReader) operand() bool {
	t := r.next()
	for r.isOneOf(t, "+-") {
		t = r.next()
	}
	word := r.word(t)
	switch {
	case t.kind == tokenNumber:
		l := literal{r.text[t.start:t.end], true}
		_, base := l.radix()
		return base == 0 && !l.isFloat()
	case r.isPunct(t, '('):
		return r.sum() && r.isPunct(r.next(), ')')
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
