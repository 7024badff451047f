package rewrite

import (
	"errors"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// ErrSeveralStatements is in the chain of the error for a string of several statements of which one
// may need a key. [Split] returns them one by one.
var ErrSeveralStatements = errors.New("shardkey: the string has several statements")

// Split returns the first statement of a string, without its semicolon, and the rest of the string,
// without the blanks before it. The rest is empty if only blanks and semicolons follow. Semicolons in strings, comments, stored
// programs and compound statements end no statement.
//
// The first statement may change how the rest is read, for example SET sql_mode. Execute it before
// you split the rest with the session's new sql_mode and character set.
//
// Split returns a [*StatementError] if the servers may disagree about the statement's end, and the
// string may insert into a sharded table. Otherwise it returns such a string whole.
func Split(query string, opts Options) (statement, rest string, err error) {
	p := newParser(query, opts)
	p.ExecutableIsBlank = true
	if certain := p.skip(p.Next()); p.Unsure == "" && !certain {
		p.Doubt(p.Prev.Start, "the end of a compound statement is uncertain; send the statements one by one")
	}
	switch {
	case p.Unsure != "":
		if table := p.mayInsertInto(query); table != "" {
			return "", "", p.fail(p.UnsureAt, &Insert{Name: table}, p.Unsure)
		}
	case p.IsPunct(p.Prev, ';'):
		if rest = strings.TrimLeft(query[p.Pos:], blanks); isEmpty(rest) {
			rest = ""
		}
		return query[:p.Prev.Start], rest, nil
	}
	return query, "", nil
}

const blanks = " \t\n\v\f\r"

// isEmpty reports whether a string has no statement. The servers strip such bytes from its end. It
// reads from the end, since a string may have many empty statements in front of another.
func isEmpty(text string) bool { return strings.TrimRight(text, blanks+";\x00") == "" }

// skip moves past the statement that begins with t, to its semicolon or the end of the string. It
// reports whether that is certainly its end.
func (p *parser) skip(t sqltoken.Token) (certain bool) {
	switch {
	case p.EndsStatement(t):
		return true
	case p.Is(t, "DECLARE"): // a block of MariaDB's Oracle mode
		p.Pos = len(p.Text)
		p.Next()
		return false
	case p.storedProgram(t), p.isLabel(t):
		return p.skipBlocks(0)
	case p.beginsCompound(t):
		return p.skipBlocks(1)
	}
	for depth := 0; !p.EndsStatement(p.take(&depth)); {
	}
	return true
}

// beginsCompound reports whether t begins a compound statement of MariaDB, which continues after its
// semicolons. BEGIN [WORK] of a transaction doesn't; BEGIN NOT ATOMIC and the BEGIN of MariaDB's
// Oracle mode do.
func (p *parser) beginsCompound(t sqltoken.Token) bool {
	if p.Is(t, "BEGIN") {
		next := p.Peek()
		return next.Kind == sqltoken.Word && !p.Is(next, "WORK")
	}
	return p.isLabel(t) || p.Is(t, "IF", "CASE", "LOOP", "REPEAT", "WHILE", "FOR", "DECLARE")
}

// isLabel reports whether t is the label of a compound statement.
func (p *parser) isLabel(t sqltoken.Token) bool {
	return (t.Kind == sqltoken.Word || t.Kind == sqltoken.Quoted) && p.IsPunct(p.Peek(), ':')
}

// storedProgram reports whether t begins a CREATE or ALTER of a PROCEDURE, FUNCTION, TRIGGER, EVENT
// or PACKAGE. This session doesn't execute their bodies.
func (p *parser) storedProgram(t sqltoken.Token) bool {
	if !p.Is(t, "CREATE", "ALTER") {
		return false
	}
	defer p.LookAhead()()
	for range 16 {
		t := p.Next()
		switch word := p.Keyword(t); {
		case sqltoken.Is(word, "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"):
			return true
		case p.EndsStatement(t), p.IsPunct(t, '('), sqltoken.Is(word, "TABLE"):
			return false
		}
	}
	return false
}

// skipBlocks moves to the first semicolon outside of BEGIN … END and similar blocks, of which depth
// are open. It reports whether all of them have an end.
func (p *parser) skipBlocks(depth int) (certain bool) {
	returns := false // the type of a function, and then perhaps its body, follow
	for {
		before := p.Prev
		t := p.Next()
		returns = p.Is(t, "RETURNS") || returns && depth == 0 && !p.Is(t, "RETURN")
		switch {
		case t.Kind == sqltoken.EOF, t.Kind == sqltoken.Bad:
			return depth <= 0
		case p.IsPunct(t, ';') && depth <= 0:
			return true
		case p.Is(t, "END") && !p.Is(before, "AS"):
			depth--
			if p.opensBlock(p.Peek(), p.Prev, false) {
				p.Next() // END IF
			}
		case p.opensBlock(t, before, returns):
			depth++
		}
	}
}

// opensBlock reports whether t is a word that needs an END. before is the token before t. begins
// reports whether a statement may follow any token. In a stored program, BEGIN isn't the beginning
// of a transaction (MySQL manual, "START TRANSACTION").
func (p *parser) opensBlock(t, before sqltoken.Token, begins bool) bool {
	switch {
	case p.Is(t, "CASE"):
		return true
	case p.Is(t, "BEGIN"):
		return p.beginsStatement(before) || before.Kind != sqltoken.Punct && !p.isName(t, before)
	case p.Is(t, "FOR") && p.locks(t):
		return false
	}
	return p.Is(t, "IF", "LOOP", "REPEAT", "WHILE", "FOR") && (begins || p.beginsStatement(before))
}

// isName reports whether the BEGIN in t is a name, or the verb of XA BEGIN.
func (p *parser) isName(t, before sqltoken.Token) bool {
	defer p.LookAhead()()
	p.Pos = t.End
	next := p.Next()
	return p.Is(before, "XA") || next.Kind == sqltoken.Punct || p.Is(next, "FROM", "AS", "INTO", "IS", "AND", "OR")
}

// locks reports whether the FOR in t begins FOR UPDATE or FOR SHARE.
func (p *parser) locks(t sqltoken.Token) bool {
	defer p.LookAhead()()
	p.Pos = t.End
	return p.Is(p.Next(), "UPDATE", "SHARE")
}

// beginsStatement reports whether a statement of a stored program may follow the token before.
func (p *parser) beginsStatement(before sqltoken.Token) bool {
	return p.Is(before, "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT", "ROW", "END", "ATOMIC") ||
		p.Is(before, "SQLEXCEPTION", "SQLWARNING", "FOUND") || // conditions of a handler
		p.Is(before, "DETERMINISTIC", "SQL", "DATA", "INVOKER", "DEFINER") || // characteristics of a routine
		before.Kind == sqltoken.String || p.IsPunct(before, ';') || p.IsPunct(before, ')') || p.IsPunct(before, ':')
}
