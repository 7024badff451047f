package rewrite

// ReadsCounts reports whether a text calls FOUND_ROWS() or ROW_COUNT(), which
// return counts of the session's previous statement: another one in between
// changes them.
func ReadsCounts(text string, mode Mode) bool {
	if !containsFold(text, "FOUND_ROWS") && !containsFold(text, "ROW_COUNT") {
		return false
	}
	p := &parser{lexer: lexer{text: text, mode: mode}, plan: &Plan{}}
	for {
		t := p.next()
		switch {
		case t.kind == tokenEOF, t.kind == tokenBad:
			return false
		case p.is(t, "FOUND_ROWS", "ROW_COUNT") && p.isPunct(p.peek(), '('):
			p.next()
			if p.isPunct(p.peek(), ')') {
				return true
			}
		}
	}
}
