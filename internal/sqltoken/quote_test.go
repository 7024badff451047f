package sqltoken

import (
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

func TestUnquoteString_literals(t *testing.T) {
	for _, c := range []struct {
		text string
		mode Mode
		want string
	}{
		{`''`, 0, ``}, {`'a'`, 0, `a`}, {`'it''s'`, 0, `it's`}, {`"it''s"`, 0, `it''s`}, {`"a""b"`, 0, `a"b`},
		{`'\n\t\r\b\0\Z\'\"\\\q'`, 0, "\n\t\r\b\x00\x1a'\"\\q"},
		{`'\%\_'`, 0, `\%\_`}, {`'''x'`, 0, `'x`}, {`'x\'`, 0, `x\`}, {`'\x'`, 0, `x`},
		{`'\n\\'`, NoBackslashEscapes, `\n\\`},
		{`'日''本'`, 0, `日'本`},
		{"'\xff\x00'", 0, "\xff\x00"},
	} {
		must.Equal(t, UnquoteString(c.text, c.mode), c.want, c.text, "mode", c.mode)
	}
}

func TestUnquoteIdentifier_undoesQuotes(t *testing.T) {
	for text, want := range map[string]string{
		"`id`": "id", "``": "", "`we``ird`": "we`ird", `"a""b"`: `a"b`,
	} {
		must.Equal(t, UnquoteIdentifier(text), want, text)
	}
}

func TestQuoteIdentifier_doublesBackquotes(t *testing.T) {
	for name, want := range map[string]string{
		"id": "`id`", "": "``", "we`ird": "`we``ird`", "``": "``````", `a"b\`: "`a\"b\\`", "表": "`表`",
	} {
		if have := QuoteIdentifier(name); have != want {
			t.Errorf("%q\nhave: %s\nwant: %s", name, have, want)
		}
	}
	must.Equal(t, QuoteTable("a.b", "c"), "`a.b`.`c`")
	must.Equal(t, QuoteTable("", "c"), "`c`")
}

func TestAppendLiteral_meansTheSameInEveryMode(t *testing.T) {
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
