package rewrite

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// uncertainKey is the reason for refusing a key.
const uncertainKey = "the server may store the key as 0; write an integer that the column can hold, or leave the key out"

// asks reports whether an argument that is the key of a row, counted from 0, requests a generated one.
func (in *Insert) asks(value any, row int, sqlMode *string, of *Table) (bool, error) {
	mode := func() (sqltoken.Mode, error) {
		if sqlMode == nil {
			return 0, &Needs{SQLMode: true}
		}
		return sqltoken.ParseMode(*sqlMode), nil
	}
	column := func() (strings, unsigned bool, err error) { return of.keyColumn(in) }
	asks, reason, err := in.asksForKey(sqltoken.PlainValue(value), row, mode, column)
	if err == nil && reason != "" {
		err = &StatementError{Reason: unsupported, Sentinel: ErrUnsupportedStatement, Table: in.Name, Row: row + 1,
			Column: in.Table.Key, Message: reason}
	}
	return asks, err
}

// asksForKey is asks for a plain value, or a literal. It returns the reason if it is uncertain.
func (in *Insert) asksForKey(
	value any, row int, mode func() (sqltoken.Mode, error), column func() (strings, unsigned bool, err error),
) (asks bool, reason string, err error) {
	text, isText := sqltoken.TextOf(value)
	isEmpty := isText && text == ""
	signed := storing(value, false, true)
	switch {
	case value == nil, isEmpty && in.Table.Strings:
		return true, "", nil
	case in.Table.Strings, signed == storesOther && storing(value, true, false) == storesOther:
		return false, "", nil
	}
	keepsStrings, unsigned := false, false
	isZero := signed == storesZero && storing(value, true, true) == storesZero
	if !isZero {
		if keepsStrings, unsigned, err = column(); err != nil || signed == storesOther && !unsigned {
			return false, "", err
		}
	}
	m, err := mode()
	switch {
	case err != nil:
		return false, "", err
	case isEmpty && m&sqltoken.EmptyStringIsNull != 0:
		return true, "", nil
	case isZero, m&sqltoken.NoAutoValueOnZero != 0:
		return m&sqltoken.NoAutoValueOnZero == 0, "", nil
	}
	if keepsStrings {
		n := readNumber(text)
		return signed == storesZero || isEmpty || isText && n.zero && n.whole, "", nil
	}
	switch storing(value, unsigned, !in.Ignore && m&sqltoken.Strict != 0) {
	case storesZero:
		return true, "", nil
	case storesOther:
		return false, "", nil
	case refuses:
		// From the second row on, only transactional tables refuse it.
		if row == 0 {
			return false, "", nil
		}
	}
	return false, uncertainKey, nil
}

// storage is how an integer column stores a value.
type storage uint8

const (
	storesOther storage = iota // not as 0
	storesZero
	refuses   // the server returns an error
	uncertain // servers, or their protocols, differ
)

// storing returns how an integer column stores an argument or a literal. strict is false for a lax
// sql_mode and for IGNORE, in which an unsigned column stores 0 for negative numbers (MySQL manual,
// "Out-of-Range and Overflow Handling").
func storing(value any, unsigned, strict bool) storage {
	switch v := value.(type) {
	case int64:
		return storingNumber(v == 0, unsigned && v < 0, strict)
	case uint64:
		return storingNumber(v == 0, false, strict)
	case bool:
		return storingNumber(!v, false, strict)
	case float64:
		return storingFloat(v, unsigned, strict)
	case time.Time:
		return uncertain // refused in a strict sql_mode
	case literal:
		return v.storing(unsigned, strict)
	}
	if text, ok := sqltoken.TextOf(value); ok {
		return storingText(text, unsigned, strict)
	}
	return storesOther
}

// storingNumber is storing for a number that is 0 when rounded, or out of range since it is
// negative.
func storingNumber(zero, below, strict bool) storage {
	switch {
	case below && strict:
		return refuses
	case below, zero:
		return storesZero
	}
	return storesOther
}

