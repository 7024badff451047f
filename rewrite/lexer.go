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
	consulted, executable := lx.consulted, lx.executable
	*lx = saved
	lx.consulted |= consulted
	lx.executable = lx.executable || executable
	return t
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
// past its end.
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
	if opening == 0 || lx.inside {
		end := strings.Index(rest[2:], "*/")
		if end < 0 {
			return false, false
		}
		lx.pos += 2 + end + 2
		return true, true
	}
	lx.executable = true
	if lx.execute {
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

// dotStartsNumber: ".5" is a number, but not in "t.5".
func (lx *lexer) dotStartsNumber() bool {
	afterName := (lx.prev.kind == tokenWord || lx.prev.kind == tokenQuoted) && lx.prev.end == lx.pos
	return !afterName && lx.pos+1 < len(lx.text) && isDigit(lx.text[lx.pos+1])
}

// number reads a number, or a word that begins with a digit.
func (lx *lexer) number() token {
	start := lx.pos
	end := wordEnd(lx.text, start)
	word := lx.text[start:end]
	afterDot := lx.prev.kind == tokenPunct && lx.prev.end == start && lx.text[lx.prev.start] == '.'
	if afterDot || !numberStart(word) {
		lx.pos = end
		return token{tokenWord, start, end}
	}
	if digitsOnly(word) && end < len(lx.text) && lx.text[end] == '.' {
		end = wordEnd(lx.text, end+1)
	}
	// The sign of an exponent: 1e+5.
	if last := lx.text[end-1]; (last == 'e' || last == 'E') && !strings.HasPrefix(word, "0x") &&
		end+1 < len(lx.text) && (lx.text[end] == '+' || lx.text[end] == '-') && isDigit(lx.text[end+1]) {
		end = wordEnd(lx.text, end+1)
	}
	lx.pos = end
	return token{tokenNumber, start, end}
}

// numberStart tells numbers (12, 0x1F, 0b01, 1e5) from names (12abc).
func numberStart(word string) bool {
	if len(word) > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'b') {
		digits := "01"
		if word[1] == 'x' {
			digits = "0123456789abcdefABCDEF"
		}
		return strings.Trim(word[2:], digits) == ""
	}
	digits := len(word) - len(strings.TrimLeft(word, "0123456789"))
	rest := word[digits:]
	return rest == "" || (rest[0] == 'e' || rest[0] == 'E') && digitsOnly(rest[1:])
}

func digitsOnly(s string) bool { return strings.Trim(s, "0123456789") == "" }

func wordEnd(text string, pos int) int {
	for pos < len(text) && isWordByte(text[pos]) {
		pos++
	}
	return pos
}

// Classes of bytes.
const (
	classWord    = 1 << iota // may stand in an unquoted identifier
	classBlank               // white space
	classComment             // may begin or end a comment
	classValue               // means something within a row of values
)

var class = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '$', c >= 0x80:
			t[c] |= classWord
		case c == ' ', c >= '\t' && c <= '\r':
			t[c] |= classBlank
		}
	}
	for _, c := range []byte("#-/*") {
		t[c] |= classComment | classValue
	}
	for _, c := range []byte("'\"`(),;?@") {
		t[c] |= classValue
	}
	return t
}()

func isWordByte(c byte) bool { return class[c]&classWord != 0 }
func isBlank(c byte) bool    { return class[c]&classBlank != 0 }
func isDigit(c byte) bool    { return c >= '0' && c <= '9' }
