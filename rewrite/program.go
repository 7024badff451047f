package rewrite

// storedProgram tells whether CREATE or ALTER is of a PROCEDURE, FUNCTION,
// TRIGGER, EVENT or PACKAGE: their bodies are not this session's statements.
func (p *parser) storedProgram() bool {
	saved := p.lexer
	defer func() { p.restore(saved) }()
	for range 16 {
		t := p.next()
		switch word := p.word(t); {
		case fold(word, "PROCEDURE"), fold(word, "FUNCTION"), fold(word, "TRIGGER"), fold(word, "EVENT"), fold(word, "PACKAGE"):
			return true
		case t.kind == tokenEOF, t.kind == tokenBad, p.isPunct(t, ';'), p.isPunct(t, '('), fold(word, "TABLE"):
			return false
		}
	}
	return false
}

// skipProgram moves behind a stored program's definition: behind the first
// semicolon that is not within BEGIN … END or the like. What is behind a
// definition with blocks can be told from them only if no name is BEGIN or END,
// so nothing is filled there.
func (p *parser) skipProgram() error {
	depth := 0
	for {
		before := p.prev
		t := p.next()
		word := p.word(t)
		switch {
		case t.kind == tokenEOF, t.kind == tokenBad, p.isPunct(t, ';') && depth <= 0:
			return nil
		case t.kind == tokenParam:
			p.params++
		case fold(word, "END"):
			depth--
			if p.opensBlock(p.peek(), p.prev) {
				p.next() // END IF
			}
		case p.opensBlock(t, before):
			depth++
			p.behindProgram = true
		}
	}
}

// opensBlock tells whether t, behind the token before, is a word that END ends.
func (p *parser) opensBlock(t, before token) bool {
	switch word := p.word(t); {
	case fold(word, "CASE"):
		return true
	case fold(word, "BEGIN"), fold(word, "IF"), fold(word, "LOOP"), fold(word, "REPEAT"), fold(word, "WHILE"), fold(word, "FOR"):
		return p.beginsStatement(before)
	}
	return false
}

// beginsStatement tells whether a statement of a program may stand behind the
// token before.
func (p *parser) beginsStatement(before token) bool {
	switch word := p.word(before); {
	case fold(word, "BEGIN"), fold(word, "THEN"), fold(word, "ELSE"), fold(word, "DO"), fold(word, "LOOP"),
		fold(word, "REPEAT"), fold(word, "ROW"), fold(word, "END"), fold(word, "ATOMIC"):
		return true
	case fold(word, "DETERMINISTIC"), fold(word, "SQL"), fold(word, "DATA"), fold(word, "INVOKER"), fold(word, "DEFINER"):
		return true // characteristics of a routine
	}
	return before.kind == tokenString || p.isPunct(before, ';') || p.isPunct(before, ')') || p.isPunct(before, ':')
}
