package rewrite

import "testing"

func TestParseMode_names(t *testing.T) {
	for text, want := range map[string]Mode{
		"":                      0,
		"STRICT_TRANS_TABLES":   0,
		"ANSI_QUOTES":           ANSIQuotes,
		"ansi_quotes, strict":   ANSIQuotes,
		"ANSI":                  ANSIQuotes,
		"NO_BACKSLASH_ESCAPES":  NoBackslashEscapes,
		"NO_AUTO_VALUE_ON_ZERO": NoAutoValueOnZero,
		"REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI,NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO": 7,
		"XANSI_QUOTES": 0,
	} {
		if have := ParseMode(text); have != want {
			t.Errorf("%s\nhave: %b\nwant: %b", text, have, want)
		}
	}
}

// What is zero was asked of MariaDB 10.11 and an AUTO_INCREMENT column; the
// texts with false are other keys, or errors of the server.
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
		{literal{"0e5", false}, true}, {literal{"0x0", false}, false}, {literal{"0b0", false}, false}, {literal{"", false}, false},
		{literal{" ", false}, false}, {literal{"--0", false}, false}, {literal{"0abc", false}, false}, {literal{"NaN", false}, false},
		{literal{"Inf", false}, false}, {literal{"0_0", false}, false}, {literal{"0-0", false}, false},
	} {
		if have := c.literal.isZero(); have != c.want {
			t.Errorf("%+v\nhave: %v\nwant: %v", c.literal, have, c.want)
		}
	}
}
