package driver

import (
	"fmt"
	"math"
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

// storedInteger returns the integer that an integer column stores for a string, nil if only the server
// knows it.
func storedInteger(text string) any {
	whole, fraction, _ := strings.Cut(strings.Trim(text, " \t\n\v\f\r"), ".")
	if strings.Trim(fraction, "0") != "" {
		return nil
	}
	return sqltoken.ParseInteger(whole, 10)
}
