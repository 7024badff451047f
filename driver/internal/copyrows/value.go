package copyrows

import (
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// value is a value in a row of a query.
type value struct {
	kind   kind
	number uint64 // the bits of an int64, uint64 or float64
	bytes  []byte
}

// kind is the type of a value.
type kind byte

const (
	kindNull    kind = iota
	kindMissing      // a key to generate
	kindInt
	kindUint
	kindFloat
	kindText    // in UTF-8
	kindBinary  // bytes without a character set
	kindLiteral // digits that are written as a literal
)

// valueOf converts a value from the underlying driver. typ is the driver's name of the column's
// type. The error is for an unexpected type.
func valueOf(v driver.Value, typ string) (value, error) {
	switch v := v.(type) {
	case nil:
		return value{}, nil
	case int64:
		return value{kind: kindInt, number: uint64(v)}, nil
	case uint64:
		return value{kind: kindUint, number: v}, nil
	case float32:
		return value{kind: kindFloat, number: math.Float64bits(float64(v))}, nil
	case float64:
		return value{kind: kindFloat, number: math.Float64bits(v)}, nil
	case string:
		return bytesValue([]byte(v), typ), nil
	case []byte:
		if v == nil {
			return value{}, nil
		}
		return bytesValue(v, typ), nil
	}
	return value{}, fmt.Errorf("unexpected value of type %T in a column of type %.40q", v, typ)
}

// bytesValue converts a value that the driver returned as bytes.
func bytesValue(v []byte, typ string) value {
	switch strings.TrimPrefix(typ, "UNSIGNED ") {
	case "TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "YEAR", "DECIMAL":
		if isDecimal(string(v)) {
			return value{kind: kindLiteral, bytes: v}
		}
	case "FLOAT", "DOUBLE":
		if f, err := strconv.ParseFloat(string(v), 64); err == nil {
			return value{kind: kindFloat, number: math.Float64bits(f)}
		}
	case "BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "GEOMETRY", "VECTOR":
		return value{kind: kindBinary, bytes: v}
	}
	return value{kind: kindText, bytes: v}
}

// isDecimal reports whether s consists of digits, with an optional sign and decimal point.
func isDecimal(s string) bool {
	whole, fraction, point := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	return whole+fraction != "" && (!point || fraction != "") && strings.Trim(whole+fraction, "0123456789") == ""
}

// size returns the approximate size of a row in an INSERT, with its key, in bytes.
func size(row []value) int {
	const each = 14 // for a number or length, the type, and the NULL bit
	size := (len(row) + 1) * each
	for i := range row {
		size += len(row[i].bytes)
	}
	return size
}

// appendTo appends the value to a list of VALUES, and its argument to args. If utf8 is false, the
// server reads arguments in another character set, so strings are written as hexadecimal literals.
// (MySQL assumes that a bare placeholder has the column's character set.)
func (v *value) appendTo(query []byte, args []driver.NamedValue, utf8 bool) ([]byte, []driver.NamedValue) {
	var arg driver.Value
	placeholder := "?"
	switch v.kind {
	case kindInt:
		arg = int64(v.number)
	case kindUint:
		arg = v.number
	case kindFloat:
		arg = math.Float64frombits(v.number)
	case kindLiteral:
		return append(query, v.bytes...), args
	case kindText:
		if arg, placeholder = v.bytes, "CONVERT(? USING utf8mb4)"; !utf8 {
			arg, placeholder = hex.EncodeToString(v.bytes), "CONVERT(UNHEX(CONVERT(? USING ascii)) USING utf8mb4)"
		}
	case kindBinary:
		if arg, placeholder = v.bytes, "CAST(? AS BINARY)"; !utf8 {
			arg, placeholder = hex.EncodeToString(v.bytes), "UNHEX(CONVERT(? USING ascii))"
		}
	}
	return append(query, placeholder...), append(args, driver.NamedValue{Ordinal: len(args) + 1, Value: arg})
}

// encode appends the value to the data of rows.
func (v *value) encode(data []byte) []byte {
	if v.kind >= kindText {
		v.number = uint64(len(v.bytes))
	}
	return append(binary.AppendUvarint(append(data, byte(v.kind)), v.number), v.bytes...)
}

// decode reads the values of the next row into row, and returns the rest of the data.
func decode(row []value, data []byte) []byte {
	for i := range row {
		v := &row[i]
		number, length := binary.Uvarint(data[1:])
		*v, data = value{kind: kind(data[0]), number: number}, data[1+length:]
		if v.kind >= kindText {
			v.bytes, data = data[:number], data[number:]
		}
	}
	return data
}
