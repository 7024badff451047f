package sqltoken

import (
	"slices"
	"strings"
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

// modeNames are the names of the bits, as @@sql_mode has them.
var modeNames = [...]string{
	"ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "NO_AUTO_VALUE_ON_ZERO", "MSSQL", "EMPTY_STRING_IS_NULL", "STRICT_TRANS_TABLES",
}

// ParseMode parses the value of @@sql_mode. The server expands combination modes.
func ParseMode(sqlMode string) (m Mode) {
	for word := range strings.SplitSeq(strings.ToUpper(sqlMode), ",") {
		switch word = strings.TrimSpace(word); word {
		case "ANSI":
			m |= ANSIQuotes
		case "STRICT_ALL_TABLES", "TRADITIONAL":
			m |= Strict
		default:
			if i := slices.Index(modeNames[:], word); i >= 0 {
				m |= 1 << i
			}
		}
	}
	return m
}

// String returns a value of @@sql_mode with these bits.
func (m Mode) String() string {
	var words []string
	for i, name := range modeNames {
		if m&(1<<i) != 0 {
			words = append(words, name)
		}
	}
	return strings.Join(words, ",")
}

// Charset is the character set in which the server reads a session's statements
// (@@character_set_client). It determines the ends of words and strings. The zero value is UTF-8;
// [ParseCharset] returns the others.
type Charset uint8

const (
	// UTF8 is utf8mb4 or utf8mb3.
	UTF8 Charset = iota
	// latin1 is latin1 or ascii, with one byte for each character. Outside of quotes, bytes
	// above 0x7F may be letters, signs or blanks.
	latin1
	// other is any other character set. The second byte of a character may be a quote or a
	// backslash, so nothing after the first byte above 0x7F is read.
	other
)

// Reasons for refusing a statement because of its character set.
const (
	reasonOther = "in the session's character set, the end of a string with bytes above 0x7F is uncertain; " +
		"SET NAMES utf8mb4, or pass the value as an argument"
	ReasonLatin1 = "outside of quotes, non-ASCII letters are supported in UTF-8 only; SET NAMES utf8mb4"
)

// ParseCharset returns the character set that @@character_set_client names. Empty is utf8mb4.
func ParseCharset(name string) Charset {
	switch strings.ToLower(name) {
	case "", "utf8mb4", "utf8mb3", "utf8":
		return UTF8
	case "latin1", "ascii":
		return latin1
	}
	return other
}

// String returns the name of a character set of this kind.
func (c Charset) String() string {
	return [...]string{UTF8: "utf8mb4", latin1: "latin1", other: "other"}[c]
}

// Readable returns the part of a string whose tokens are certain. In an unknown character set it
// ends at the first byte above 0x7F.
func (c Charset) Readable(text string) string {
	if c == other {
		return text[:asciiEnd(text)]
	}
	return text
}
