package shardkey

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Int64 is an int64 key that JSON has as a string. JavaScript's numbers, and so
// many readers of JSON, are exact up to 2^53 only, and round a key of 63 bits to
// another one. Use it as the type of a model's field, of a slice's elements or of
// a map's keys; database/sql takes it and scans into it as an int64, and 0 is no
// key. A single field can also be an int64 with the tag `json:",string"`, which
// reads strings alone.
type Int64 int64

// String returns the key in decimal.
func (k Int64) String() string { return strconv.FormatInt(int64(k), 10) }

// MarshalJSON returns the key in decimal, in quotes.
func (k Int64) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendInt([]byte{'"'}, int64(k), 10), '"'), nil
}

// UnmarshalJSON reads what [Int64.MarshalJSON] writes, and a JSON number that is
// an integer in int64's range; null leaves the key as it is.
func (k *Int64) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	text := string(data)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("shardkey: key %.40s in JSON: want an integer of 64 bits, as a string or a number", data)
	}
	*k = Int64(n)
	return nil
}
