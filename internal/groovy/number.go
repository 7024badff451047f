package groovy

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// maxBits bounds a number, and maxDigits the text of one.
const (
	maxBits   = 4096
	maxDigits = 1200
)

var errTooLarge = &EvalError{Reason: "a number is too large"}

// parseInteger is Integer.parseInt or Long.parseLong.
func parseInteger(text string, class Class) (Value, error) {
	bits := 64
	if class == Integer {
		bits = 32
	}
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return Value{}, evalError("%q is no %s", clip(text), class)
	}
	return Value{class: class, n: n}, nil
}

// parseBig is new BigInteger(text).
func parseBig(text string) (Value, error) {
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return Value{}, evalError("%q is no BigInteger", clip(text))
	}
	if len(digits) > maxDigits {
		return Value{}, errTooLarge
	}
	n, _ := new(big.Int).SetString(strings.TrimPrefix(text, "+"), 10)
	return OfBig(n), nil
}

// parseDecimal is new BigDecimal(text), without exponents.
func parseDecimal(text string) (Value, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	unscaled, err := parseBig(whole + fraction)
	if err != nil || strings.ContainsAny(fraction, "+-") {
		return Value{}, evalError("%q is no BigDecimal", clip(text))
	}
	return ofDecimal(unscaled.big(), int64(len(fraction))), nil
}

// ofDecimal is the BigDecimal n / 10^scale.
func ofDecimal(n *big.Int, scale int64) Value { return Value{class: BigDecimal, n: scale, x: n} }

// big returns an integer, or a BigDecimal without its scale, as a *big.Int that
// must not be changed.
func (v Value) big() *big.Int {
	if n, ok := v.x.(*big.Int); ok {
		return n
	}
	return big.NewInt(v.n)
}

// decimal returns a number as a BigDecimal.
func (v Value) decimal() (Value, error) {
	switch v.class {
	case Integer, Long, BigInteger:
		return ofDecimal(v.big(), 0), nil
	case BigDecimal:
		return v, nil
	}
	return Value{}, evalError("a %s is no BigDecimal", v.class)
}

// float returns a number as a double.
func (v Value) float() float64 {
	switch v.class {
	case Double:
		return v.double()
	case Integer, Long:
		return float64(v.n)
	}
	f, _ := strconv.ParseFloat(v.String(), 64)
	return f
}

// truncated returns a number without its fraction.
func (v Value) truncated() (*big.Int, error) {
	switch v.class {
	case Integer, Long, BigInteger:
		return v.big(), nil
	case BigDecimal:
		return scaled(v.big(), -v.n, towardZero)
	}
	f := v.double()
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errTooLarge
	}
	n, _ := big.NewFloat(f).Int(nil)
	return n, nil
}

// longValue keeps the low 64 bits, as Java does for all but doubles, which stop
// at the ends.
func (v Value) longValue() (int64, error) {
	if v.IsInteger() {
		return v.n, nil
	}
	n, err := v.truncated()
	if err != nil {
		return 0, err
	}
	if v.class == Double && !n.IsInt64() {
		if n.Sign() < 0 {
			return math.MinInt64, nil
		}
		return math.MaxInt64, nil
	}
	low := new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64))
	return int64(low.Uint64()), nil
}

// LongValue is Number.longValue(): the low 64 bits, without a fraction. ok is
// false for what is no number.
func (v Value) LongValue() (n int64, ok bool) {
	if !v.isNumber() {
		return 0, false
	}
	n, err := v.longValue()
	return n, err == nil
}

func pow10(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }

type rounding int

const (
	towardZero rounding = iota
	halfUp
)

// scaled returns n · 10^by, rounded when by is negative.
func scaled(n *big.Int, by int64, how rounding) (*big.Int, error) {
	switch {
	case by > maxDigits || by < -maxDigits:
		return nil, errTooLarge
	case by >= 0:
		return new(big.Int).Mul(n, pow10(by)), nil
	}
	return divided(n, pow10(-by), how), nil
}

// divided returns n / d, rounded.
func divided(n, d *big.Int, how rounding) *big.Int {
	q, r := new(big.Int).QuoRem(n, d, new(big.Int))
	if twice := new(big.Int).Lsh(r, 1); how == halfUp && twice.CmpAbs(d) >= 0 {
		q.Add(q, big.NewInt(int64(n.Sign()*d.Sign())))
	}
	return q
}

