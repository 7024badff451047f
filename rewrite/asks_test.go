package rewrite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
)

// TestAsks: which arguments request a key, by the key column and sql_mode.
func TestAsks(t *testing.T) {
	const lax, strict, keepsZero, emptyIsNull = "", "STRICT_ALL_TABLES", "NO_AUTO_VALUE_ON_ZERO", "EMPTY_STRING_IS_NULL"
	type column struct{ unsigned, text bool }
	signed, unsigned, text := column{}, column{unsigned: true}, column{text: true}
	negativeZero := math.Copysign(0, -1)
	for _, tt := range []struct {
		value  any
		column column
		mode   string
		want   string // asks, keeps or uncertain
	}{
		{nil, signed, strict, "asks"}, {nil, text, keepsZero, "asks"},
		{int64(0), signed, strict, "asks"}, {int64(0), unsigned, strict, "asks"}, {int64(0), unsigned, lax, "asks"}, {int64(0), signed, keepsZero, "keeps"},
		{int64(5), signed, strict, "keeps"}, {int64(-5), signed, strict, "keeps"}, {int64(-5), unsigned, strict, "keeps"}, {int64(-5), unsigned, lax, "asks"},
		{uint64(0), unsigned, strict, "asks"}, {uint64(math.MaxUint64), unsigned, strict, "keeps"},
		{false, signed, strict, "asks"}, {true, signed, strict, "keeps"},
		{0.0, signed, strict, "asks"}, {0.0, unsigned, strict, "asks"}, {negativeZero, unsigned, strict, "asks"}, {0.4, signed, strict, "asks"},
		{-0.4, signed, strict, "asks"}, {-0.4, unsigned, strict, "uncertain"}, {-0.4, unsigned, lax, "asks"},
		{0.5, signed, strict, "uncertain"}, {-0.5, signed, lax, "uncertain"}, {0.6, signed, strict, "keeps"}, {1.5, unsigned, strict, "keeps"},
		{-1.5, unsigned, strict, "keeps"}, {-1.5, unsigned, lax, "asks"}, {math.NaN(), signed, strict, "uncertain"}, {math.Inf(-1), unsigned, lax, "uncertain"},
		{time.Unix(0, 0), signed, lax, "uncertain"},
		{"0", signed, strict, "asks"}, {"0", unsigned, strict, "asks"}, {"5", signed, strict, "keeps"}, {"abc", signed, lax, "asks"}, {"abc", signed, strict, "keeps"},
		{"0.5", signed, strict, "keeps"}, {"0.4", signed, strict, "asks"}, {"-5", unsigned, lax, "asks"}, {"0x", signed, strict, "keeps"},
		{"", signed, emptyIsNull, "asks"}, {"", signed, lax, "asks"},
		{"0", text, strict, "asks"}, {"", text, strict, "asks"}, {"abc", text, strict, "keeps"}, {"0.4", text, lax, "asks"}, {"0abc", text, lax, "keeps"},
		{"5", text, strict, "keeps"}, {"1e-99999999999999999999", signed, lax, "asks"}, {"1e99999999999999999999", signed, lax, "keeps"},
	} {
		p := mustParse(t, "INSERT INTO t (id, a) VALUES (?, 1)", Options{Table: func(string, string) *Table { return &Table{Key: "id"} }})
		of := *p.Insert.Table
		of.InStrings, of.Unsigned = tt.column.text, tt.column.unsigned
		asked, n, err := p.Insert.Asks([]driver.NamedValue{{Value: tt.value}}, &tt.mode, &of)
		have := "keeps"
		switch refused := (*StatementError)(nil); {
		case errors.As(err, &refused):
			have = "uncertain"
			must.Equal(t, fmt.Sprintln(refused.Row, refused.Column, errors.Is(err, ErrUnsupportedStatement)), "1 id true\n")
		case err != nil:
			have = err.Error()
		case asked[0]:
			have = "asks"
		}
		must.Equal(t, have, tt.want, fmt.Sprintf("%T %v, %+v, %q", tt.value, tt.value, tt.column, tt.mode))
		must.Equal(t, n == 1, have == "asks")
	}
}

// TestAsks_literals: a literal that is the key requests one if the column stores it as 0.
func TestAsks_literals(t *testing.T) {
	for text, want := range map[string]KeySource{"5e-1": Generated, "-5e-1": Generated, "-6e-1": Literal, "6e-1": Literal, "0": Generated, "-1": Literal} {
		p := mustParse(t, "INSERT INTO t (id, a) VALUES ("+text+", 1)",
			Options{SQLMode: "STRICT_ALL_TABLES", Table: func(string, string) *Table { return &Table{Key: "id", Unsigned: true} }})
		must.Equal(t, p.Insert.Rows[0].Key, want, text)
	}
}

// TestRewrite_nothing: a generator isn't called for no keys.
func TestRewrite_nothing(t *testing.T) {
	p := mustParse(t, "INSERT INTO t (id, a) VALUES (?, ?)", Options{Table: func(string, string) *Table { return &Table{Key: "id"} }})
	args := []any{5, 6}
	_, have, err := p.Rewrite(args, func(*Insert, int) ([]any, error) { return nil, errors.New("called") })
	must.Do(t, err)
	must.Equal(t, &have[0], &args[0])
}

// TestStatementError_place: an error without a place doesn't print one.
func TestStatementError_place(t *testing.T) {
	err := StatementError{Reason: unsupported, Sentinel: ErrUnsupportedStatement, Message: "m"}
	must.Equal(t, err.Error(), ErrUnsupportedStatement.Error()+": m")
}
