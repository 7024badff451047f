package sqltoken

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns a name, or other text that a user of a server chose, for output outside of quotes.
// With characters that aren't printable, such as line feeds and the control sequences of terminals,
// it is quoted as in Go.
func Printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	return strconv.Quote(text)
}

// SameName reports whether two names of columns may be the same to a server. certain is false if
// servers differ. All of them ignore the case of ASCII and of most European letters. Beyond that,
// they were found to differ in columns of a derived table: MySQL 9.7 takes İ for i and K (Kelvin)
// for k, MariaDB 11.8 takes ı for i and ſ for s, and MariaDB 10.11 does none of this.
func SameName(a, b string) (same, certain bool) {
	certain = true
	for a != "" && b != "" {
		x, width := utf8.DecodeRuneInString(a)
		y, height := utf8.DecodeRuneInString(b)
		if x == utf8.RuneError && width == 1 || y == utf8.RuneError && height == 1 {
			return true, false // MySQL drops invalid bytes at the end of a name
		}
		if x != y {
			if foldRune(x) != foldRune(y) {
				return false, true
			}
			certain = certain && isCased(x) && isCased(y)
		}
		a, b = a[width:], b[height:]
	}
	if rest := a + b; rest != "" {
		r, width := utf8.DecodeRuneInString(rest)
		return r == utf8.RuneError && width == 1, false
	}
	return true, certain
}

// FoldName returns the name with which all names are the same that [SameName] takes for the same.
func FoldName(name string) string { return strings.Map(foldRune, name) }

func foldRune(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		if r >= 'A' && r <= 'Z' {
			r |= 0x20
		}
		return r
	case r == 'İ', r == 'ı':
		return 'i'
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// isCased reports whether all servers ignore the case of a letter.
func isCased(r rune) bool {
	switch {
	case r == 'İ', r == 'ı', r == 'ſ', r == 'µ', r == 'ß':
		return false
	}
	return r <= 'ž' || r >= 'Ά' && r <= 'ώ' || r >= 'Ѐ' && r <= 'џ'
}
