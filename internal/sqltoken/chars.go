package sqltoken

import (
	"strings"
	"unicode/utf8"
)

// Classes of bytes.
const (
	classWord    = 1 << iota // part of an unquoted identifier
	classBlank               // white space
	classComment             // may begin or end a comment
	classVerb                // begins INSERT, REPLACE or LOAD
	classLetter              // of ASCII
	classSign                // may belong to a word that matters to a session; see Scan
)

var class = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '$', c >= 0x80:
			t[c] = classWord
		case c == ' ', c >= '\t' && c <= '\r':
			t[c] = classBlank
		}
	}
	for _, c := range []byte("#-/*") {
		t[c] = classComment
	}
	for _, c := range []byte("iIrRlL") {
		t[c] |= classVerb
	}
	for c := byte('a'); c <= 'z'; c++ {
		t[c] |= classLetter
		t[c&^0x20] |= classLetter
	}
	for c := range t {
		if c >= 0x80 || strings.IndexByte("_.@;", byte(c)) >= 0 {
			t[c] |= classSign
		}
	}
	return t
}()

// asciiValue are the bytes that are significant in a row of values.
var asciiValue = func() (t [256]bool) {
	for _, c := range []byte("#-/*'\"`[(),;?@") {
		t[c] = true
	}
	return t
}()

// latin1Values is asciiValue for character sets in which a byte above 0x7F may be a blank.
var latin1Values = func() [256]bool {
	t := asciiValue
	for c := 0x80; c < len(t); c++ {
		t[c] = true
	}
	return t
}()

// ValueBytes returns the bytes that are significant in a row of values.
func (c Charset) ValueBytes() *[256]bool {
	if c == UTF8 {
		return &asciiValue
	}
	return &latin1Values
}

// IsWordByte reports whether an unquoted identifier may contain the byte.
func IsWordByte(c byte) bool { return class[c]&classWord != 0 }

// IsBlank reports whether the byte is white space.
func IsBlank(c byte) bool { return class[c]&classBlank != 0 }

// IsComment reports whether the byte may begin or end a comment.
func IsComment(c byte) bool { return class[c]&classComment != 0 }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// Contains reports whether text contains an upper-case ASCII word, ignoring case.
func Contains(text, upper string) bool { return indexFold(text, upper) < len(text) }

// indexFold returns the position of the word, ignoring case, or the string's length. It searches for
// the word's first byte that isn't a letter, if there is one, since that is faster.
func indexFold(text, upper string) int {
	for at := range len(upper) {
		if c := upper[at]; c < 'A' || c > 'Z' {
			return indexFoldAt(text, upper, at)
		}
	}
	for i := 0; i+len(upper) <= len(text); i++ {
		if hasFold(text[i:], upper) {
			return i
		}
	}
	return len(text)
}

// indexFoldAt is indexFold for a word whose byte at an index isn't a letter.
func indexFoldAt(text, upper string, at int) int {
	for pos := at; pos < len(text); pos++ {
		next := strings.IndexByte(text[pos:], upper[at])
		if next < 0 {
			break
		}
		if pos += next; hasFold(text[pos-at:], upper) {
			return pos - at
		}
	}
	return len(text)
}

// Is reports whether a word equals one of these upper-case ASCII words, ignoring case.
func Is(word string, upper ...string) bool {
	for _, u := range upper {
		if len(word) == len(u) && hasFold(word, u) {
			return true
		}
	}
	return false
}

// hasFold reports whether a string begins with an upper-case ASCII word, ignoring case. Usually the
// first byte decides.
func hasFold(text, upper string) bool {
	return len(text) >= len(upper) && (text[0]^upper[0])&^0x20 == 0 && equalFold(text[:len(upper)], upper)
}

func equalFold(word, upper string) bool {
	for i := range len(upper) {
		c := word[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != upper[i] {
			return false
		}
	}
	return true
}

// WordEnd returns the end of the word at a position.
func WordEnd(text string, pos int) int {
	for pos < len(text) && IsWordByte(text[pos]) {
		pos++
	}
	return pos
}

// ValidPrefix returns a name up to the first invalid byte. MySQL drops such a byte at the end of a
// name.
func ValidPrefix(name string) string {
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && size == 1 {
			return name[:i]
		}
		i += size
	}
	return name
}

// IsASCII reports whether all bytes of a string are below 0x80.
func IsASCII(s string) bool { return asciiEnd(s) == len(s) }

// asciiEnd returns the position of the first byte above 0x7F, or the length.
func asciiEnd(s string) int {
	i := 0
	for ; len(s)-i >= 32; i += 32 { // strings can be long
		if (word64(s[i:])|word64(s[i+8:])|word64(s[i+16:])|word64(s[i+24:]))&0x8080808080808080 != 0 {
			break
		}
	}
	for ; i < len(s) && s[i] < utf8.RuneSelf; i++ {
	}
	return i
}

// word64 returns the first eight bytes of a string, which the compiler loads at once.
func word64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
