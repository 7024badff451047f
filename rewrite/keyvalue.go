package rewrite

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
	v := r.expression(false)
	if v.n == 0 {
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
			inSet && v.n > 0 && p.endsAssignment(saved.prev, t))
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

// strip takes off brackets around a single value: (NULL) is NULL. (DEFAULT) is
// not: the servers refuse it.
func (p *parser) strip(v *value) []token {
	if v.long {
		return nil
	}
	tokens := v.tokens[:v.n]
	for len(tokens) > 2 && p.isPunct(tokens[0], '(') && p.isPunct(tokens[len(tokens)-1], ')') &&
		!fold(p.word(tokens[1]), "DEFAULT") {
		tokens = tokens[1 : len(tokens)-1]
	}
	return tokens
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
