package rewrite

import (
	"strings"
)

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

// skipBlanks moves to the next byte that is neither blank nor comment. It
// returns −1, or where a comment without end begins.
func (lx *lexer) skipBlanks() (unterminated int) {
	for lx.pos < len(lx.text) {
		c := lx.text[lx.pos]
		if isBlank(c) {
			lx.pos++
			continue
		}
		if class[c]&classComment == 0 {
			break
		}
		at := lx.pos
		skipped, ok := lx.skipComment()
		if !ok {
			return at
		}
		if !skipped {
			break
		}
	}
	if lx.inside && lx.pos == len(lx.text) {
		return lx.pos
	}
	return -1
}

// skipComment moves past the comment that begins at pos, if one does. For an
// executable comment that counts as text it moves past its opening, and later
// past its end. Within an executable comment the servers execute another one,
// and the first "*/" ends both.
func (lx *lexer) skipComment() (skipped, ok bool) {
	rest := lx.text[lx.pos:]
	switch rest[0] {
	case '#':
		lx.skipLine()
		return true, true
	case '-':
		if !strings.HasPrefix(rest, "--") || len(rest) > 2 && rest[2] > ' ' && rest[2] != 0x7f {
			return false, true
		}
		lx.skipLine()
		return true, true
	case '*':
		if !lx.inside || !strings.HasPrefix(rest, "*/") {
			return false, true
		}
		lx.inside = false
		lx.pos += 2
		return true, true
	case '/':
		if !strings.HasPrefix(rest, "/*") {
			return false, true
		}
	}
	opening := executableOpening(rest)
	if opening == 0 {
		end := strings.Index(rest[2:], "*/")
		if end < 0 {
			return false, false
		}
		lx.pos += 2 + end + 2
		return true, true
	}
	lx.executable = true
	if lx.execute {
		lx.nested = lx.nested || lx.inside
		lx.inside = true
		lx.pos += opening
		return true, true
	}
	return true, lx.skipExecutable(rest[opening:], opening)
}

// skipExecutable moves past an executable comment, which may hold plain ones.
func (lx *lexer) skipExecutable(body string, opening int) bool {
	for i := 0; i+1 < len(body); i++ {
		switch body[i : i+2] {
		case "*/":
			lx.pos += opening + i + 2
			return true
		case "/*":
			end := strings.Index(body[i+2:], "*/")
			if end < 0 {
				return false
			}
			i += 2 + end + 1
		}
	}
	return false
}

// executableOpening is the length of the "/*!80000" that s begins with, 0 for
// an ordinary comment. MariaDB also has "/*M!".
func executableOpening(s string) int {
	n := 0
	switch {
	case strings.HasPrefix(s, "/*!"):
		n = 3
	case strings.HasPrefix(s, "/*M!"):
		n = 4
	default:
		return 0
	}
	digits := 0
	for n+digits < len(s) && digits < 6 && isDigit(s[n+digits]) {
		digits++
	}
	if digits >= 5 {
		n += digits
	}
	return n
}

func (lx *lexer) skipLine() {
	if end := strings.IndexByte(lx.text[lx.pos:], '\n'); end >= 0 {
		lx.pos += end + 1
	} else {
		lx.pos = len(lx.text)
	}
}

// dotStartsNumber: ".5" is a number, but not in "t.5".
func (lx *lexer) dotStartsNumber() bool {
	afterName := (lx.prev.kind == tokenWord || lx.prev.kind == tokenQuoted) && lx.prev.end == lx.pos
	return !afterName && lx.pos+1 < len(lx.text) && isDigit(lx.text[lx.pos+1])
}

// number reads a number, or a word that begins with a digit: 12abc and 1e are
// names, 1e5 and 0x1F are not, and behind a dot all are.
func (lx *lexer) number() token {
	start := lx.pos
	afterDot := lx.prev.kind == tokenPunct && lx.prev.end == start && lx.text[lx.prev.start] == '.'
	if end := numberEnd(lx.text, start); end > 0 && !afterDot {
		lx.pos = end
		return token{tokenNumber, start, end}
	}
	lx.pos = wordEnd(lx.text, start)
	return token{tokenWord, start, lx.pos}
}

// numberEnd is the end of the number that begins at start, 0 when it is none.
func numberEnd(text string, start int) int {
	if end := radixEnd(text, start); end > 0 {
		return end
	}
	end := digitsEnd(text, start)
	if end < len(text) && text[end] == '.' {
		end = digitsEnd(text, end+1)
		return max(end, exponentEnd(text, end))
	}
	if end == len(text) || !isWordByte(text[end]) {
		return end
	}
	return exponentEnd(text, end)
}

// radixEnd is the end of a 0x… or 0b… literal, 0 when there is none. 0X… is a
// name.
func radixEnd(text string, start int) int {
	end := wordEnd(text, start)
	if end-start < 3 || text[start] != '0' || text[start+1] != 'x' && text[start+1] != 'b' {
		return 0
	}
	for _, c := range []byte(text[start+2 : end]) {
		isHex := isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f'
		if text[start+1] == 'x' && !isHex || text[start+1] == 'b' && c != '0' && c != '1' {
			return 0
		}
	}
	return end
}

// exponentEnd is the end of the exponent that begins at pos, 0 for none.
func exponentEnd(text string, pos int) int {
	if pos == len(text) || text[pos]|0x20 != 'e' {
		return 0
	}
	if pos++; pos < len(text) && (text[pos] == '+' || text[pos] == '-') {
		pos++
	}
	if end := digitsEnd(text, pos); end > pos {
		return end
	}
	return 0
}

func digitsEnd(text string, pos int) int {
	for pos < len(text) && isDigit(text[pos]) {
		pos++
	}
	return pos
}

// Mode is the part of a session's sql_mode that decides how a text is read.
type Mode uint8

const (
	// ANSIQuotes: "x" is an identifier, not a string.
	ANSIQuotes Mode = 1 << iota
	// NoBackslashEscapes: a backslash in a string is a backslash.
	NoBackslashEscapes
	// NoAutoValueOnZero: 0 is a key like any other, only NULL asks for one.
	NoAutoValueOnZero
)

// ParseMode reads the value of @@sql_mode. Combination modes arrive spelled
// out, because the server expands them.
func ParseMode(sqlMode string) Mode {
	var m Mode
	for word := range strings.SplitSeq(sqlMode, ",") {
		switch strings.ToUpper(strings.TrimSpace(word)) {
		case "ANSI_QUOTES", "ANSI":
			m |= ANSIQuotes
		case "NO_BACKSLASH_ESCAPES":
			m |= NoBackslashEscapes
		case "NO_AUTO_VALUE_ON_ZERO":
			m |= NoAutoValueOnZero
		}
	}
	return m
}
