package rewrite

import "strings"

// WithoutLiterals returns a text for logs: what stands for a value in it is a
// placeholder, as literals are other people's data, and comments are left out. opts
// say how the text is read; its Mode and Charset alone matter. What is longer than
// most bytes is cut, as is what follows a literal without its end: both end in "…".
func WithoutLiterals(text string, opts Options, most int) string {
	lx := newLexer(text, opts.Mode, opts.Charset)
	var b strings.Builder
	for end := 0; ; {
		t := lx.next()
		if t.kind == tokenEOF && len(lx.text) == len(text) {
			return strings.ToValidUTF8(b.String(), "\uFFFD")
		}
		if b.Len() > 0 && t.start > end {
			b.WriteByte(' ')
		}
		end = t.end
		if t.kind == tokenEOF || t.kind == tokenBad || b.Len()+t.end-t.start > most {
			return strings.ToValidUTF8(b.String(), "\uFFFD") + "…"
		}
		switch t.kind {
		case tokenString, tokenNumber:
			b.WriteByte('?')
		default:
			b.WriteString(text[t.start:t.end])
		}
	}
}
