package rewrite

import (
	"bytes"
	"testing"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// The servers showed which values are zero, with an AUTO_INCREMENT column.
func TestIsZero_literals(t *testing.T) {
	for _, c := range []struct {
		literal literal
		want    bool
	}{
		{literal{"0", true}, true}, {literal{"-0", true}, true}, {literal{"00.00", true}, true}, {literal{".0", true}, true},
		{literal{"0.", true}, true}, {literal{"0e9", true}, true}, {literal{"0x00", true}, true}, {literal{"0b0", true}, true},
		{literal{"0.49", true}, true}, {literal{"-0.4", true}, true}, {literal{"1e-9", true}, true},
		{literal{"0.5", true}, false}, {literal{"1", true}, false}, {literal{"0x1", true}, false}, {literal{"0b01", true}, false},
		{literal{"0", false}, true}, {literal{" 0 ", false}, true}, {literal{"+0", false}, true}, {literal{"0.4", false}, true},
		{literal{"0e5", false}, true}, {literal{"0x0", false}, true}, {literal{"0b0", false}, true}, {literal{"", false}, true},
		{literal{" ", false}, true}, {literal{"--0", false}, true}, {literal{"0abc", false}, true}, {literal{"NaN", false}, true},
		{literal{"Inf", false}, true}, {literal{"0_0", false}, true}, {literal{"0-0", false}, true}, {literal{"5-0", false}, false},
		{literal{"0.49999999999999999999", true}, true}, {literal{"4999999999999999999e-19", false}, true}, {literal{"5e-1", false}, false},
		{literal{"0.5", false}, false}, {literal{"5e-1", true}, true},
		{literal{"1e-99999999999999999999", false}, true}, {literal{"1e99999999999999999999", false}, false},
		{literal{"-1e0", true}, false}, {literal{"1e0", true}, false}, {literal{"-5e-1", true}, true}, {literal{"-6e-1", true}, false}, {literal{"1e-99999999999", false}, true}, {literal{"1e99999999999", false}, false},
		{literal{"0x0000000000000000", true}, true}, {literal{"0x000000000000000000", true}, false}, {literal{"0b", true}, true},
	} {
		if have := storing(c.literal, false, false) == storesZero; have != c.want {
			t.Errorf("%+v\nhave: %v\nwant: %v", c.literal, have, c.want)
		}
	}
}

// FuzzAppendLiteral holds that a key's literal is one value in every mode, and
// that plain ones read back as they were.
func FuzzAppendLiteral(f *testing.F) {
	for _, key := range []string{"", "a", "it's", `"`, `\`, "\x00\n", "日本", "--", "/*", "?"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		for _, k := range []any{key, []byte(key)} {
			literal, _ := sqltoken.AppendLiteral([]byte("("), k)
			literal = append(literal, ')')
			for mode := range sqltoken.Mode(8) {
				r := &parser{Lexer: sqltoken.Lexer{Text: string(literal), Mode: mode}, plan: &Plan{}}
				r.Next()
				v := r.expression(inRow)
				if end := r.Next(); !r.IsPunct(end, ')') || end.End != len(literal) || r.Consulted != 0 {
					t.Fatalf("%q in mode %d is no value: %s", key, mode, literal)
				}
				if l, ok := r.literal(r.inner(&v)); ok && l.text != key {
					t.Fatalf("have: %q\nwant: %q", l.text, key)
				}
			}
			if bytes.ContainsAny(literal, "?\\\"") && literal[1] != '\'' {
				t.Fatalf("%s", literal)
			}
		}
	})
}
