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
	if len(text) > maxCommented {
		return 0, len(text)
	}
	if start = leadingComments(text); start == len(text) {
		return 0, len(text)
	}
	end = len(text)
	for {
		next := trailingComment(text[start:end])
		switch {
		case next >= 0:
			end = start + next
		case text[end-1] == ';':
			return 0, len(text) // perhaps of several statements
		default:
			return start, end
		}
	}
}

// leadingComments returns the position behind the comments in front of a statement, 0 for none.
func leadingComments(text string) (start int) {
	for pos := 0; ; {
		for pos < len(text) && IsBlank(text[pos]) {
			pos++
		}
		rest := text[pos:]
		size := 0
		switch {
		case isPlainComment(rest):
			size = strings.Index(rest[2:], "*/") + len("/**/")
			if size < len("/**/") {
				return start // unterminated
			}
		case beginsLine(rest):
			size = strings.IndexByte(rest, '\n') + 1
		}
		if size == 0 {
			if start > 0 {
				start = pos // without the blanks behind a comment
			}
			return start
		}
		pos += size
		start = pos
	}
}

// trailingComment returns the position of the comment at the end of a text, or of the blanks in front
// of it. It returns -1 if there is none.
func trailingComment(text string) int {
	text = trimBlanks(text)
	begin := -1
	if strings.HasSuffix(text, "*/") {
		begin = lastOpening(text[:len(text)-len("*/")])
		if begin < 0 || !isPlainComment(text[begin:]) || strings.Index(text[begin+2:], "*/")+len("/**/") != len(text)-begin {
			return -1
		}
	} else {
		line := strings.LastIndexByte(text, '\n') + 1
		for i := line; i < len(text) && begin < 0; i++ {
			if (text[i] == '#' || text[i] == '-') && beginsLine(text[i:]) {
				begin = i
			}
		}
	}
	if begin <= 0 {
		return -1
	}
	return len(trimBlanks(text[:begin]))
}

// lastOpening returns the position of the last beginning of a comment, -1 for none. It is
// strings.LastIndex, which is slower for a short separator.
func lastOpening(text string) int {
	for end := len(text); end > 0; {
		slash := strings.LastIndexByte(text[:end], '/')
		if slash < 0 || strings.HasPrefix(text[slash:], "/*") {
			return slash
		}
		end = slash
	}
	return -1
}

// isPlainComment reports whether a text begins with a comment that is neither a hint nor executable.
func isPlainComment(text string) bool {
	return strings.HasPrefix(text, "/*") && !strings.HasPrefix(text, "/*!") && !strings.HasPrefix(text, "/*M!") && !strings.HasPrefix(text, "/*+")
}

// beginsLine reports whether a text begins with a comment to the end of the line.
func beginsLine(text string) bool {
	return strings.HasPrefix(text, "#") || len(text) > 2 && text[:2] == "--" && IsBlank(text[2])
}

func trimBlanks(text string) string {
	end := len(text)
	for end > 0 && IsBlank(text[end-1]) {
		end--
	}
	return text[:end]
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
