// Package columntype determines which keys a column's type can store.
package columntype

import (
	"encoding/hex"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Type is a column type of the servers.
type Type struct {
	Text   string // as the server shows it
	Name   string // the first word, in lower case
	Size   string // what follows the name in brackets
	Form   Form
	Low    int64  // the smallest integer
	High   uint64 // the largest integer
	Length int    // the length of strings and bytes
}

// Form is the kind of a type's values.
type Form uint8

// The forms of types.
const (
	Any Form = iota // unknown
	Integer
	Chars
	Bytes
	UUID
	Address // of IPv4 or IPv6
	Other   // a type that converts keys to other values
)

// HoldsAll reports whether the type can store all non-negative int64 values.
func (t *Type) HoldsAll() bool {
	return t.Form == Any || t.Form == Integer && t.High >= math.MaxInt64
}

// IsPadded reports whether the type pads values, like CHAR and BINARY.
func (t *Type) IsPadded() bool {
	return strings.HasPrefix(t.Text, "char(") || strings.HasPrefix(t.Text, "binary(")
}

// IsUnsigned reports whether the type is a number that can't be negative.
func (t *Type) IsUnsigned() bool { return t.Form == Integer && t.isUnsigned() }

func (t *Type) isUnsigned() bool { return strings.Contains(strings.ToLower(t.Text), "unsigned") }

// Parse parses a type such as "bigint(20) unsigned" or "varchar(36)".
func Parse(shown string) *Type {
	name, rest, _ := strings.Cut(strings.ToLower(shown), "(")
	size, _, _ := strings.Cut(rest, ")")
	name, _, _ = strings.Cut(name, " ")
	t := &Type{Text: shown, Name: name, Size: size}
	unsigned := t.isUnsigned()
	if bits, ok := integerBits[name]; ok {
		t.integer(bits, unsigned)
		return t
	}
	n, err := strconv.Atoi(size)
	switch {
	case name == "decimal" || name == "numeric":
		t.decimal(size, unsigned)
	case others[name] != Any:
		t.Form = others[name]
	case err != nil:
	case name == "bit":
		t.integer(n, true)
	case name == "char" || name == "varchar":
		t.Form, t.Length = Chars, n
	case name == "binary" || name == "varbinary":
		t.Form, t.Length = Bytes, n
	}
	return t
}

// others are types that don't store all integers or strings. In a lax sql_mode, the server stores
// another value for a key, without an error.
var others = map[string]Form{
	"uuid": UUID, "inet4": Address, "inet6": Address,
	"enum": Other, "set": Other, "json": Other,
	"year": Other, "date": Other, "time": Other, "datetime": Other, "timestamp": Other,
}

// integerBits has the numeric types and the size of the integers that they store exactly.
var integerBits = map[string]int{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "integer": 32, "bigint": 64, "float": 25, "double": 54}

func (t *Type) integer(bits int, unsigned bool) {
	t.Form, bits = Integer, max(1, min(bits, 64))
	if unsigned {
		t.High = math.MaxUint64 >> (64 - bits)
	} else {
		t.High = math.MaxInt64 >> (64 - bits)
		t.Low = -int64(t.High) - 1
	}
}

// decimal sets the range of a decimal type from its size, such as "20,0".
func (t *Type) decimal(size string, unsigned bool) {
	digits, scale, _ := strings.Cut(size, ",")
	n, err := strconv.Atoi(digits)
	places, _ := strconv.Atoi(scale)
	if err != nil {
		return
	}
	t.integer(64, false)
	t.High = math.MaxUint64
	if n -= places; n < len("18446744073709551615") {
		t.High = uint64(math.Pow10(n)) - 1
		t.Low = -int64(min(t.High, math.MaxInt64))
	}
	if unsigned {
		t.Low = 0
	}
}

// Holds reports whether a column of the type can store a key: an int64, a uint64, a string or a
// []byte. It returns true if that is unknown.
func (t *Type) Holds(key any) bool {
	switch t.Form {
	case Any:
		return true
	case Integer:
		return t.holdsInteger(key)
	case UUID:
		return isUUID(key)
	case Address:
		return t.isAddress(key)
	case Other:
		return false
	}
	switch key := key.(type) {
	case int64:
		return len(strconv.FormatInt(key, 10)) <= t.Length
	case uint64:
		return len(strconv.FormatUint(key, 10)) <= t.Length
	case string:
		return len(key) <= t.Length || t.Form == Chars && utf8.RuneCountInString(key) <= t.Length
	case []byte:
		return len(key) <= t.Length || t.Form == Chars && utf8.RuneCount(key) <= t.Length
	}
	return true
}

// isUUID reports whether a key is a UUID as MariaDB reads it: 16 bytes, or 32 digits, perhaps with
// hyphens.
func isUUID(key any) bool {
	const size = 16
	if b, ok := key.([]byte); ok && len(b) == size {
		return true
	}
	text, ok := sqltoken.TextOf(key)
	digits, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	return ok && err == nil && len(digits) == size
}

func (t *Type) isAddress(key any) bool {
	text, _ := sqltoken.TextOf(key)
	a, err := netip.ParseAddr(text)
	if b, ok := key.([]byte); ok && err != nil {
		a, _ = netip.AddrFromSlice(b)
	}
	return a.Is4() || a.Is6() && t.Name == "inet6"
}

func (t *Type) holdsInteger(key any) bool {
	if _, isText := sqltoken.TextOf(key); isText && t.Name == "bit" {
		return false // its bytes are the bits
	}
	switch v := key.(type) {
	case string:
		key = sqltoken.ParseInteger(v, 10)
	case []byte:
		key = sqltoken.ParseInteger(string(v), 10)
	}
	switch key := key.(type) {
	case nil:
		return false // a string
	case int64:
		return key >= t.Low && (key <= 0 || uint64(key) <= t.High)
	case uint64:
		return key <= t.High
	}
	return true
}
