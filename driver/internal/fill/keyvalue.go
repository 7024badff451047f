package fill

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// notText describes a value that isn't a text key; empty for a key.
func notText(key any) string {
	switch key.(type) {
	case nil:
		return "nil"
	case int64, uint64:
		return "an integer, whose generator must be an spi.Int64KeyGenerator"
	case string, []byte:
		if text, _ := sqltoken.TextOf(key); text == "" {
			return "an empty one"
		}
		return ""
	}
	return fmt.Sprintf("a %T", key)
}

// areConsecutive reports whether keys are n, n+1, ….
func areConsecutive(keys []int64) bool {
	for i, key := range keys {
		if key != keys[0]+int64(i) {
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
	}
	return "BIGINT NOT NULL"
}
