// Package sqltext writes names and values into SQL, in ways that mean the same in
// every sql_mode and character set, and reads numbers as the servers do.
package sqltext

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
)

// QuoteIdentifier quotes a name with backquotes, which every sql_mode accepts.
func QuoteIdentifier(name string) string {
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

// QuoteTable quotes a table's name, schema first when there is one.
func QuoteTable(schema, name string) string {
	if schema == "" {
		return QuoteIdentifier(name)
	}
	return QuoteIdentifier(schema) + "." + QuoteIdentifier(name)
}

// AppendLiteral appends a key as a literal that means the same in every
// sql_mode, and reports whether its type has one: int64, uint64, string, []byte.
func AppendLiteral(dst []byte, key any) ([]byte, bool) {
	switch key := key.(type) {
	case int64, uint64:
		return appendInteger(dst, key), true
	case string:
		if isPlain(key) {
			dst = append(dst, '\'')
			dst = append(dst, key...)
			return append(dst, '\''), true
		}
		dst = append(dst, "_utf8mb4 X'"...)
		dst = hex.AppendEncode(dst, []byte(key))
		return append(dst, '\''), true
	case []byte:
		dst = append(dst, "X'"...)
		dst = hex.AppendEncode(dst, key)
		return append(dst, '\''), true
	}
	return dst, false
}

func appendInteger(dst []byte, n any) []byte {
	if n, ok := n.(int64); ok {
		return strconv.AppendInt(dst, n, 10)
	}
	return strconv.AppendUint(dst, n.(uint64), 10)
}

// isPlain reports whether a string needs no escape in any mode or charset.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '\'' || c == '\\' || c == '"' {
			return false
		}
	}
	return true
}

// ParseInteger returns the int64, or the uint64 where that is too small, that
// digits of a base stand for; nil for what is no integer.
func ParseInteger(digits string, base int) any {
	if n, err := strconv.ParseInt(digits, base, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(digits, base, 64); err == nil {
		return n
	}
	return nil
}

// LeadingNumber is the number that a string begins with, as the servers take it
// for one; 0 for none.
func LeadingNumber(s string) float64 {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	end := 0
	for end < len(s) && strings.IndexByte("0123456789.eE+-", s[end]) >= 0 {
		end++
	}
	for ; end > 0; end-- {
		if f, err := strconv.ParseFloat(s[:end], 64); err == nil || errors.Is(err, strconv.ErrRange) {
			return f
		}
	}
	return 0
}
