package driver

import (
	"database/sql/driver"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

func TestAppendValue_literals(t *testing.T) {
	for _, c := range []struct {
		v         driver.Value
		typ, want string
	}{
		{nil, "INT", "NULL"}, {[]byte(nil), "BLOB", "NULL"},
		{int64(-5), "BIGINT", "-5"}, {uint64(math.MaxUint64), "UNSIGNED BIGINT", "18446744073709551615"},
		{float32(16777217), "FLOAT", "1.6777216e+07"}, {0.1, "DOUBLE", "1e-01"}, {-1e300, "DOUBLE", "-1e+300"}, {"0.1", "DOUBLE", "1e-01"},
		{true, "TINYINT", "1"}, {false, "TINYINT", "0"},
		{[]byte("1234567890123.1234567"), "DECIMAL", "1234567890123.1234567"}, {[]byte("-0.50"), "DECIMAL", "-0.50"},
		{"1); DROP TABLE t; --", "DECIMAL", "_binary X'31293b2044524f50205441424c4520743b202d2d'"}, {"--1", "INT", "_binary X'2d2d31'"}, {"", "INT", "_binary X''"},
		{[]byte{1, 0x55}, "BIT", "0x0155"},
		{[]byte("it's"), "VARCHAR", "'it''s'"}, {"'", "TEXT", "''''"}, {`a\'b`, "CHAR", `_utf8mb4 X'615c2762'`}, {"é😀", "VARCHAR", "'é😀'"}, {"\xff", "TEXT", "_utf8mb4 X'ff'"},
		{`{"a": "b"}`, "JSON", `'{"a": "b"}'`}, {"0000-00-00", "DATE", "'0000-00-00'"},
		{[]byte("12"), "VARBINARY", "_binary X'3132'"}, {[]byte{}, "BLOB", "_binary X''"}, {[]byte{0}, "GEOMETRY", "_binary X'00'"},
	} {
		if have, err := appendValue(nil, c.v, c.typ); err != nil || string(have) != c.want {
			t.Errorf("%v %s\nhave: %s, %v\nwant: %s", c.v, c.typ, have, err, c.want)
		}
	}
	for _, v := range []driver.Value{time.Time{}, math.NaN(), math.Inf(1), struct{}{}} {
		if have, err := appendValue(nil, v, "DOUBLE"); err == nil {
			t.Errorf("%v: %s", v, have)
		}
	}
	if have, err := appendValue(nil, "x", "UNHEARD OF"); err == nil {
		t.Errorf("have: %s", have)
	}
}

func TestRowBuffer_inMemoryAndInFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, long := range []int{1, 1000} { // 20,000 rows of 1,000 bytes are more than stays in memory
		var b rowBuffer
		text := []byte(strings.Repeat("x", long))
		for i := range 20000 {
			if err := b.add(copiedRow{text[:i%long], text[:i%2], text[:long-1]}); err != nil {
				t.Fatal(err)
			}
		}
		if inFile := b.file != nil; inFile != (long > 1) {
			t.Errorf("%d bytes: in a file: %v", long, inFile)
		}
		if err := b.rewind(); err != nil {
			t.Fatal(err)
		}
		for i := range 20000 {
			row, err := b.next()
			if err != nil || len(row.before) != i%long || len(row.key) != i%2 || len(row.after) != long-1 {
				t.Fatalf("row %d: %d %d %d, %v", i, len(row.before), len(row.key), len(row.after), err)
			}
		}
		if _, err := b.next(); err != io.EOF {
			t.Errorf("after the last: %v", err)
		}
		if err := b.close(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}
