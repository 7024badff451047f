// Package sqltext writes names and values into SQL so that they mean the same in every sql_mode and
// character set. It reads numbers as the servers do.
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

// QuoteTable quotes a table's name. schema may be empty.
func QuoteTable(schema, name string) string {
	if schema == "" {
		return QuoteIdentifier(name)
	}
	return QuoteIdentifier(schema) + "." + QuoteIdentifier(name)
}

// AppendLiteral appends a key as a literal that means the same in every sql_mode. It reports
// whether the key's type has a literal: int64, uint64, string or []byte.
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

// ParseInteger returns the value of digits in a base as an int64, or as a uint64 if it is larger.
// It returns nil if digits isn't an integer.
func ParseInteger(digits string, base int) any {
	if n, err := strconv.ParseInt(digits, base, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(digits, base, 64); err == nil {
		return n
	}
	return nil
}

// LeadingNumber returns the number at the beginning of a string, as the servers convert it; 0 if
// there is none.
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
