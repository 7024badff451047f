package rewrite

import "strings"

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
