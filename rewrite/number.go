package rewrite

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
