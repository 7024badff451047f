package sqltoken

import (
	"strconv"
	"strings"
)

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
	if s != "" && (s[0] == '+' || s[0] == '-') {
		end++
	}
	if end = DigitsEnd(s, end); end < len(s) && s[end] == '.' {
		end = DigitsEnd(s, end+1)
	}
	end = max(end, ExponentEnd(s, end))
	f, _ := strconv.ParseFloat(s[:end], 64) // out of range, it is infinite or 0
	return f
}

// numberEnd returns the end of the number that begins at start, 0 if there is none.
func numberEnd(text string, start int) int {
	if end := radixEnd(text, start); end > 0 {
		return end
	}
	end := DigitsEnd(text, start)
	if end < len(text) && text[end] == '.' {
		end = DigitsEnd(text, end+1)
		return max(end, ExponentEnd(text, end))
	}
	if end == len(text) || !IsWordByte(text[end]) {
		return end
	}
	return ExponentEnd(text, end)
}

// radixEnd returns the end of a 0x… or 0b… literal, 0 if there is none. 0X… is a name.
func radixEnd(text string, start int) int {
	end := WordEnd(text, start)
	if end-start < 3 || text[start] != '0' || text[start+1] != 'x' && text[start+1] != 'b' {
		return 0
	}
	for _, c := range []byte(text[start+2 : end]) {
		isHex := isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f'
		if text[start+1] == 'x' && !isHex || text[start+1] == 'b' && c != '0' && c != '1' {
			return 0
		}
	}
	return end
}

// ExponentEnd returns the end of the exponent that begins at pos, 0 if there is none.
func ExponentEnd(text string, pos int) int {
	if pos == len(text) || text[pos]|0x20 != 'e' {
		return 0
	}
	if pos++; pos < len(text) && (text[pos] == '+' || text[pos] == '-') {
		pos++
	}
	if end := DigitsEnd(text, pos); end > pos {
		return end
	}
	return 0
}

// DigitsEnd returns the end of the decimal digits at a position.
func DigitsEnd(text string, pos int) int {
	for pos < len(text) && isDigit(text[pos]) {
		pos++
	}
	return pos
}
