package rewrite

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
