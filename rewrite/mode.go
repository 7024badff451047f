package rewrite

import (
	"strings"
	"unicode/utf8"
)

// Mode is the part of a session's sql_mode that determines how a statement is parsed.
type Mode uint8

const (
	// ANSIQuotes: "x" is an identifier, not a string.
	ANSIQuotes Mode = 1 << iota
	// NoBackslashEscapes: a backslash in a string is an ordinary character.
	NoBackslashEscapes
	// NoAutoValueOnZero: 0 is an ordinary key, and only NULL requests one.
	NoAutoValueOnZero
	// MSSQL: [x] is an identifier (MariaDB).
	MSSQL
	// EmptyStringIsNull: '' is NULL (MariaDB).
	EmptyStringIsNull
	// Strict: a value that its column can't store is an error, at least in the first row.
	Strict
)

// ParseMode parses the value of @@sql_mode. The server expands combination modes.
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
// (@@character_set_client). It determines the ends of words and strings. The zero value is UTF-8;
// [ParseCharset] returns the others.
type Charset uint8

const (
	// CharsetUTF8 is utf8mb4 or utf8mb3.
	CharsetUTF8 Charset = iota
	// charsetLatin1 is latin1 or ascii, with one byte for each character. Outside of quotes, bytes
	// above 0x7F may be letters, signs or blanks.
	charsetLatin1
	// charsetOther is any other character set. The second byte of a character may be a quote or a
	// backslash, so nothing after the first byte above 0x7F is read.
	charsetOther
)

// Reasons for refusing a statement because of its character set.
const (
	reasonOther = "in the session's character set, the end of a string with bytes above 0x7F is uncertain; " +
		"SET NAMES utf8mb4, or pass the value as an argument"
	reasonLatin1 = "outside of quotes, non-ASCII letters are supported in UTF-8 only; SET NAMES utf8mb4"
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

// readable returns the part of a string whose tokens are certain. In an unknown character set it
// ends at the first byte above 0x7F.
func (c Charset) readable(text string) string {
	if c == charsetOther {
		return text[:asciiEnd(text)]
	}
	return text
}

// validPrefix returns a name up to the first invalid byte. MySQL drops such a byte at the end of a
// name.
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
