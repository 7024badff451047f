package rewrite

import (
	"strings"
)

// The lexer finds the ends of comments, strings, identifiers, placeholders and brackets as MySQL
// and MariaDB do (MySQL manual, "Language Structure"; MariaDB, "Comment Syntax").

type tokenKind uint8

const (
	tokenEOF    tokenKind = iota
	tokenWord             // an identifier or keyword without quotes
	tokenQuoted           // a quoted identifier
	tokenString           // a string literal
	tokenNumber           // an integer, decimal, float, 0x… or 0b… literal
	tokenParam            // ?
	tokenPunct            // any other byte
	tokenBad              // an unterminated string, identifier or comment
)

type token struct {
	kind       tokenKind
	start, end int
}

type lexer struct {
	text    string
	pos     int
	mode    Mode
	charset Charset
	// cut: unreadable bytes follow.
	cut bool
	// executable: an executable comment was opened.
	executable bool
	// unsure is the reason why the servers may read the string differently from unsureAt on; empty
	// if they don't.
	unsure   string
	unsureAt int
	// consulted are the sql_mode bits that the tokens depended on.
	consulted Mode
	prev      token
}

// newLexer returns a lexer for the readable part of a string.
func newLexer(text string, mode Mode, charset Charset) lexer {
	lx := lexer{text: charset.readable(text), mode: mode, charset: charset}
	lx.cut = len(lx.text) < len(text)
	return lx
}

// doubt records that the servers may read the string differently, unless there is an earlier doubt.
func (lx *lexer) doubt(at int, reason string) {
	if lx.unsure == "" {
		lx.unsure, lx.unsureAt = reason, at
	}
}

// next returns the next token, skipping blanks and comments.
func (lx *lexer) next() token {
	if lx.prev = lx.scan(); lx.cut && lx.pos == len(lx.text) {
		lx.doubt(lx.pos, reasonOther)
	}
	return lx.prev
}

func (lx *lexer) scan() token {
	if bad := lx.skipBlanks(); bad >= 0 {
		lx.pos = len(lx.text)
		return token{tokenBad, bad, len(lx.text)}
	}
	start := lx.pos
	if lx.atEnd() {
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
		return lx.wordTo(wordEnd(lx.text, start))
	case c == '[':
		return lx.bracketed()
	}
	lx.pos++
	return token{tokenPunct, start, lx.pos}
}

// wordTo returns the word that ends at a position.
func (lx *lexer) wordTo(end int) token {
	start := lx.pos
	if lx.charset != CharsetUTF8 && !isASCII(lx.text[start:end]) {
		lx.doubt(start, reasonLatin1)
	}
	lx.pos = end
	return token{tokenWord, start, end}
}

// atEnd reports whether the string ends here. The servers accept a NUL at the end.
func (lx *lexer) atEnd() bool {
	rest := lx.text[lx.pos:]
	return rest == "" || rest == "\x00"
}

// bracketed reads a name in square brackets, for MariaDB's mode MSSQL.
func (lx *lexer) bracketed() token {
	lx.consulted |= MSSQL
	if lx.mode&MSSQL == 0 {
		lx.pos++
		return token{tokenPunct, lx.pos - 1, lx.pos}
	}
	return lx.quoted(']')
}

// peek returns the next token without consuming it.
func (lx *lexer) peek() token {
	saved := *lx
	t := lx.next()
	lx.restore(saved)
	return t
}

// restore returns to a saved position, but keeps recorded doubts and modes.
func (lx *lexer) restore(saved lexer) {
	saved.consulted = lx.consulted
	saved.executable, saved.unsure, saved.unsureAt = lx.executable, lx.unsure, lx.unsureAt
	*lx = saved
}

func (lx *lexer) quoted(quote byte) token {
	start := lx.pos
	end, ok := lx.skipQuoted(start, quote)
	lx.pos = end
	switch {
	case !ok:
		return token{tokenBad, start, end}
	case quote == '`', quote == ']', quote == '"' && lx.mode&ANSIQuotes != 0:
		return token{tokenQuoted, start, end}
	}
	return token{tokenString, start, end}
}

