package rewrite

import (
	"strings"
)

func (p *parser) script() error {
	for {
		t := p.next()
		switch {
		case t.kind == tokenEOF, t.kind == tokenBad:
			return nil
		case p.isPunct(t, ';'):
			continue
		}
		done, err := p.statement(t)
		if done || err != nil {
			return err
		}
		p.plan.Statements++
	}
}

// statement reads one statement, up to its semicolon. It is done when nothing
// after it can be an insert.
func (p *parser) statement(t token) (done bool, err error) {
	p.last, p.modeSet = false, false
	isSet := false // SET STATEMENT came before
	for fold(p.word(t), "SET") && fold(p.word(p.peek()), "STATEMENT") {
		if t, err = p.setStatement(t); err != nil || t.kind == tokenEOF {
			return false, err
		}
		isSet = true
	}
	before := len(p.plan.Inserts)
	done, err = p.dispatch(t)
	if n := len(p.plan.Inserts); isSet && err == nil && n > before && p.plan.Inserts[n-1].Source != nil {
		in := &p.plan.Inserts[n-1]
		err = p.fail(in.start, in, "INSERT … SELECT after SET STATEMENT is not filled; set the variables in a statement of their own")
	}
	return done, err
}

// dispatch reads the statement that begins with t.
func (p *parser) dispatch(t token) (done bool, err error) {
	switch word := p.word(t); {
	case t.kind == tokenParam:
		p.params++ // a syntax error, but counted
	case fold(word, "INSERT"), fold(word, "REPLACE"):
		return p.insert(t)
	case fold(word, "LOAD"):
		return p.load(t)
	case fold(word, "ANALYZE"), isExplain(word) && fold(p.word(p.peek()), "ANALYZE"):
		// ANALYZE [FORMAT=JSON] statement (MariaDB), EXPLAIN ANALYZE (TiDB): both
		// run the statement.
		return false, p.wrapped("ANALYZE of an INSERT runs it; run the INSERT by itself")
	case isExplain(word):
	case fold(word, "BEGIN") && p.beginsBlock(),
		fold(word, "IF"), fold(word, "CASE"), fold(word, "LOOP"), fold(word, "REPEAT"), fold(word, "WHILE"),
		fold(word, "FOR"), fold(word, "DECLARE"):
		// A compound statement of MariaDB goes on after its semicolons.
		return true, p.compound("an INSERT within a compound statement is not filled; run it by itself")
	case fold(word, "CREATE"), fold(word, "ALTER"):
		if p.storedProgram() {
			return false, p.skipProgram()
		}
	case fold(word, "WITH"):
		return false, p.wrapped("WITH before an INSERT is not understood")
	case !p.isKnown(t):
		if word := p.text[t.start:t.end]; mentionsInsert(word) && validPrefix(word) != word {
			p.doubt(t.start, "beside INSERT there are bytes that are no UTF-8")
		}
		return true, p.compound("the statement before the INSERT is not understood")
	}
	return p.skipStatement(), nil
}

// isKnown reports whether t begins a statement that runs no INSERT of its text.
func (p *parser) isKnown(t token) bool {
	switch t.kind {
	case tokenWord:
		_, letters := firstWord(p.text[:t.end], t.start)
		_, hold := verbClass(p.text[t.start:t.end], letters)
		return !hold || fold(p.word(t), "SET") || fold(p.word(t), "BEGIN")
	case tokenPunct:
		return p.text[t.start] == '('
	}
	return false
}

// skipStatement moves past the next semicolon, and reports whether the rest of
// the text cannot hold an insert: long texts are not read in vain.
func (p *parser) skipStatement() (done bool) {
	semicolon := strings.IndexByte(p.plan.text[p.pos:], ';')
	if semicolon < 0 || !p.mentioned(p.pos+semicolon) {
		// What is not read may be placeholders; they are not counted.
		p.unread = p.pos
		p.plan.Statements++
		return len(p.plan.Inserts) == 0 || p.countRest()
	}
	for {
		switch t := p.next(); {
		case t.kind == tokenEOF, t.kind == tokenBad, p.isPunct(t, ';'):
			return false
		case t.kind == tokenParam:
			p.params++
		}
	}
}

