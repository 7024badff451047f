package sqltoken

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
		"EMPTY_STRING_IS_NULL,MSSQL,NO_AUTO_VALUE_ON_ZERO,NO_BACKSLASH_ESCAPES,ANSI_QUOTES,TRADITIONAL": 63,
		"STRICT_ALL_TABLES,ANSI,NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO,MSSQL,EMPTY_STRING_IS_NULL":  63,
	} {
		if have := ParseMode(text); have != want {
			t.Errorf("%s\nhave: %b\nwant: %b", text, have, want)
		}
	}
}

func TestParseCharset_names(t *testing.T) {
	for name, want := range map[string]Charset{
		"utf8mb4": UTF8, "UTF8MB3": UTF8, "utf8": UTF8, "latin1": latin1, "ascii": latin1,
		"binary": other, "gb18030": other, "cp932": other, "big5": other, "cp866": other,
		"": other, "made_up": other,
	} {
		if have := ParseCharset(name); have != want {
			t.Errorf("%s\nhave: %d\nwant: %d", name, have, want)
		}
	}
}
