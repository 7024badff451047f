package rewrite

import "testing"

func TestParseMode_names(t *testing.T) {
	for text, want := range map[string]Mode{
		"":                      0,
		"STRICT_TRANS_TABLES":   Strict,
		"STRICT_ALL_TABLES":     Strict,
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

// What is zero was asked of the servers, with an AUTO_INCREMENT column.
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
		{literal{"0.5", false}, false}, {literal{"5e-1", true}, true}, {literal{"1e-99999999999", false}, true}, {literal{"1e99999999999", false}, false},
		{literal{"0x0000000000000000", true}, true}, {literal{"0x000000000000000000", true}, false}, {literal{"0b", true}, true},
	} {
		if have := c.literal.isZero(); have != c.want {
			t.Errorf("%+v\nhave: %v\nwant: %v", c.literal, have, c.want)
		}
	}
}
