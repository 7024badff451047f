package sqltoken

import "strings"

// Near returns the first few words of text for an error.
func Near(text string, mode Mode, charset Charset) string {
	const most = 60
	if s := WithoutLiterals(text, mode, charset, most); s != "" {
		return `"` + s + `"`
	}
	return "the end of the statement"
}

// WithoutLiterals returns a statement for logs, with placeholders instead of literals and without
// comments. Literals may be confidential. The session's mode and charset determine how text is
// parsed. A result of more than most bytes is truncated, as is the rest after an unterminated
// literal; "…" marks both.
func WithoutLiterals(text string, mode Mode, charset Charset, most int) string {
	lx := NewLexer(text, mode, charset)
	var b strings.Builder
	for end := 0; ; {
		t := lx.Next()
		if t.Kind == EOF && len(lx.Text) == len(text) {
			break
		}
		if b.Len() > 0 && t.Start > end {
			b.WriteByte(' ')
		}
		end = t.End
		if t.Kind == EOF || t.Kind == Bad || b.Len()+t.End-t.Start > most {
			b.WriteString("…")
			break
		}
		switch t.Kind {
		case String, Number:
			b.WriteByte('?')
		default:
			b.WriteString(text[t.Start:t.End])
		}
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// Position returns the line of an offset and the byte in the line, both from 1.
func Position(text string, offset int) (line, column int) {
	before := text[:offset]
	return 1 + strings.Count(before, "\n"), offset - strings.LastIndexByte(before, '\n')
}
