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
	v := r.expression(false)
	if v.isEmpty() {
		r.in.Refused = true // no value between the commas
		return nil
	}
	r.addKey(r.in, &v)
	return nil
}

// expression reads tokens up to a comma, closing bracket or semicolon outside
// of brackets, in INSERT … SET also up to the word that begins the tail, and
// leaves the reader before that.
func (p *parser) expression(inSet bool) value {
	v := value{params: p.params, start: p.pos, end: p.pos}
	for depth := 0; ; {
		saved := p.lexer
		t := p.next()
		outside := depth == 0 && (p.isPunct(t, ',') || p.isPunct(t, ')') || p.isPunct(t, ';') ||
			inSet && !v.isEmpty() && p.endsAssignment(saved.prev, t))
		if outside || t.kind == tokenEOF || t.kind == tokenBad {
			p.restore(saved)
			return v
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
		p.add(&v, t, depth)
	}
}

// add takes the next token of a value; depth is the number of brackets that
// are open behind it.
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

// addKey decides what becomes of a key that the text gives.
func (p *parser) addKey(in *Insert, v *value) {
	kind := p.keyKind(in, v)
	in.slots.add(v.start, v.end, kind, v.params)
}

func (p *parser) keyKind(in *Insert, v *value) SlotKind {
	tokens := p.inner(v)
	switch {
	case len(tokens) == 1 && tokens[0].kind == tokenParam:
		return Param // for a bound 0 the execution asks the session itself
	case p.isNull(tokens):
		if in.Table.KeepExplicit {
			return Unknown
		}
		return Fill
	}
	l, ok := p.literal(tokens)
	switch {
	case !ok:
		return Unknown
	case in.Table.KeepExplicit:
		return Kept
	case l.isEmpty() && in.Table.Kind == Text:
		return Fill
	case l.isEmpty() && in.Table.Kind == Integer:
		return Unknown // the server converts or refuses it
	case l.isEmpty() || l.isZero() && in.Table.Kind == UnknownKind:
		p.missing1(in)
		return Unknown
	case l.isZero() && in.Table.Kind == Integer:
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

// inner gives the tokens of a value without brackets around them: (NULL) is
// NULL. (DEFAULT) is nothing: the servers refuse it.
func (p *parser) inner(v *value) []token {
	if v.complex || v.n == 0 || v.open > 0 && fold(p.word(v.tokens[0]), "DEFAULT") {
		return nil
	}
	return v.tokens[:v.n]
}

// isNull: NULL, DEFAULT and the \N of MariaDB and of MySQL 5.7.
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
