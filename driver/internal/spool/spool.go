// Package spool stores the rows of a query in memory or, if they are large, in an unnamed file. It
// writes them as values of INSERTs.
package spool

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

// Value is a value in a row of a query.
type Value struct {
	Kind   Kind
	number uint64 // the bits of an int64, uint64 or float64
	bytes  []byte
}

// Kind is the type of a Value.
type Kind byte

// The exported kinds.
const (
	Null    Kind = iota
	Missing      // a key to generate
)

const (
	kindInt Kind = iota + 2
	kindUint
	kindFloat
	kindText    // in UTF-8
	kindBinary  // bytes without a character set
	kindLiteral // digits that are written as a literal
)

// ValueOf converts a value from the underlying driver. typ is the driver's name of the column's
// type. The error is for an unexpected type.
func ValueOf(v driver.Value, typ string) (Value, error) {
	switch v := v.(type) {
	case nil:
		return Value{}, nil
	case int64:
		return Value{Kind: kindInt, number: uint64(v)}, nil
	case uint64:
		return Value{Kind: kindUint, number: v}, nil
	case float32:
		return Value{Kind: kindFloat, number: math.Float64bits(float64(v))}, nil
	case float64:
		return Value{Kind: kindFloat, number: math.Float64bits(v)}, nil
	case string:
		return bytesValue([]byte(v), typ), nil
	case []byte:
		if v == nil {
			return Value{}, nil
		}
		return bytesValue(v, typ), nil
	}
	return Value{}, fmt.Errorf("unexpected value of type %T in a column of type %.40q", v, typ)
}

// bytesValue converts a value that the driver returned as bytes.
func bytesValue(v []byte, typ string) Value {
	switch strings.TrimPrefix(typ, "UNSIGNED ") {
	case "TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "YEAR", "DECIMAL":
		if isDecimal(string(v)) {
			return Value{Kind: kindLiteral, bytes: v}
		}
	case "FLOAT", "DOUBLE":
		if f, err := strconv.ParseFloat(string(v), 64); err == nil {
			return Value{Kind: kindFloat, number: math.Float64bits(f)}
		}
	case "BIT":
		if len(v) > 0 { // a number in a numeric column, bytes in a binary column
			return Value{Kind: kindLiteral, bytes: hex.AppendEncode([]byte("0x"), v)}
		}
	case "BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "GEOMETRY", "VECTOR":
		return Value{Kind: kindBinary, bytes: v}
	}
	return Value{Kind: kindText, bytes: v}
}

// KeyValue converts a generated key.
func KeyValue(key any) Value {
	switch key := key.(type) {
	case int64:
		return Value{Kind: kindInt, number: uint64(key)}
	case uint64:
		return Value{Kind: kindUint, number: key}
	case []byte:
		return Value{Kind: kindBinary, bytes: key}
	}
	return Value{Kind: kindText, bytes: []byte(session.Text(key))}
}

// isDecimal reports whether s consists of digits, with an optional sign and decimal point.
func isDecimal(s string) bool {
	whole, fraction, point := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	return whole+fraction != "" && (!point || fraction != "") && strings.Trim(whole+fraction, "0123456789") == ""
}

// Size returns the approximate size of a row in an INSERT, with its key, in bytes.
func Size(row []Value) int {
	const each = 14 // for a number or length, the type, and the NULL bit
	size := (len(row) + 1) * each
	for i := range row {
		size += len(row[i].bytes)
	}
	return size
}

// AppendTo appends the value to a list of VALUES, and its argument to args. If utf8 is false, the
// server reads arguments in another character set, so strings are written as hexadecimal literals.
// (MySQL assumes that a bare placeholder has the column's character set.)
func (v *Value) AppendTo(query []byte, args []driver.NamedValue, utf8 bool) ([]byte, []driver.NamedValue) {
	var arg driver.Value
	placeholder := "?"
	switch v.Kind {
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

// MaxRows is the maximum number of rows, since the key of each is in memory.
const MaxRows = 50_000_000

const (
	maxBytes = 4 << 30
	inMemory = 4 << 20 // in bytes; the rest goes to a file
)

// errBytes is the error for rows of more than maxBytes.
var errBytes = fmt.Errorf("the query returns more than %d GiB; insert the rows in parts", maxBytes>>30)

// Rows stores rows in memory, and then in a private file. The file has no name if the system can
// remove an open file. The zero value is empty.
type Rows struct {
	size   int64  // of all rows
	memory []byte // rows that are not in the file yet
	file   *os.File
	r      *bufio.Reader
}

// Add appends a row.
func (s *Rows) Add(row []Value) error {
	before := len(s.memory)
	for i := range row {
		v := &row[i]
		if v.Kind >= kindText {
			v.number = uint64(len(v.bytes))
		}
		s.memory = append(binary.AppendUvarint(append(s.memory, byte(v.Kind)), v.number), v.bytes...)
	}
	if s.size += int64(len(s.memory) - before); s.size > maxBytes {
		return errBytes
	}
	if len(s.memory) <= inMemory {
		return nil
	}
	if err := s.spill(); err != nil {
		return fmt.Errorf("they take more than %d MiB and cannot be written to a temporary file: %w", inMemory>>20, err)
	}
	return nil
}

// spill writes the rows in memory to the file.
func (s *Rows) spill() (err error) {
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

// Rewind makes Next start with the first row. No row can be added afterwards.
func (s *Rows) Rewind() (err error) {
	from := io.Reader(bytes.NewReader(s.memory))
	if s.file != nil {
		_, err = s.file.Seek(0, io.SeekStart)
		from = io.MultiReader(s.file, from)
	}
	s.r = bufio.NewReader(from)
	return err
}

// Next reads the next row into row. There must be one.
func (s *Rows) Next(row []Value) error {
	for i := range row {
		kind, err := s.r.ReadByte()
		number, numberErr := binary.ReadUvarint(s.r)
		row[i] = Value{Kind: Kind(kind), number: number}
		if err = cmp.Or(err, numberErr); err == nil && row[i].Kind >= kindText {
			row[i].bytes = make([]byte, number)
			_, err = io.ReadFull(s.r, row[i].bytes)
		}
		if err != nil {
			return fmt.Errorf("shardkey: cannot read the query's rows back: %w", err)
		}
	}
	return nil
}

// Close frees the rows.
func (s *Rows) Close() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
	}
	*s = Rows{}
}
