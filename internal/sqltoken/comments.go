package sqltoken

import "strings"

// maxCommented is the maximum length of a statement that Commented examines, in bytes.
const maxCommented = 16 << 10

// Commented returns the place of a statement between comments in front of it and behind it, in which
// tools put trace IDs. Hints and executable comments are part of the statement. Without other
// comments it is the whole text.
//
// The end is certain only if [EndsWithToken] reports true for the statement.
func Commented(text string) (start, end int) {
	start, before := CommentsEnd(text)
	if start == len(text) || len(text) > maxCommented || !before && !mayEndInComment(text) {
		return 0, len(text)
	}
	lx := Lexer{Text: text, Pos: start}
	last := lx.Next()
	for t := last; t.Kind != EOF && t.Kind != Bad; t = lx.Next() {
		last = t
	}
	behind, after := CommentsEnd(text[last.End:])
	if !before && !after || last.End+behind < len(text) || lx.Unsure != "" || lx.IsPunct(last, ';') {
		return 0, len(text) // after a semicolon, perhaps of several statements
	}
	return start, last.End
}

func mayEndInComment(text string) bool {
	return strings.IndexByte(text, '#') >= 0 || strings.Contains(text, "/*") || strings.Contains(text, "--")
}

// CommentsEnd returns the position behind the blanks and plain comments at the beginning of a text, and
// whether there is a comment.
func CommentsEnd(text string) (pos int, commented bool) {
	for pos < len(text) {
		c := text[pos]
		if IsBlank(c) {
			pos++
			continue
		}
		if !IsComment(c) {
			break
		}
		size := commentSize(text[pos:])
		if size == 0 {
			break
		}
		pos, commented = pos+size, true
	}
	return pos, commented
}

// commentSize returns the size of the plain comment that a text begins with, 0 if it begins with none, or
// if the comment isn't terminated.
func commentSize(text string) int {
	switch {
	case isPlainComment(text):
		for at := len("/*/"); at < len(text); at++ {
			slash := strings.IndexByte(text[at:], '/')
			if slash < 0 {
				return 0
			}
			if at += slash; text[at-1] == '*' {
				return at + 1
			}
		}
	case beginsLine(text):
		if size := strings.IndexByte(text, '\n'); size >= 0 {
			return size + 1
		}
		return len(text)
	}
	return 0
}

// isPlainComment reports whether a text begins with a comment that is neither a hint nor executable.
func isPlainComment(text string) bool {
	return strings.HasPrefix(text, "/*") && !strings.HasPrefix(text, "/*!") && !strings.HasPrefix(text, "/*M!") && !strings.HasPrefix(text, "/*+")
}

// beginsLine reports whether a text begins with a comment to the end of the line.
func beginsLine(text string) bool {
	return strings.HasPrefix(text, "#") || len(text) > 2 && text[:2] == "--" && IsBlank(text[2])
}

// EndsWithToken reports whether a text ends outside of strings, quoted names and comments, so that
// what follows it is read by itself. always reports whether it does in each sql_mode and
// character set.
func EndsWithToken(text string, mode Mode, charset Charset) (ends, always bool) {
	lx := NewLexer(text, mode, charset)
	last := lx.Next()
	for t := last; t.Kind != EOF; t = lx.Next() {
		if last = t; t.Kind == Bad {
			return false, false
		}
	}
	ends = last.End == len(text) && lx.Unsure == "" && !lx.cut
	return ends, ends && lx.Consulted == 0 && IsASCII(text)
}
