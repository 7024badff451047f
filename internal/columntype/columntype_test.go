package columntype

import (
	"math"
	"testing"
)

func TestType_holds(t *testing.T) {
	const most = uint64(math.MaxUint64)
	for _, c := range []struct {
		typ   string
		fit   []any
		unfit []any
	}{
		{"int(11)", []any{int64(0), int64(math.MaxInt32), int64(math.MinInt32), "12"}, []any{int64(math.MaxInt32 + 1), int64(math.MinInt32 - 1), most, "x", "2147483648"}},
		{"int unsigned", []any{int64(math.MaxUint32)}, []any{int64(math.MaxUint32 + 1), int64(-1)}},
		{"tinyint(3) unsigned zerofill", []any{int64(255)}, []any{int64(256)}},
		{"mediumint", []any{int64(1<<23 - 1)}, []any{int64(1 << 23)}},
		{"bigint(20)", []any{int64(math.MaxInt64), int64(math.MinInt64)}, []any{most, "9223372036854775808"}},
		{"BIGINT UNSIGNED", []any{int64(math.MaxInt64), most}, []any{int64(-1), "550e8400-e29b-41d4-a716-446655440000"}},
		{"decimal(18,0)", []any{int64(999999999999999999)}, []any{int64(1000000000000000000), int64(-1000000000000000000)}},
		{"decimal(20,0)", []any{int64(math.MaxInt64), int64(math.MinInt64), most}, []any{"x"}},
		{"decimal(10,2) unsigned", []any{int64(99999999)}, []any{int64(100000000), int64(-1)}},
		{"double", []any{int64(1<<53 - 1)}, []any{int64(1<<53 + 1)}},
		{"float", []any{int64(1<<24 - 1)}, []any{int64(1<<24 + 1)}},
		{"bit(9)", []any{int64(511)}, []any{int64(512), "5"}},
		{"char(3)", []any{"abc", "äöü", int64(123), int64(-12)}, []any{"abcd", int64(1234), most}},
		{"varchar(4)", []any{"", "abcd", []byte("äöüß")}, []any{"abcde"}},
		{"binary(16)", []any{make([]byte, 16)}, []any{"550e8400-e29b-41d4-a716-446655440000", make([]byte, 17)}},
		{"varbinary(4)", []any{"äö"}, []any{"äöü"}},
		{"text", []any{"anything", most}, nil},
		{"uuid", []any{"550e8400-e29b-41d4-a716-446655440000", "550E8400E29B41D4A716446655440000", make([]byte, 16)}, []any{int64(1), "", "abcdefghijklmnop"}},
		{"inet4", []any{"10.0.0.1", make([]byte, 4)}, []any{int64(1), "::1", "550e8400-e29b-41d4-a716-446655440000"}},
		{"inet6", []any{"10.0.0.1", "::1", make([]byte, 16)}, []any{int64(1), "x", make([]byte, 5)}},
		{"enum('a(1)','b')", nil, []any{"c", int64(3)}},
		{"set('a','b')", nil, []any{"c", int64(9)}},
		{"year(4)", nil, []any{int64(1 << 40), "x"}},
		{"year", nil, []any{int64(1 << 40)}},
		{"date", nil, []any{int64(1 << 40), "x"}},
		{"datetime(6)", nil, []any{int64(1 << 40), "x"}},
		{"timestamp", nil, []any{int64(1 << 40), "x"}},
		{"time", nil, []any{int64(1 << 40), "x"}},
		{"json", nil, []any{"x"}},
		{"", []any{"anything", most}, nil},
	} {
		typ := Parse(c.typ)
		for _, key := range c.fit {
			if !typ.Holds(key) {
				t.Errorf("%s does not hold %v", c.typ, key)
			}
		}
		for _, key := range c.unfit {
			if typ.Holds(key) {
				t.Errorf("%s holds %v", c.typ, key)
			}
		}
	}
}
