package driver

import (
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// notAKey returns the error for a value that requests a key or isn't one.
func notAKey(i, n int, found string) error {
	return fmt.Errorf("key %d of %d: expected an integer other than 0, or a string or []byte that isn't empty, found %s", i+1, n, found)
}

// kindOf returns the kind of a key. If the value isn't one, found describes it.
func kindOf(key any) (kind keyKind, found string) {
	switch k := key.(type) {
	case int64, uint64:
		if k == int64(0) || k == uint64(0) {
			found = "0"
		}
		return kindInteger, found
	case string, []byte:
		if text, _ := sqltoken.TextOf(k); text == "" {
			found = "an empty one"
		}
		return kindText, found
	}
	return kindUnknown, fmt.Sprintf("a %T", key)
}

// areConsecutive reports whether integer keys are n, n+1, …. It returns true for other keys.
func areConsecutive(keys *rewrite.Keys) bool {
	for i, key := range keys.Ints {
		if key != keys.Ints[0]+int64(i) {
			return false
		}
	}
	for i, key := range keys.Values {
		first, ok := keys.Values[0].(int64)
		if ok && key != first+int64(i) {
			return false
		}
	}
	return true
}

// typeFor returns a column type that can store the key.
func typeFor(key any) string {
	const uuid = 36
	switch key := key.(type) {
	case string:
		return "VARCHAR(" + strconv.Itoa(max(uuid, utf8.RuneCountInString(key))) + ") NOT NULL"
	case []byte:
		return "VARBINARY(" + strconv.Itoa(len(key)) + ") NOT NULL"
	case uint64:
		if key > math.MaxInt64 {
			return "BIGINT UNSIGNED NOT NULL"
		}
	}
	return "BIGINT NOT NULL"
}

// boxedKeys converts int64 keys to interface values, with one allocation for many keys. The elements of
// an array in an interface value can't change, so package reflect doesn't copy them. The zero value is
// ready to use.
type boxedKeys struct {
	keys  *int64 // the first of the keys that array is about
	array reflect.Value
	first int // the index of the array's first key
}

// at returns key i of keys, which must not change meanwhile.
func (b *boxedKeys) at(keys []int64, i int) any {
	const most = 64
	if len(keys) == 1 {
		return keys[0]
	}
	if b.keys != &keys[0] || i < b.first || i >= b.first+most {
		var array [most]int64
		copy(array[:], keys[i:])
		b.keys, b.array, b.first = &keys[0], reflect.ValueOf(array), i
	}
	return b.array.Index(i - b.first).Interface()
}

// boundInteger returns a bound key as an integer column stores it, nil if only the server knows it.
func boundInteger(bound driver.Value) any {
	const exact = 1 << 53
	switch v := bound.(type) {
	case bool:
		if v {
			return int64(1)
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < exact {
			return int64(v)
		}
	}
	text, ok := sqltoken.TextOf(bound)
	if !ok {
		return boundKey(kindInteger, bound)
	}
	whole, fraction, _ := strings.Cut(strings.Trim(text, " \t\n\v\f\r"), ".")
	if strings.Trim(fraction, "0") != "" {
		return nil
	}
	return sqltoken.ParseInteger(whole, 10)
}

// boundKey returns a bound key as the table stores it, nil if only the server knows it.
func boundKey(kind keyKind, bound driver.Value) any {
	switch v := bound.(type) {
	case int64, uint64:
		return v
	case []byte:
		if kind != kindInteger {
			return append([]byte(nil), v...)
		}
	}
	text, ok := sqltoken.TextOf(bound)
	switch {
	case !ok:
		return nil
	case kind == kindInteger:
		return sqltoken.ParseInteger(text, 10)
	}
	return text
}
