package rewrite

// tail reads what follows the rows: a row alias, ON DUPLICATE KEY UPDATE,
// RETURNING, up to the statement's end.
func (p *parser) tail(in *Insert) error {
	t := p.next()
	if fold(p.word(t), "AS") {
		if _, ok := p.name(p.next()); !ok {
			return p.fail(p.prev.start, in, "the row alias is not understood")
		}
		if t = p.next(); p.isPunct(t, '(') {
			_, closing, ok := p.names(t)
			if !ok {
				return p.fail(t.start, in, "the row alias' columns are not understood")
			}
			if in.headText != "" || in.keyPrefix != "" {
				in.aliasAt = closing
			}
			t = p.next()
		}
	}
	if p.onDuplicate(t) {
		in.OnDuplicate = true
		t = p.duplicates(in, t)
	}
	if fold(p.word(t), "RETURNING") {
		in.Returning = true
		t = p.skipTo(false)
	}
	switch {
	case t.kind == tokenEOF, p.isPunct(t, ';'):
		return nil
	case t.kind == tokenBad:
		return p.fail(t.start, in, "a string, name or comment has no end")
	}
	return p.fail(t.start, in, "what follows the values is not understood")
}

// onDuplicate tells whether t begins ON DUPLICATE KEY.
func (p *parser) onDuplicate(t token) bool {
	if !fold(p.word(t), "ON") {
		return false
	}
	saved := p.lexer
	is := fold(p.word(p.next()), "DUPLICATE") && fold(p.word(p.next()), "KEY")
	p.restore(saved)
	return is
}

// duplicates reads ON DUPLICATE KEY UPDATE's assignments and returns the token
// behind them.
func (p *parser) duplicates(in *Insert, on token) token {
	in.duplicateAt = on.end
	return p.skipTo(true, &in.duplicateAt)
}

// skipTo moves to the end of the statement, or to RETURNING, and stores the
// end of the last token before it.
func (p *parser) skipTo(returning bool, end ...*int) token {
	depth := 0
	for {
		before := p.prev
		t := p.next()
		switch {
		case t.kind == tokenEOF, t.kind == tokenBad, p.isPunct(t, ';'):
			return t
		case t.kind == tokenParam:
			p.params++
		case p.isPunct(t, '('):
			depth++
		case p.isPunct(t, ')'):
			depth--
		case t.kind == tokenWord:
			p.noteWord(t)
			if returning && depth == 0 && fold(p.word(t), "RETURNING") && !p.isNamePosition(before) && !p.isPunct(p.peek(), '=') {
				return t
			}
		}
		for _, e := range end {
			*e = t.end
		}
	}
}

// isNamePosition: behind a dot, comma or operator a word is a name.
func (p *parser) isNamePosition(before token) bool {
	return before.kind == tokenPunct && !p.isPunct(before, ')') || fold(p.word(before), "UPDATE")
}
