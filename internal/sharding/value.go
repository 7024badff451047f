package sharding

import (
	"math"
	"math/big"
	"reflect"
	"time"

	"github.com/shardkey/shardkey/internal/groovy"
)

// ValueOf returns what a Go value is in Java: an integer a Long, or a BigInteger
// where it is larger, a text a String, a bool a Boolean, a float a Double, a
// time.Time a LocalDateTime of its wall clock, a *big.Int a BigInteger, nil null. ok is false for all
// others: a []byte, whose hash in Java is not one of its content, among them.
func ValueOf(v any) (value groovy.Value, ok bool) {
	switch v := v.(type) {
	case nil:
		return groovy.Value{}, true
	case int64:
		return groovy.OfLong(v), true
	case string:
		return groovy.OfString(v), true
	case float64:
		return groovy.OfDouble(v), true
	case bool:
		return groovy.OfBool(v), true
	case time.Time:
		return groovy.OfTime(v), true
	case *big.Int:
		return groovy.OfBig(v), true
	}
	switch rv := reflect.ValueOf(v); {
	case rv.CanInt():
		return groovy.OfLong(rv.Int()), true
	case rv.CanUint() && rv.Uint() <= math.MaxInt64:
		return groovy.OfLong(int64(rv.Uint())), true
	case rv.CanUint():
		return groovy.OfBig(new(big.Int).SetUint64(rv.Uint())), true
	case rv.Kind() == reflect.String:
		return groovy.OfString(rv.String()), true
	case rv.Kind() == reflect.Float32:
		return groovy.OfDouble(rv.Float()), true
	case rv.Kind() == reflect.Bool:
		return groovy.OfBool(rv.Bool()), true
	}
	return groovy.Value{}, false
}
