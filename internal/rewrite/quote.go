package rewrite

import "strings"

func unquoteIdentifier(s string) string {
	quote := s[len(s)-1:]
	return strings.ReplaceAll(s[1:len(s)-1], quote+quote, quote)
}

// unquoteString returns the contents of a string literal (MySQL manual, "String
// Literals").
func unquoteString(s string, mode Mode) string {
	quote, body := s[0], s[1:len(s)-1]
	if strings.IndexByte(body, quote) < 0 && strings.IndexByte(body, '\\') < 0 {
		return body
	}
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		case c == quote:
			i++ // doubled
		case c == '\\' && mode&NoBackslashEscapes == 0 && i+1 < len(body):
			i++
			switch body[i] {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'r':
				c = '\r'
			case 'b':
				c = '\b'
			case '0':
				c = 0
			case 'Z':
				c = 0x1a
			case '%', '_': // for LIKE, which reads the backslash itself
				b.WriteByte('\\')
				c = body[i]
			default:
				c = body[i]
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}
