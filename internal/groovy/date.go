package groovy

import "strings"

// DateLayout turns a date pattern of Java into a layout of Go's: yyyy (or uuuu),
// yy, MM, dd, HH, mm, ss, SSS after a point, texts in quotes and punctuation. ok
// is false for other letters, and for letters that mean more than their number of
// digits.
func DateLayout(pattern string) (layout string, ok bool) {
	var b strings.Builder
	for rest := pattern; rest != ""; {
		c := rest[0]
		n := len(rest) - len(strings.TrimLeft(rest, string(c)))
		switch {
		case c == '\'':
			text, after, closed := strings.Cut(rest[1:], "'")
			if !closed || text == "" || strings.ContainsAny(text, "0123456789_") || hasLayout(text) {
				return "", false
			}
			b.WriteString(text)
			rest = after
			continue
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			part, known := dateParts[rest[:n]]
			if !known || part[0] == '0' && c == 'S' && !strings.HasSuffix(b.String(), ".") && !strings.HasSuffix(b.String(), ",") {
				return "", false
			}
			b.WriteString(part)
		case c >= 0x80 || c == '_' || strings.IndexByte(" -/.:,", c) >= 0:
			b.WriteString(rest[:n])
		default:
			return "", false
		}
		rest = rest[n:]
	}
	return b.String(), true
}

var dateParts = map[string]string{"yyyy": "2006", "uuuu": "2006", "yy": "06", "MM": "01", "dd": "02", "HH": "15", "mm": "04", "ss": "05", "SSS": "000", "SSSSSS": "000000"}

// hasLayout reports whether a text has a word in it that a layout would replace.
func hasLayout(text string) bool {
	for _, word := range []string{"Jan", "Mon", "MST", "PM", "pm", "Z"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