// quotient is Groovy's a / b of two BigDecimals: exact where it ends, otherwise of
// ten digits more than the longer of them, and no more than ten after the point
// (or as many as they have).
func quotient(a, b Value) (Value, error) {
	n, d := a.big(), b.big()
	if d.Sign() == 0 {
		return Value{}, evalError("division by zero")
	}
	if v, ok := exactQuotient(n, d, a.n-b.n); ok {
		return v, nil
	}
	precision := int64(max(digits(n), digits(d)) + 10)
	// As many digits after the point as give this precision: one more or less is
	// corrected below.
	scale := precision - int64(digits(n)) + int64(digits(d))
	var q *big.Int
	for {
		if scale > maxDigits || scale < -maxDigits {
			return Value{}, errTooLarge
		}
		num, den := n, d
		if scale >= 0 {
			num = new(big.Int).Mul(n, pow10(scale))
		} else {
			den = new(big.Int).Mul(d, pow10(-scale))
		}
		q = divided(num, den, halfUp)
		if int64(digits(q)) <= precision {
			break
		}
		scale--
	}
	scale += a.n - b.n
	if most := max(a.n, b.n, 10); scale > most {
		var err error
		if q, err = scaled(q, most-scale, halfUp); err != nil {
			return Value{}, err
		}
		scale = most
	}
	return ofDecimal(q, scale), nil
}

// exactQuotient returns n/d with the fewest digits after the point that are
// exact, and no fewer than preferred.
func exactQuotient(n, d *big.Int, preferred int64) (Value, bool) {
	if n.Sign() == 0 {
		return ofDecimal(new(big.Int), max(preferred, 0)), true
	}
	common := new(big.Int).GCD(nil, nil, new(big.Int).Abs(n), new(big.Int).Abs(d))
	n, d = new(big.Int).Quo(n, common), new(big.Int).Quo(d, common)
	// 1/d ends when d is 2^i · 5^j, and then after max(i, j) digits.
	rest := new(big.Int).Abs(d)
	twos := int64(rest.TrailingZeroBits())
	rest.Rsh(rest, uint(twos))
	fives, five, r := int64(0), big.NewInt(5), new(big.Int)
	for q := new(big.Int); rest.BitLen() > 1; fives++ {
		if q.QuoRem(rest, five, r); r.Sign() != 0 {
			return Value{}, false
		}
		rest.Set(q)
	}
	after := max(twos, fives)
	q := new(big.Int).Quo(new(big.Int).Mul(n, pow10(after)), d)
	for scale := after + preferred; ; scale-- {
		tenth, r := new(big.Int).QuoRem(q, big.NewInt(10), new(big.Int))
		if scale <= preferred || r.Sign() != 0 {
			return ofDecimal(q, scale), true
		}
		q = tenth
	}
}

func digits(n *big.Int) int { return len(new(big.Int).Abs(n).Text(10)) }

// appendDecimal is BigDecimal.toString().
func appendDecimal(b []byte, v Value) []byte {
	text := v.big().Append(nil, 10)
	if text[0] == '-' {
		b, text = append(b, '-'), text[1:]
	}
	scale := int(v.n)
	exponent := len(text) - 1 - scale
	switch {
	case scale == 0:
		return append(b, text...)
	case scale > 0 && exponent >= -6:
		if missing := scale - len(text) + 1; missing > 0 {
			text = append(bytes.Repeat([]byte{'0'}, missing), text...)
		}
		b = append(b, text[:len(text)-scale]...)
		return append(append(b, '.'), text[len(text)-scale:]...)
	}
	b = append(b, text[0])
	if len(text) > 1 {
		b = append(append(b, '.'), text[1:]...)
	}
	if exponent == 0 {
		return b
	}
	b = append(b, 'E')
	if exponent > 0 {
		b = append(b, '+')
	}
	return strconv.AppendInt(b, int64(exponent), 10)
}

// Cut returns the value's text without some characters at its beginning and its
// end. At least one must be left.
func (v Value) Cut(start, end int64) (Value, error) {
	s := v.String()
	length := int64(textLength(s))
	if length-end <= start {
		return Value{}, evalError("nothing of it is left between start-offset and stop-offset")
	}
	return substring(s, int(start), int(length-end))
}

// Remainder is the integer that a text is, modulo n, never negative.
func (v Value) Remainder(n int64) (int64, error) {
	if k, err := strconv.ParseInt(v.s, 10, 64); v.class == String && err == nil {
		if k %= n; k < 0 {
			k += n
		}
		return k, nil
	}
	k, err := parseBig(v.String())
	if err != nil {
		return 0, err
	}
	return new(big.Int).Mod(k.big(), big.NewInt(n)).Int64(), nil
}
