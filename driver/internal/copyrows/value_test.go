package copyrows

import (
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
)

// A value of each type is written so that the server reads the same value.
func TestValue_asItIsWritten(t *testing.T) {
	for _, c := range []struct {
		v          driver.Value
		typ        string
		text, arg  string // in a session of UTF-8
		other, hex string // in another session; empty if it is the same
	}{
		{nil, "INT", "?", "<nil>", "", ""},
		{[]byte(nil), "BLOB", "?", "<nil>", "", ""},
		{int64(-5), "BIGINT", "?", "-5", "", ""},
		{uint64(math.MaxUint64), "UNSIGNED BIGINT", "?", "18446744073709551615", "", ""},
		{[]byte("18446744073709551615"), "UNSIGNED BIGINT", "18446744073709551615", "", "", ""},
		{float32(0.1), "FLOAT", "?", "0.10000000149011612", "", ""},
		{-1e300, "DOUBLE", "?", "-1e+300", "", ""},
		{"0.1", "DOUBLE", "?", "0.1", "", ""},
		{[]byte("-1234567890123.1234567"), "DECIMAL", "-1234567890123.1234567", "", "", ""},
		{[]byte("1); DROP TABLE t; --"), "DECIMAL", "CONVERT(? USING utf8mb4)", "1); DROP TABLE t; --", "CONVERT(UNHEX(CONVERT(? USING ascii)) USING utf8mb4)", "31293b2044524f50205441424c4520743b202d2d"},
		{"it's é", "VARCHAR", "CONVERT(? USING utf8mb4)", "it's é", "CONVERT(UNHEX(CONVERT(? USING ascii)) USING utf8mb4)", "6974277320c3a9"},
		{"0000-00-00", "DATE", "CONVERT(? USING utf8mb4)", "0000-00-00", "CONVERT(UNHEX(CONVERT(? USING ascii)) USING utf8mb4)", "303030302d30302d3030"},
		{[]byte{0, 0xff}, "VARBINARY", "CAST(? AS BINARY)", "\x00\xff", "UNHEX(CONVERT(? USING ascii))", "00ff"},
	} {
		v, err := valueOf(c.v, c.typ)
		if err != nil {
			t.Errorf("%v %s: %v", c.v, c.typ, err)
			continue
		}
		for _, utf8 := range []bool{true, false} {
			wantText, wantArg := c.text, c.arg
			if !utf8 && c.other != "" {
				wantText, wantArg = c.other, c.hex
			}
			query, args := v.appendTo(nil, nil, utf8)
			arg := ""
			if len(args) == 1 {
				arg = fmt.Sprint(args[0].Value)
				if b, ok := args[0].Value.([]byte); ok {
					arg = string(b)
				}
			}
			if string(query) != wantText || arg != wantArg {
				t.Errorf("%v %s, utf8 %v\nhave: %s, %q\nwant: %s, %q", c.v, c.typ, utf8, query, arg, wantText, wantArg)
			}
		}
	}
	for _, v := range []driver.Value{time.Time{}, struct{}{}} {
		if have, err := valueOf(v, "DATETIME"); err == nil {
			t.Errorf("%v: %v", v, have)
		}
	}
}

// Rows are decoded as they were encoded.
func TestRows_decode(t *testing.T) {
	row := func(i int) []value {
		return []value{{}, {kind: kindMissing}, {kind: kindInt, number: uint64(-i)}, {kind: kindFloat, number: math.Float64bits(0.1)},
			{kind: kindText, number: uint64(i), bytes: []byte(strings.Repeat("x", i))}, {kind: kindBinary, bytes: []byte{}}}
	}
	r := rows{columns: make([]column, 6)}
	for i := range 300 {
		must.Do(t, r.add(row(i)))
	}
	have, rest := make([]value, 6), r.data
	for i := range 300 {
		if rest = decode(have, rest); !reflect.DeepEqual(have, row(i)) {
			t.Fatalf("row %d: %v", i, have)
		}
	}
	must.Equal(t, len(rest), 0, "bytes are left")
}
