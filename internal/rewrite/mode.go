package rewrite

import (
	"strings"
	"unicode/utf8"
)

// Mode is the part of a session's sql_mode that decides how a text is read.
type Mode uint8

const (
	// ANSIQuotes: "x" is an identifier, not a string.
	ANSIQuotes Mode = 1 << iota
	// NoBackslashEscapes: a backslash in a string is a backslash.
	NoBackslashEscapes
	// NoAutoValueOnZero: 0 is a key like any other, only NULL asks for one.
	NoAutoValueOnZero
	// MSSQL: [x] is an identifier (MariaDB).
	MSSQL
	// EmptyStringIsNull: '' is NULL (MariaDB).
	EmptyStringIsNull
	// Strict: a value that its column cannot hold is an error, at least in the
	// first row of a statement.
	Strict
)

// ParseMode reads the value of @@sql_mode. Combination modes arrive spelled
// out, because the server expands them.
func ParseMode(sqlMode string) Mode {
	var m Mode
	for word := range strings.SplitSeq(sqlMode, ",") {
		switch strings.ToUpper(strings.TrimSpace(word)) {
		case "ANSI_QUOTES", "ANSI":
			m |= ANSIQuotes
		case "NO_BACKSLASH_ESCAPES":
			m |= NoBackslashEscapes
		case "NO_AUTO_VALUE_ON_ZERO":
			m |= NoAutoValueOnZero
		case "MSSQL":
			m |= MSSQL
		case "EMPTY_STRING_IS_NULL":
			m |= EmptyStringIsNull
		case "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "TRADITIONAL":
			m |= Strict
		}
	}
	return m
}

// Charset is the character set in which the server reads a session's statements
// (@@character_set_client), as far as it decides where words and strings end.
// The zero value is UTF-8; [ParseCharset] returns the others.
type Charset uint8

const (
	// CharsetUTF8 is utf8mb4 or utf8mb3.
	CharsetUTF8 Charset = iota
	// charsetLatin1 is latin1 or ascii: one byte a character. Outside of quotes,
	// bytes above 0x7F may be letters, signs or blanks.
	charsetLatin1
	// charsetOther is any other: the second byte of a character may be a quote or
	// a backslash. Nothing is read from the first byte above 0x7F on.
	charsetOther
)

// Why a statement is not understood in a character set.
const (
	reasonOther = "the session's character set doesn't show where a string with bytes above 0x7F ends; " +
		"SET NAMES utf8mb4, or pass the value as an argument"
	reasonLatin1 = "outside of quotes, letters beyond ASCII are understood in UTF-8 only; SET NAMES utf8mb4"
)

// ParseCharset returns the character set that @@character_set_client names.
func ParseCharset(name string) Charset {
	switch strings.ToLower(name) {
	case "utf8mb4", "utf8mb3", "utf8":
		return CharsetUTF8
	case "latin1", "ascii":
		return charsetLatin1
	}
	return charsetOther
}

// readable returns the part of a text whose tokens are certain: up to the first
// byte above 0x7F in a character set that is not known to read it.
func (c Charset) readable(text string) string {
	if c == charsetOther {
		return text[:asciiEnd(text)]
	}
	return text
}

// validPrefix returns a name up to the first byte that is no UTF-8. MySQL drops
// such a byte from the end of a name.
func validPrefix(name string) string {
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && size == 1 {
			return name[:i]
		}
		i += size
	}
	return name
}

func isASCII(s string) bool { return asciiEnd(s) == len(s) }

// asciiEnd returns the position of the first byte above 0x7F, or the length.
func asciiEnd(s string) int {
	i := 0
	for ; len(s)-i >= 32; i += 32 { // texts can be long
		if (word64(s[i:])|word64(s[i+8:])|word64(s[i+16:])|word64(s[i+24:]))&0x8080808080808080 != 0 {
			break
		}
	}
	for ; i < len(s) && s[i] < utf8.RuneSelf; i++ {
	}
	return i
}

// word64 is the first eight bytes of a string, which the compiler loads at once.
func word64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
