package driver

import (
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// appendValue appends a value that the base read from a column of a type, as the server
// named it, as a literal that means the same value in every sql_mode, for a session
// whose character sets are utf8mb4.
func appendValue(dst []byte, v driver.Value, typ string) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "NULL"...), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case uint64:
		return strconv.AppendUint(dst, v, 10), nil
	case float32:
		return appendFloat(dst, float64(v))
	case float64:
		return appendFloat(dst, v)
	case bool:
		if v {
			return append(dst, '1'), nil
		}
		return append(dst, '0'), nil
	case string:
		return appendTyped(dst, v, typ)
	case []byte:
		if v == nil {
			return append(dst, "NULL"...), nil
		}
		return appendTyped(dst, string(v), typ)
	}
	return nil, fmt.Errorf("a value of type %T of a column of type %s is not known", v, typ)
}

// appendFloat appends a number that the server reads as exactly this double.
func appendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("a number is %v", f)
	}
	return strconv.AppendFloat(dst, f, 'e', -1, 64), nil
}

// appendTyped appends a value that came as bytes.
func appendTyped(dst []byte, v, typ string) ([]byte, error) {
	switch strings.TrimPrefix(typ, "UNSIGNED ") {
	case "DECIMAL", "TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "YEAR":
		if isDecimal(v) {
			return append(dst, v...), nil
		}
	case "FLOAT", "DOUBLE":
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return appendFloat(dst, f)
		}
	case "BIT":
		if v != "" { // a number in a column of numbers, bytes in one of bytes
			return hex.AppendEncode(append(dst, "0x"...), []byte(v)), nil
		}
	case "CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "ENUM", "SET", "JSON", "DATE", "TIME", "DATETIME", "TIMESTAMP", "NULL":
		return appendText(dst, v), nil
	case "BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "GEOMETRY", "VECTOR":
	default:
		return nil, fmt.Errorf("a column's type is %.40q, which is not known", typ)
	}
	// As a string, so that one of digits is the number that it reads as.
	return append(hex.AppendEncode(append(dst, "_binary X'"...), []byte(v)), '\''), nil
}

// appendText appends a text as a literal. Where a backslash would mean something else
// in another sql_mode, or bytes are no letters, it is written in digits.
func appendText(dst []byte, v string) []byte {
	if strings.ContainsAny(v, "\\\x00") || !utf8.ValidString(v) {
		return append(hex.AppendEncode(append(dst, "_utf8mb4 X'"...), []byte(v)), '\'')
	}
	dst = append(dst, '\'')
	for {
		before, after, found := strings.Cut(v, "'")
		dst = append(dst, before...)
		if !found {
			return append(dst, '\'')
		}
		dst, v = append(dst, "''"...), after
	}
}

// isDecimal reports whether a text is digits, perhaps with a sign and a point.
func isDecimal(v string) bool {
	digits := strings.TrimPrefix(v, "-")
	whole, part, point := strings.Cut(digits, ".")
	return whole+part != "" && (!point || part != "") && strings.Trim(whole+part, "0123456789") == ""
}
