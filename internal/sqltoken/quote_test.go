package sqltoken

import "testing"

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
		if have := UnquoteString(c.text, c.mode); have != c.want {
			t.Errorf("%s mode %d\nhave: %q\nwant: %q", c.text, c.mode, have, c.want)
		}
	}
}

func TestUnquoteIdentifier_undoesQuotes(t *testing.T) {
	for text, want := range map[string]string{
		"`id`": "id", "``": "", "`we``ird`": "we`ird", `"a""b"`: `a"b`,
	} {
		if have := UnquoteIdentifier(text); have != want {
			t.Errorf("%s\nhave: %q\nwant: %q", text, have, want)
		}
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
	if have, want := QuoteTable("a.b", "c"), "`a.b`.`c`"; have != want {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
	if have, want := QuoteTable("", "c"), "`c`"; have != want {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
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