// storingFloat is storing for a bound float. The servers round it before they check its range, but
// if the client writes it into the statement, it is a decimal, for which they don't.
func storingFloat(v float64, unsigned, strict bool) storage {
	below := unsigned && v < 0
	switch {
	case math.IsNaN(v), below && math.IsInf(v, -1):
		return uncertain
	case below && !strict:
		return storesZero
	case below && v >= -0.5, math.Abs(v) == 0.5:
		return uncertain
	}
	return storingNumber(math.Abs(v) < 0.5, below, strict)
}

// storing is storing for a literal. Numbers with an exponent are rounded before their range is
// checked, decimals aren't.
func (l literal) storing(unsigned, strict bool) storage {
	if !l.number {
		return storingText(l.text, unsigned, strict)
	}
	negative := unsigned && l.text[0] == '-'
	if digits, base := l.radix(); base != 0 {
		const longest = 8 // in bytes; longer ones are out of range, even if they are zeros
		bits := len(digits) * map[int]int{2: 1, 16: 4}[base]
		zero := strings.Trim(digits, "0") == ""
		return storingNumber(zero && (bits+7)/8 <= longest, negative && !zero, strict)
	}
	if l.isFloat() {
		f, err := strconv.ParseFloat(l.text, 64)
		if err != nil {
			return storesOther // the server refuses it
		}
		return storingNumber(math.Abs(f) <= 0.5, negative && f < -0.5, strict) // floats are rounded to even
	}
	n := readNumber(l.text)
	below := unsigned && n.negative
	return storingNumber(n.zero && !below, below, strict)
}

// storingText is storing for a string. Servers differ in exponents without digits or beyond a
// float's range, in blanks, in the sign of -0.4, and in negative numbers beyond 64 bits, which some
// store as the largest number.
func storingText(s string, unsigned, strict bool) storage {
	const most = 19 // digits of an integer that certainly has 64 bits
	n := readNumber(s)
	switch below := unsigned && n.negative; {
	case below && !strict && n.point > most:
		return uncertain
	case below && !n.zero:
		return storingNumber(false, true, strict)
	case !n.zero:
		return storesOther
	case n.whole && n.certain && !below, !strict && (below || sqltoken.IsASCII(s)):
		return storesZero
	case strict && !n.whole && n.certain:
		return refuses
	}
	return uncertain
}

// number is the number at the beginning of a string, as the server converts it to an integer.
type number struct {
	zero     bool // 0 when rounded, for example '0', '0.4' and 'abc'
	negative bool // below 0, even if it is 0 when rounded
	whole    bool // the string has nothing else but blanks
	certain  bool // all servers convert it in this way
	point    int  // number of digits before the decimal point, without leading zeros
}

func readNumber(s string) number {
	n := parseNumber(strings.Trim(s, " \t\n\v\f\r"))
	exponent := strings.TrimLeft(s, " \t\n\r+-.0123456789")
	hasExponent := exponent != s && exponent != "" && exponent[0]|0x20 == 'e'
	n.certain = sqltoken.IsASCII(s) && !strings.ContainsAny(s, "\v\f") && !hasExponent
	return n
}

func parseNumber(s string) number {
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 {
		return number{zero: true}
	}
	integer := digits[:sqltoken.DigitsEnd(digits, 0)]
	rest, fraction := digits[len(integer):], ""
	if strings.HasPrefix(rest, ".") {
		fraction = rest[1:sqltoken.DigitsEnd(rest, 1)]
		rest = rest[1+len(fraction):]
	}
	if integer == "" && fraction == "" {
		return number{zero: true}
	}
	exponent := 0
	if end := sqltoken.ExponentEnd(rest, 0); end > 0 {
		var err error
		if exponent, err = strconv.Atoi(rest[1:end]); err != nil { // out of range; Atoi returns the limit
			exponent = math.MaxInt32
			if rest[1] == '-' {
				exponent = math.MinInt32
			}
		}
		exponent = min(max(exponent, math.MinInt32/2), math.MaxInt32/2) // leave range for the digits
		rest = rest[end:]
	}
	digits = strings.TrimLeft(integer+fraction, "0")
	if digits == "" {
		return number{zero: true, whole: rest == ""}
	}
	// The value is 0.digits times 10 to the power of point. 0.5 is rounded up.
	point := len(digits) - len(fraction) + exponent
	zero := point < 0 || point == 0 && digits[0] < '5'
	return number{zero: zero, negative: s[0] == '-', whole: rest == "", point: point}
}
