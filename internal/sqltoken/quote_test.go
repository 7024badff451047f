package sqltoken

import (
	"strings"
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

// Each byte has its classes, in UTF-8 and in the character sets where one above 0x7F may
// be a blank.
func TestClass_bytes(t *testing.T) {
	const words = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$"
	for c := range 256 {
		in := func(set string) bool { return c < 0x80 && strings.IndexByte(set, byte(c)) >= 0 }
		var want uint8
		for _, has := range []struct {
			class uint8
			in    bool
		}{
			{classWord, c >= 0x80 || in(words)}, {classBlank, in(" \t\n\v\f\r")}, {classComment, in("#-/*")}, {classVerb, in("iIrRlL")},
		} {
			if has.in {
				want |= has.class
			}
		}
		if class[c] != want {
			t.Errorf("%q\nhave: %b\nwant: %b", rune(c), class[c], want)
		}
		significant := in("#-/*'\"`[(),;?@")
		if have := UTF8.ValueBytes()[c]; have != significant {
			t.Errorf("%q in a row\nhave: %v\nwant: %v", rune(c), have, significant)
		}
		if have := latin1.ValueBytes()[c]; have != (significant || c >= 0x80) {
			t.Errorf("%q in a row of latin1\nhave: %v\nwant: %v", rune(c), have, significant || c >= 0x80)
		}
	}
}

// Words are compared ignoring the case of A to Z only.
func TestFold_letters(t *testing.T) {
	for c := range byte(0x80) {
		for upper := byte('A'); upper <= 'Z'; upper++ {
			want := c == upper || c == upper|0x20
			if have := Is(string(rune(c)), string(rune(upper))); have != want {
				t.Errorf("%q and %q\nhave: %v\nwant: %v", c, upper, have, want)
			}
			if have := Contains("x"+string(rune(c)), "X"+string(rune(upper))); have != want {
				t.Errorf("%q and %q as the end of a word\nhave: %v\nwant: %v", c, upper, have, want)
			}
		}
	}
}

func TestValidPrefix_cutsWhatIsNoUTF8(t *testing.T) {
	for name, want := range map[string]string{"": "", "t": "t", "tü表": "tü表", "t\xc3": "t", "tü\xf0\x9f": "tü", "\xa0t": "", "t\ufffd": "t\ufffd"} {
		if have := ValidPrefix(name); have != want {
			t.Errorf("%q\nhave: %q\nwant: %q", name, have, want)
		}
	}
}

func TestASCIIEnd_findsTheFirst(t *testing.T) {
	for _, n := range []int{0, 1, 7, 31, 32, 33, 64, 100} {
		ascii := strings.Repeat("a", n)
		must.Equal(t, asciiEnd(ascii), n)
		must.Equal(t, asciiEnd(ascii+"\x80"+strings.Repeat("é", 20)), n)
		for at := range n { // one alone, at each place
			must.Equal(t, asciiEnd(ascii[:at]+"\x80"+ascii[at:]), at)
		}
	}
}
