package rewrite

import "testing"

func TestParseCharset_names(t *testing.T) {
	for name, want := range map[string]Charset{
		"utf8mb4": CharsetUTF8, "UTF8MB3": CharsetUTF8, "binary": CharsetUTF8, "gb18030": charsetGBK, "cp932": charsetSJIS,
		"big5": charsetBig5, "ujis": charsetEUC, "latin1": charsetNBSP, "cp866": charsetDOS, "ascii": charsetSingle,
		"": charsetUnknown, "made_up": charsetUnknown,
	} {
		if have := ParseCharset(name); have != want {
			t.Errorf("%s\nhave: %d\nwant: %d", name, have, want)
		}
	}
}

func TestCharset_charLen(t *testing.T) {
	for _, c := range []struct {
		charset Charset
		text    string
		want    int
	}{
		{charsetGBK, "\x81\x40", 2}, {charsetGBK, "\xfe\x80", 2}, {charsetGBK, "\x80\x5c", 1}, {charsetGBK, "\xff\x5c", 1},
		{charsetGBK, "\x81\x7f", 1}, {charsetGBK, "\x81'", 1}, {charsetGBK, "\x81\xff", 1}, {charsetGBK, "\x81", 1},
		{charsetBig5, "\xa1\x5c", 2}, {charsetBig5, "\xf9\xfe", 2}, {charsetBig5, "\xa0\x5c", 1}, {charsetBig5, "\xfa\x5c", 1}, {charsetBig5, "\xa1\x80", 1},
		{charsetSJIS, "\x81\x5c", 2}, {charsetSJIS, "\xfc\xfc", 2}, {charsetSJIS, "\xa0\x5c", 1}, {charsetSJIS, "\xdf\x5c", 1}, {charsetSJIS, "\xe0\xfd", 1},
	} {
		if have := c.charset.charLen(c.text, 0); have != c.want {
			t.Errorf("%d %q\nhave: %d\nwant: %d", c.charset, c.text, have, c.want)
		}
	}
}

func TestCharset_validPrefix(t *testing.T) {
	for _, c := range []struct {
		charset    Charset
		name, want string
	}{
		{CharsetUTF8, "t", "t"}, {CharsetUTF8, "tü表", "tü表"}, {CharsetUTF8, "t\xc3", "t"}, {CharsetUTF8, "tü\xf0\x9f", "tü"},
		{charsetNBSP, "t\xc3", "t\xc3"}, {charsetGBK, "t\xb6\xa9", "t\xb6\xa9"}, {charsetGBK, "t\xb6", "t"},
		{charsetEUC, "t\xb6\xa9", "t"}, {charsetUnknown, "t\xb6", "t"},
	} {
		if have := c.charset.validPrefix(c.name); have != c.want {
			t.Errorf("%d %q\nhave: %q\nwant: %q", c.charset, c.name, have, c.want)
		}
	}
}

func TestCharset_quoteName(t *testing.T) {
	for _, c := range []struct {
		charset    Charset
		name, want string
	}{
		{CharsetUTF8, "a`b", "`a``b`"}, {charsetSJIS, "\x83\x60`", "`\x83\x60```"}, {charsetSJIS, "\xb1`", "`\xb1```"}, {charsetGBK, "a", "`a`"},
	} {
		if have := c.charset.quoteName(c.name); have != c.want {
			t.Errorf("%d %q\nhave: %q\nwant: %q", c.charset, c.name, have, c.want)
		}
	}
}

// TestPlan_consultedCharset: only bytes above 0x7F make a plan depend on the
// character set, and only where the text is read.
func TestPlan_consultedCharset(t *testing.T) {
	for text, want := range map[string]bool{
		"INSERT INTO t (a) VALUES (1)":                   false,
		"INSERT INTO t (s) VALUES ('é')":                 true,
		"INSERT INTO free (s) VALUES ('é')":              false,
		"INSERT INTO free (s) VALUES ('é');":             false,
		"INSERT INTO free (s) VALUES ('a'); SELECT 'é'":  false,
		"INSERT INTO é (s) VALUES ('a')":                 true,
		"INSERT INTO free (s) VALUES ('é'); SELECT 1":    false,
		"INSERT INTO free (s) VALUES ('é'); REPLACE x":   true,
		"/* é */ INSERT INTO free (s) VALUES ('é')":      true,
		"INSERT INTO t (a) VALUES (1234567, 'abcdefg')é": true,
	} {
		p, err := Parse(text, goldenOptions(0))
		if err == nil && p.ConsultedCharset != want {
			t.Errorf("%s\nhave: %v\nwant: %v", text, p.ConsultedCharset, want)
		}
	}
}