// mentioned reports whether INSERT or REPLACE occurs anywhere after a position.
// Positions only grow, so that the text is searched once.
func (p *parser) mentioned(from int) bool {
	if p.mention < from {
		p.mention = from + indexInsert(p.plan.text[from:])
	}
	return p.mention < len(p.plan.text)
}

// countRest counts the placeholders and statements after the last insert.
func (p *parser) countRest() bool {
	fresh := false
	for {
		t := p.next()
		switch {
		case t.kind == tokenEOF, t.kind == tokenBad:
			return true
		case p.isPunct(t, ';'):
			fresh = true
			continue
		case t.kind == tokenParam:
			p.params++
		}
		if fresh {
			p.plan.Statements++
			fresh = false
		}
	}
}

// wrapped refuses a statement that runs an insert into a ruled table.
func (p *parser) wrapped(reason string) error {
	for {
		switch u := p.next(); {
		case u.kind == tokenEOF, u.kind == tokenBad, p.isPunct(u, ';'):
			return nil
		case u.kind == tokenParam:
			p.params++
		case fold(p.word(u), "INSERT"), fold(p.word(u), "REPLACE"):
			in := &Insert{}
			ruled, err := p.target(u, in)
			if err != nil {
				return err
			}
			if ruled {
				return p.fail(u.start, in, reason)
			}
		}
	}
}

// compound refuses an insert into a ruled table anywhere in the rest of the
// text.
func (p *parser) compound(reason string) error {
	p.plan.Statements++
	for !p.atEnd() {
		if err := p.wrapped(reason); err != nil {
			return err
		}
	}
	return nil
}

// setStatement reads MariaDB's SET STATEMENT variable = value FOR, whose first
// word is set, and returns the first token of the statement that follows.
func (p *parser) setStatement(set token) (token, error) {
	depth := 0
	for {
		switch u := p.next(); {
		case u.kind == tokenEOF, u.kind == tokenBad, p.isPunct(u, ';'):
			// It is not understood: the server reports a syntax error unless it
			// knows better.
			saved := p.params
			p.rewind(set)
			err := p.wrapped("SET STATEMENT before the INSERT is not understood")
			p.params = saved
			return token{kind: tokenEOF, start: p.pos}, err
		case u.kind == tokenParam:
			p.params++
		case p.isPunct(u, '('):
			depth++
		case p.isPunct(u, ')'):
			depth--
		case depth == 0 && fold(p.word(u), "FOR"):
			if mentionsSQLMode(p.text[set.start:u.start]) {
				p.modeSet = true
			}
			return p.next(), nil
		}
	}
}

func isExplain(word string) bool {
	return fold(word, "EXPLAIN") || fold(word, "DESCRIBE") || fold(word, "DESC")
}

// beginsBlock reports whether t is BEGIN NOT ATOMIC or the BEGIN of MariaDB's Oracle
// mode, and not the BEGIN [WORK] of a transaction.
func (p *parser) beginsBlock() bool {
	t := p.peek()
	return t.kind == tokenWord && !fold(p.word(t), "WORK")
}

// storedProgram reports whether CREATE or ALTER is of a PROCEDURE, FUNCTION,
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

// skipProgram moves past a stored program's definition: past the first
// semicolon that is not within BEGIN … END or the like. What follows a
// definition with blocks can be distinguished from them only if no name is
// BEGIN or END, so nothing is filled there.
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
			p.afterProgram = true
		}
	}
}

// opensBlock reports whether t, after the token before, is a word that END ends.
func (p *parser) opensBlock(t, before token) bool {
	switch word := p.word(t); {
	case fold(word, "CASE"):
		return true
	case fold(word, "BEGIN"), fold(word, "IF"), fold(word, "LOOP"), fold(word, "REPEAT"), fold(word, "WHILE"), fold(word, "FOR"):
		return p.beginsStatement(before)
	}
	return false
}

// beginsStatement reports whether a statement of a program may follow the
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
