package rewrite

import (
	"bytes"
	"testing"
)

func TestQuoteIdentifier(t *testing.T) {
	for name, want := range map[string]string{
		"id": "`id`", "": "``", "we`ird": "`we``ird`", "``": "``````", `a"b\`: "`a\"b\\`", "表": "`表`",
	} {
		if have := QuoteIdentifier(name); have != want {
			t.Errorf("%q\nhave: %s\nwant: %s", name, have, want)
		}
		if have := unquoteIdentifier(want); have != name {
			t.Errorf("%s\nhave: %q\nwant: %q", want, have, name)
		}
	}
	if have, want := QuoteTable("a.b", "c"), "`a.b`.`c`"; have != want {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
	if have, want := unquoteIdentifier(`"a""b"`), `a"b`; have != want {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
}

func TestUnquoteString(t *testing.T) {
	for _, c := range []struct {
		text string
		mode Mode
		want string
	}{
		{`''`, 0, ``}, {`'a'`, 0, `a`}, {`'it''s'`, 0, `it's`}, {`"it''s"`, 0, `it''s`}, {`"a""b"`, 0, `a"b`},
		{`'\n\t\r\b\0\Z\'\"\\\q'`, 0, "\n\t\r\b\x00\x1a'\"\\q"},
		{`'\%\_'`, 0, `\%\_`},
		{`'\n\\'`, NoBackslashEscapes, `\n\\`},
		{`'日''本'`, 0, `日'本`},
		{"'\xff\x00'", 0, "\xff\x00"},
	} {
		if have := unquoteString(c.text, c.mode); have != c.want {
			t.Errorf("%s mode %d\nhave: %q\nwant: %q", c.text, c.mode, have, c.want)
		}
	}
}

func TestAppendLiteral(t *testing.T) {
	for _, c := range []struct {
		key  any
		want string
		ok   bool
	}{
		{int64(-5), "-5", true},
		{uint64(1 << 63), "9223372036854775808", true},
		{"abc-DEF 1", "'abc-DEF 1'", true},
		{"", "''", true},
		{"it's", "_utf8mb4 X'69742773'", true},
		{`\`, "_utf8mb4 X'5c'", true},
		{"é", "_utf8mb4 X'c3a9'", true},
		{[]byte{0, 255}, "X'00ff'", true},
		{[]byte{}, "X''", true},
		{1.5, "", false},
		{nil, "", false},
	} {
		have, ok := AppendLiteral(nil, c.key)
		if string(have) != c.want || ok != c.ok {
			t.Errorf("%#v\nhave: %s %v\nwant: %s %v", c.key, have, ok, c.want, c.ok)
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
			literal, _ := AppendLiteral([]byte("("), k)
			literal = append(literal, ')')
			for mode := range Mode(8) {
				r := &parser{lexer: lexer{text: string(literal), mode: mode, engine: engine{all: true}}, plan: &Plan{}}
				r.next()
				v := r.expression(false)
				if end := r.next(); !r.isPunct(end, ')') || end.end != len(literal) || r.consulted != 0 {
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
