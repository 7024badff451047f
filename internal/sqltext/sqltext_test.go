package sqltext

import "testing"

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

func TestParseInteger_takesIntegersOnly(t *testing.T) {
	for text, want := range map[string]any{
		"0": int64(0), "7": int64(7), "-7": int64(-7), "+7": int64(7), "007": int64(7),
		"9223372036854775807": int64(1<<63 - 1), "9223372036854775808": uint64(1 << 63), "18446744073709551615": uint64(1<<64 - 1),
		"-9223372036854775808": int64(-1 << 63), "18446744073709551616": nil,
		"": nil, "a": nil, "1.0": nil, "1e3": nil, "0x10": nil, "1_0": nil, " 1": nil, "--1": nil,
	} {
		if have := ParseInteger(text, 10); have != want {
			t.Errorf("%q\nhave: %#v\nwant: %#v", text, have, want)
		}
	}
}