// skipQuoted returns the position after the string or identifier that begins at start and ends with
// quote. It reports whether there is an end.
func (lx *lexer) skipQuoted(start int, quote byte) (int, bool) {
	escapes := quote == '\''
	if quote == '"' {
		lx.consulted |= ANSIQuotes
		escapes = lx.mode&ANSIQuotes == 0
	}
	pos, end := start+1, -1 // end: the next quote at or after pos
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
		// A doubled quote is an escaped quote.
		pos = end + 1
		if pos == len(lx.text) || lx.text[pos] != quote {
			return pos, true
		}
		pos++
	}
}

// skipBlanks moves to the next byte that is neither blank nor comment. It returns −1, or the
// position of an unterminated comment.
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
	return -1
}

// reasonExecutable is the reason for refusing a statement with an executable comment. Whether the
// comment is part of it depends on the server and its version.
const reasonExecutable = "an executable comment (/*! or /*M!) is part of the INSERT on some servers only; " +
	"remove the comment"

// skipComment moves past the comment at pos, if there is one. For an executable comment it skips
// only the beginning and the end.
func (lx *lexer) skipComment() (skipped, ok bool) {
	rest := lx.text[lx.pos:]
	switch {
	case rest[0] == '#', lx.startsLine(rest):
		lx.skipLine()
		return true, true
	case lx.executable && strings.HasPrefix(rest, "*/"):
		lx.pos += len("*/")
		return true, true
	case strings.HasPrefix(rest, "/*!"), strings.HasPrefix(rest, "/*M!"):
		lx.executable = true
		lx.doubt(lx.pos, reasonExecutable)
		lx.pos += strings.IndexByte(rest, '!') + 1
		for n := 0; n < 6 && lx.pos < len(lx.text) && isDigit(lx.text[lx.pos]); n++ {
			lx.pos++ // a digit of the version
		}
		return true, true
	case strings.HasPrefix(rest, "/*"):
		end := strings.Index(rest[2:], "*/")
		lx.pos += 2 + end + 2
		return true, end >= 0
	}
	return false, true
}

// startsLine reports whether "--" begins a comment: a blank or a control character must follow.
func (lx *lexer) startsLine(rest string) bool {
	switch {
	case !strings.HasPrefix(rest, "--"):
		return false
	case len(rest) == 2 || rest[2] <= ' ' || rest[2] == 0x7f:
		return true
	case rest[2] >= 0x80 && lx.charset != CharsetUTF8:
		lx.doubt(lx.pos, reasonLatin1)
	}
	return false
}

func (lx *lexer) skipLine() {
	if end := strings.IndexByte(lx.text[lx.pos:], '\n'); end >= 0 {
		lx.pos += end + 1
	} else {
		lx.pos = len(lx.text)
	}
}

// dotStartsNumber reports whether a dot begins a number: as in ".5", but not in "t.5".
func (lx *lexer) dotStartsNumber() bool {
	afterName := (lx.prev.kind == tokenWord || lx.prev.kind == tokenQuoted) && lx.prev.end == lx.pos
	return !afterName && lx.pos+1 < len(lx.text) && isDigit(lx.text[lx.pos+1])
}

// number reads a number, or a word that begins with a digit: 12abc and 1e are names, 1e5 and 0x1F
// aren't. After a dot, all of them are names.
func (lx *lexer) number() token {
	start := lx.pos
	afterDot := lx.prev.kind == tokenPunct && lx.prev.end == start && lx.text[lx.prev.start] == '.'
	if end := numberEnd(lx.text, start); end > 0 && !afterDot {
		lx.pos = end
		return token{tokenNumber, start, end}
	}
	return lx.wordTo(wordEnd(lx.text, start))
}

// numberEnd returns the end of the number that begins at start, 0 if there is none.
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

// radixEnd returns the end of a 0x… or 0b… literal, 0 if there is none. 0X… is a name.
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

// exponentEnd returns the end of the exponent that begins at pos, 0 if there is none.
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
