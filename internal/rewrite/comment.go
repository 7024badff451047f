package rewrite

import "strings"

// reasonExecutable is why a statement with an executable comment isn't understood:
// whether the comment is part of it depends on the server and its version.
const reasonExecutable = "an executable comment (/*! or /*M!) is part of an INSERT on some servers only; " +
	"write the statement without it"

// skipComment moves past the comment that begins at pos, if there is one. An
// executable comment is read as text: only its opening and its end are skipped.
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
			lx.pos++ // the version
		}
		return true, true
	case strings.HasPrefix(rest, "/*"):
		end := strings.Index(rest[2:], "*/")
		lx.pos += 2 + end + 2
		return true, end >= 0
	}
	return false, true
}

// startsLine reports whether "--" begins a comment: it is followed by a blank
// or a control character.
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
