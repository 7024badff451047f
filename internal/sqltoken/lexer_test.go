package sqltoken

import (
	"fmt"
	"strings"
	"testing"
)

// lexed shows the tokens of a string: w(ord), q(uoted), s(tring), n(umber), ?, punctuation
// unchanged, and BAD.
func lexed(text string, mode Mode) string {
	lx := Lexer{Text: text, Mode: mode}
	var out []string
	for {
		t := lx.Next()
		s := text[t.Start:t.End]
		switch t.Kind {
		case EOF:
			return strings.Join(out, " ")
		case Bad:
			return strings.Join(append(out, fmt.Sprintf("BAD@%d", t.Start)), " ")
		case Word:
			s = "w:" + s
		case Quoted:
			s = "q:" + s
		case String:
			s = "s:" + s
		case Number:
			s = "n:" + s
		}
		out = append(out, s)
	}
}

func TestLexer_tokens(t *testing.T) {
	for _, c := range []struct {
		text string
		mode Mode
		want string
	}{
		{"", 0, ""},
		{" \t\n\v\f\r", 0, ""},
		{"SELECT a1,_b,$c", 0, "w:SELECT w:a1 , w:_b , w:$c"},
		{"日本 é", 0, "w:日本 w:é"},
		{"`a``b` 'it''s' \"x\"\"y\"", 0, "q:`a``b` s:'it''s' s:\"x\"\"y\""},
		{`'\'' "\""`, 0, `s:'\'' s:"\""`},
		{`'\' '\\'`, NoBackslashEscapes, `s:'\' s:'\\'`},
		{`"a\" "b"`, ANSIQuotes, `q:"a\" q:"b"`},
		{"`a\\`", 0, "q:`a\\`"},
		{"'a", 0, "BAD@0"}, {`'a\'`, 0, "BAD@0"}, {"x `a", 0, "w:x BAD@2"}, {"/* a", 0, "BAD@0"}, {"1 /*! 2", 0, "n:1 n:2"},
		{"0 12 1.5 .5 5. 1e5 1E+5 1e-5 1.5e5", 0, "n:0 n:12 n:1.5 n:.5 n:5. n:1e5 n:1E+5 n:1e-5 n:1.5e5"},
		{"0x1F 0b01 0X1F 0xg 0b2 0x", 0, "n:0x1F n:0b01 w:0X1F w:0xg w:0b2 w:0x"},
		{"1e 1e+ 12abc 1ea 1_0", 0, "w:1e w:1e + w:12abc w:1ea w:1_0"},
		{"1.5abc 1.e5 1.ex", 0, "n:1.5 w:abc n:1.e5 n:1. w:ex"},
		{"t.5 t.1e5 `t`.0x1F t .5 t. 5 +5 .5 . 5 6", 0, "w:t . w:5 w:t . w:1e5 q:`t` . w:0x1F w:t n:.5 w:t . n:5 + n:5 n:.5 . n:5 n:6"},
		{"a?b ?,?", 0, "w:a ? w:b ? , ?"},
		{"a -- b\nc --\td\ne --f", 0, "w:a w:c w:e - - w:f"},
		{"a --!b", 0, "w:a - - ! w:b"}, {"a --", 0, "w:a"}, {"a --\x01b", 0, "w:a"}, {"a # b\nc", 0, "w:a w:c"}, {"a #", 0, "w:a"},
		{"a/*b*/c /**/ d /*/ e */ f /***/ g", 0, "w:a w:c w:d w:f w:g"},
		{"a /*! b */ c /*!50000 d */ /*!100100 e */ /*M! f */ /*M!100100g*/", 0, "w:a w:b w:c w:d w:e w:f w:g"},
		{"/*!080000 a */ b", 0, "w:a w:b"},
		{"/*! a /* b */ c */ d", 0, "w:a w:c w:d"},
		{"/*! a /*! b */ c", 0, "w:a w:b w:c"},
		{"a * / b */ c", 0, "w:a * / w:b * / w:c"},
		{"@a @`b` @'c' @@d :e \\N", 0, "@ w:a @ q:`b` @ s:'c' @ @ w:d : w:e \\ w:N"},
		{"a\x00b", 0, "w:a \x00 w:b"},
	} {
		if have := lexed(c.text, c.mode); have != c.want {
			t.Errorf("%q\nhave: %s\nwant: %s", c.text, have, c.want)
		}
	}
}

// TestLexer_peek: peeking changes only recorded doubts and modes.
func TestLexer_peek(t *testing.T) {
	lx := Lexer{Text: `a /*! "b\"" */ c`}
	lx.Next()
	saved := lx
	if peeked := lx.Peek(); lx.Text[peeked.Start:peeked.End] != `"b\""` {
		t.Errorf("have: %v\nwant: the string", peeked)
	}
	if lx.Pos != saved.Pos || lx.Prev != saved.Prev {
		t.Errorf("have: %+v\nwant: %+v", lx, saved)
	}
	if lx.Unsure == "" || lx.UnsureAt != 2 || !lx.executable || lx.Consulted != ANSIQuotes|NoBackslashEscapes {
		t.Errorf("have: %q at %d, consulted %b\nwant: what was learnt", lx.Unsure, lx.UnsureAt, lx.Consulted)
	}
}

// The modes that a reading depends on add up, in whatever order they come.
func TestLexer_consulted(t *testing.T) {
	for text, want := range map[string]Mode{
		"a 1 ? (`b\\`)":         0,
		"[x]":                   MSSQL,
		`"y"`:                   ANSIQuotes,
		`'a\b'`:                 NoBackslashEscapes,
		`[x] "y" 'a\b'`:         MSSQL | ANSIQuotes | NoBackslashEscapes,
		`'a\b' [x] "y"`:         MSSQL | ANSIQuotes | NoBackslashEscapes,
		`"y" 'a\b' [x]`:         MSSQL | ANSIQuotes | NoBackslashEscapes,
		`"a\b"`:                 ANSIQuotes | NoBackslashEscapes,
		"[x] 'no end":           MSSQL,
		`[x] 'no end \ `:        MSSQL | NoBackslashEscapes,
		`'\`:                    NoBackslashEscapes,
		"[x] `no end \\ ":       MSSQL,
		`'a' 'it''s' '\\' "\""`: ANSIQuotes | NoBackslashEscapes,
	} {
		lx := NewLexer(text, 0, UTF8)
		for t := lx.Next(); t.Kind != EOF && t.Kind != Bad; t = lx.Next() {
		}
		if lx.Consulted != want {
			t.Errorf("%s\nhave: %b\nwant: %b", text, lx.Consulted, want)
		}
		ahead := NewLexer("[x] "+text, 0, UTF8)
		ahead.Next()
		if ahead.Peek(); ahead.Consulted&MSSQL == 0 {
			t.Errorf("%s, looked at ahead\nhave: %b\nwant: MSSQL as before", text, ahead.Consulted)
		}
	}
}
