package rewrite

import "strings"

// The lexer reads text as MySQL and MariaDB do (MySQL manual, "Language
// Structure"; MariaDB, "Comment Syntax"), as far as it matters for finding the
// ends of things: comments, strings, identifiers, placeholders, brackets.

type tokenKind uint8

const (
	tokenEOF    tokenKind = iota
	tokenWord             // an identifier or keyword without quotes
	tokenQuoted           // a quoted identifier
	tokenString           // a string literal
	tokenNumber           // an integer, decimal, float, 0x… or 0b… literal
	tokenParam            // ?
	tokenPunct            // any other byte
	tokenBad              // a string, identifier or comment without its end
)

type token struct {
	kind       tokenKind
	start, end int
}

type lexer struct {
	text string
	pos  int
	mode Mode
	// execute: the contents of /*! … */ comments count as text.
	execute bool
	// inside: pos is within an executable comment.
	inside bool
	// nested: there was an executable comment within another.
	nested bool
	// executable: there was an executable comment.
	executable bool
	// consulted are the modes that the reading depended on.
	consulted Mode
	prev      token
}

// next returns the next token, skipping blanks and comments.
func (lx *lexer) next() token {
	lx.prev = lx.scan()
	return lx.prev
}

func (lx *lexer) scan() token {
	if bad := lx.skipBlanks(); bad >= 0 {
		lx.pos = len(lx.text)
		return token{tokenBad, bad, len(lx.text)}
	}
	start := lx.pos
	if start == len(lx.text) {
		return token{tokenEOF, start, start}
	}
	switch c := lx.text[start]; {
	case c == '\'' || c == '"' || c == '`':
		return lx.quoted(c)
	case c == '?':
		lx.pos++
		return token{tokenParam, start, lx.pos}
	case isDigit(c), c == '.' && lx.dotStartsNumber():
		return lx.number()
	case isWordByte(c):
		lx.pos = wordEnd(lx.text, start)
		return token{tokenWord, start, lx.pos}
	}
	lx.pos++
	return token{tokenPunct, start, lx.pos}
}

// peek returns the token after the present one without taking it.
func (lx *lexer) peek() token {
	saved := *lx
	t := lx.next()
	lx.restore(saved)
	return t
}

// restore goes back to where the lexer was, and keeps what it has learnt.
func (lx *lexer) restore(saved lexer) {
	saved.consulted |= lx.consulted
	saved.executable = saved.executable || lx.executable
	saved.nested = saved.nested || lx.nested
	*lx = saved
}

func (lx *lexer) quoted(quote byte) token {
	start := lx.pos
	end, ok := lx.skipQuoted(start, quote)
	lx.pos = end
	switch {
	case !ok:
		return token{tokenBad, start, end}
	case quote == '`', quote == '"' && lx.mode&ANSIQuotes != 0:
		return token{tokenQuoted, start, end}
	}
	return token{tokenString, start, end}
}

// skipQuoted returns the position behind the string or identifier that begins
// with quote at start, and whether it has an end.
func (lx *lexer) skipQuoted(start int, quote byte) (int, bool) {
	escapes := quote != '`'
	if quote == '"' {
		lx.consulted |= ANSIQuotes
		escapes = lx.mode&ANSIQuotes == 0
	}
	pos, end := start+1, -1 // end: the next quote at or behind pos
	for {
		if end < pos {
			next := strings.IndexByte(lx.text[min(pos, len(lx.text)):], quote)
			if next < 0 {
				if escapes && strings.IndexByte(lx.text[min(pos, len(lx.text)):], '\\') >= 0 {
					lx.consulted |= NoBackslashEscapes
				}
				return len(lx.text), false
			}
			end = pos + next
		}
		if escapes {
			if slash := strings.IndexByte(lx.text[pos:end], '\\'); slash >= 0 {
				lx.consulted |= NoBackslashEscapes
				if lx.mode&NoBackslashEscapes == 0 {
					pos += slash + 2
					continue
				}
			}
		}
		// A doubled quote stands for itself.
		pos = end + 1
		if pos == len(lx.text) || lx.text[pos] != quote {
			return pos, true
		}
		pos++
	}
}
