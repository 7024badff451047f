package sqltoken

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// QuoteIdentifier quotes a name with backquotes, which every sql_mode accepts.
func QuoteIdentifier(name string) string {
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

// QuoteIdentifiers quotes names.
func QuoteIdentifiers(names []string) []string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = QuoteIdentifier(name)
	}
	return quoted
}

// QuoteTable quotes a table's name. schema may be empty.
func QuoteTable(schema, name string) string {
	if schema == "" {
		return QuoteIdentifier(name)
	}
	return QuoteIdentifier(schema) + "." + QuoteIdentifier(name)
}

// TableName returns a table's name for errors. schema may be empty.
func TableName(schema, name string) string {
	if schema == "" {
		return name
	}
	return schema + "." + name
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

// TextOf returns a bound string, and reports whether the value is one.
func TextOf(bound any) (text string, ok bool) {
	switch v := bound.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	}
	return "", false
}

// UnquoteIdentifier returns the name in a quoted identifier.
func UnquoteIdentifier(s string) string {
	quote := s[len(s)-1:]
	return strings.ReplaceAll(s[1:len(s)-1], quote+quote, quote)
}

// UnquoteString returns the contents of a string literal (MySQL manual, "String
// Literals").
func UnquoteString(s string, mode Mode) string {
	quote, body := s[0], s[1:len(s)-1]
	if strings.IndexByte(body, quote) < 0 && strings.IndexByte(body, '\\') < 0 {
		return body
	}
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		case c == quote:
			i++ // a doubled quote
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
			case '%', '_': // for LIKE, which interprets the backslash
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
