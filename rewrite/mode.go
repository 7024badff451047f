package rewrite

import "strings"

// Mode is the part of a session's sql_mode that decides how a text is read.
type Mode uint8

const (
	// ANSIQuotes: "x" is an identifier, not a string.
	ANSIQuotes Mode = 1 << iota
	// NoBackslashEscapes: a backslash in a string is a backslash.
	NoBackslashEscapes
	// NoAutoValueOnZero: 0 is a key like any other, only NULL asks for one.
	NoAutoValueOnZero
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
		}
	}
	return m
}
