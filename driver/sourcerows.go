package driver

import (
	"bufio"
	"bytes"
	"cmp"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/driver/internal/session"
)

// sourceValue is a value of a row that a query returned.
type sourceValue struct {
	kind   valueKind
	number uint64 // the bits of an int64, uint64 or float64
	bytes  []byte
}

type valueKind byte

const (
	valueNull    valueKind = iota
	valueMissing           // a key that is to be generated
	valueInt
	valueUint
	valueFloat
	valueText    // in UTF-8
	valueBinary  // bytes without a character set
	valueLiteral // digits that are written into the statement
)

// sourceValueOf converts a value that the base read from a column whose type the base names typ.
func sourceValueOf(v driver.Value, typ string) (sourceValue, error) {
	switch v := v.(type) {
	case nil:
		return sourceValue{}, nil
	case int64:
		return sourceValue{kind: valueInt, number: uint64(v)}, nil
	case uint64:
		return sourceValue{kind: valueUint, number: v}, nil
	case float32:
		return sourceValue{kind: valueFloat, number: math.Float64bits(float64(v))}, nil
	case float64:
		return sourceValue{kind: valueFloat, number: math.Float64bits(v)}, nil
	case string:
		return bytesValue([]byte(v), typ), nil
	case []byte:
		if v == nil {
			return sourceValue{}, nil
		}
		return bytesValue(v, typ), nil
	}
	return sourceValue{}, fmt.Errorf("unexpected value of type %T in a column of type %.40q", v, typ)
}

// bytesValue converts a value that the base read as bytes.
func bytesValue(v []byte, typ string) sourceValue {
	switch strings.TrimPrefix(typ, "UNSIGNED ") {
	case "TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "YEAR", "DECIMAL":
		if isDecimal(string(v)) {
			return sourceValue{kind: valueLiteral, bytes: v}
		}
	case "FLOAT", "DOUBLE":
		if f, err := strconv.ParseFloat(string(v), 64); err == nil {
			return sourceValue{kind: valueFloat, number: math.Float64bits(f)}
		}
	case "BIT":
		if len(v) > 0 { // a number in a column of numbers, bytes in a column of bytes
			return sourceValue{kind: valueLiteral, bytes: hex.AppendEncode([]byte("0x"), v)}
		}
	case "BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "GEOMETRY", "VECTOR":
		return sourceValue{kind: valueBinary, bytes: v}
	}
	return sourceValue{kind: valueText, bytes: v}
}

// keyValue converts a generated key.
func keyValue(key any) sourceValue {
	switch key := key.(type) {
	case int64:
		return sourceValue{kind: valueInt, number: uint64(key)}
	case uint64:
		return sourceValue{kind: valueUint, number: key}
	case []byte:
		return sourceValue{kind: valueBinary, bytes: key}
	}
	return sourceValue{kind: valueText, bytes: []byte(session.Text(key))}
}

// isDecimal reports whether s is digits, with an optional sign and decimal point.
func isDecimal(s string) bool {
	whole, fraction, point := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	return whole+fraction != "" && (!point || fraction != "") && strings.Trim(whole+fraction, "0123456789") == ""
}

// sizeOf is how many bytes a row takes in an INSERT, with its key.
func sizeOf(row []sourceValue) int {
	const each = 14 // the number or length, the type, and the bit for NULL
	size := (len(row) + 1) * each
	for i := range row {
		size += len(row[i].bytes)
	}
	return size
}

// appendTo appends the value to a list of VALUES, and its argument to args. Where utf8 is
// false, the server reads arguments in another character set, so text travels as digits. (MySQL
// takes a bare placeholder for one of the column's character set.)
func (v *sourceValue) appendTo(query []byte, args []driver.NamedValue, utf8 bool) ([]byte, []driver.NamedValue) {
	var arg driver.Value
	placeholder := "?"
	switch v.kind {
	case valueInt:
		arg = int64(v.number)
	case valueUint:
		arg = v.number
	case valueFloat:
		arg = math.Float64frombits(v.number)
	case valueLiteral:
		return append(query, v.bytes...), args
	case valueText:
		if arg, placeholder = v.bytes, "CONVERT(? USING utf8mb4)"; !utf8 {
			arg, placeholder = hex.EncodeToString(v.bytes), "CONVERT(UNHEX(CONVERT(? USING ascii)) USING utf8mb4)"
		}
	case valueBinary:
		if arg, placeholder = v.bytes, "CAST(? AS BINARY)"; !utf8 {
			arg, placeholder = hex.EncodeToString(v.bytes), "UNHEX(CONVERT(? USING ascii))"
		}
	}
	return append(query, placeholder...), append(args, driver.NamedValue{Ordinal: len(args) + 1, Value: arg})
}

// Bounds of the rows that one INSERT … SELECT keeps.
const (
	maxSourceRows      = 50_000_000 // each has a key in memory
	maxSourceBytes     = 4 << 30
	sourceRowsInMemory = 4 << 20 // bytes; the rest goes to a file
)

// errSourceBytes is the error for rows that take more than maxSourceBytes.
var errSourceBytes = fmt.Errorf("the query returns more than %d GiB; insert the rows in parts", maxSourceBytes>>30)

// sourceRows keeps rows in memory, and beyond that in a private file, which has no name where
// the system lets an open file be removed. Its zero value is empty.
type sourceRows struct {
	size   int64  // of all rows
	memory []byte // what the file doesn't have yet
	file   *os.File
	r      *bufio.Reader
}

// add appends a row.
func (s *sourceRows) add(row []sourceValue) error {
	before := len(s.memory)
	for i := range row {
		v := &row[i]
		if v.kind >= valueText {
			v.number = uint64(len(v.bytes))
		}
		s.memory = append(binary.AppendUvarint(append(s.memory, byte(v.kind)), v.number), v.bytes...)
	}
	if s.size += int64(len(s.memory) - before); s.size > maxSourceBytes {
		return errSourceBytes
	}
	if len(s.memory) <= sourceRowsInMemory {
		return nil
	}
	if err := s.spill(); err != nil {
		return fmt.Errorf("they take more than %d MiB, and no temporary file can be written: %w", sourceRowsInMemory>>20, err)
	}
	return nil
}

// spill moves what is in memory to the file.
func (s *sourceRows) spill() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "shardkey-rows-*"); err != nil { // only its owner may read it
			return err
		}
		_ = os.Remove(s.file.Name()) // on Windows, close removes it
	}
	_, err = s.file.Write(s.memory)
	s.memory = s.memory[:0]
	return err
}

// rewind makes next start with the first row. No row can be added afterwards.
func (s *sourceRows) rewind() (err error) {
	from := io.Reader(bytes.NewReader(s.memory))
	if s.file != nil {
		_, err = s.file.Seek(0, io.SeekStart)
		from = io.MultiReader(s.file, from)
	}
	s.r = bufio.NewReader(from)
	return err
}

// next reads the next row, of which there must be one, into row.
func (s *sourceRows) next(row []sourceValue) error {
	for i := range row {
		kind, err := s.r.ReadByte()
		number, numberErr := binary.ReadUvarint(s.r)
		row[i] = sourceValue{kind: valueKind(kind), number: number}
		if err = cmp.Or(err, numberErr); err == nil && row[i].kind >= valueText {
			row[i].bytes = make([]byte, number)
			_, err = io.ReadFull(s.r, row[i].bytes)
		}
		if err != nil {
			return fmt.Errorf("shardkey: cannot read the query's rows back: %w", err)
		}
	}
	return nil
}

// close frees the rows.
func (s *sourceRows) close() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
	}
	*s = sourceRows{}
}
