package rewrite

import "strconv"

// decimal writes integers in decimal. Keys of one statement mostly follow each
// other, and the next number is the last one with its end counted up.
type decimal struct {
	value  int64
	digits []byte // of value; nil at first
	buf    [20]byte
}

// text returns the digits of n, valid until the next call.
func (d *decimal) text(n int64) []byte {
	if d.digits == nil || n != d.value+1 || n <= 0 || !d.increment() {
		d.digits = strconv.AppendInt(d.buf[:0], n, 10)
	}
	d.value = n
	return d.digits
}

// increment counts the digits up, unless they become one more.
func (d *decimal) increment() bool {
	for i := len(d.digits) - 1; i >= 0; i-- {
		if d.digits[i] < '9' {
			d.digits[i]++
			return true
		}
		d.digits[i] = '0'
	}
	return false
}
