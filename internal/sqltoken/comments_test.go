package sqltoken

import (
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

func TestCommented_statements(t *testing.T) {
	for text, want := range map[string]string{
		"INSERT x":                           "INSERT x",
		"  INSERT x  ":                       "  INSERT x  ",
		"":                                   "",
		"/* a */":                            "/* a */",
		"INSERT x /*traceparent='00-1-01'*/": "INSERT x",
		"INSERT x\n/* a */ /* b */\t":        "INSERT x",
		"INSERT x /* a * / ** */":            "INSERT x",
		"INSERT x /**/":                      "INSERT x",
		"INSERT x /*/ a/b // c */":           "INSERT x",
		"INSERT x /*/":                       "INSERT x /*/",
		"INSERT x /* a *":                    "INSERT x /* a *",
		"/* a */ INSERT x":                   "INSERT x",
		"\n/* a */-- b\n# c\n  INSERT x":     "INSERT x",
		"/* a */ INSERT x /* b */":           "INSERT x",
		"INSERT x -- trace":                  "INSERT x",
		"INSERT x # trace":                   "INSERT x",
		"INSERT\nx\n-- trace -- 2":           "INSERT\nx",
		"INSERT x -- a\n/* b */":             "INSERT x",
		"INSERT x --trace":                   "INSERT x --trace",
		"INSERT x; /* a */":                  "INSERT x; /* a */",
		"INSERT x /*! a */":                  "INSERT x /*! a */",
		"INSERT x /*M! a */":                 "INSERT x /*M! a */",
		"INSERT x /*+ a */":                  "INSERT x /*+ a */",
		"/*! INSERT */ x":                    "/*! INSERT */ x",
		"INSERT x /* a */ b */":              "INSERT x /* a */ b */",
		"/* a INSERT x":                      "/* a INSERT x",
		"INSERT 'a /* b'":                    "INSERT 'a /* b'",
		"INSERT 'a /* b */'":                 "INSERT 'a /* b */'",
		"INSERT 'a /* b' */":                 "INSERT 'a /* b' */",
		"INSERT '-- a'":                      "INSERT '-- a'",
		"INSERT x /* a /* b */":              "INSERT x",
		"INSERT x /*! y /* b */":             "INSERT x /*! y /* b */",
		"INSERT " + strings.Repeat("x", maxCommented) + " /* a */": "INSERT " + strings.Repeat("x", maxCommented) + " /* a */",
	} {
		start, end := Commented(text)
		must.Equal(t, text[start:end], want, text)
	}
}

func TestEndsWithToken_texts(t *testing.T) {
	for text, want := range map[string][2]bool{
		"INSERT INTO t (a) VALUES (?)": {true, true},
		"INSERT x -- a":                {false, false},
		"INSERT x # a":                 {false, false},
		"INSERT x /* a":                {false, false},
		"INSERT x /* a */":             {false, false},
		"INSERT x /*! y":               {false, false},
		"INSERT 'a":                    {false, false},
		"INSERT `a":                    {false, false},
		"INSERT \"a":                   {false, false},
		"INSERT 'a'":                   {true, true},
		"INSERT \"a\"":                 {true, false}, // ANSI_QUOTES decides about a backslash
		`INSERT 'a\'`:                  {false, false},
		`INSERT 'a\\'`:                 {true, false},
		"INSERT 'é'":                   {true, false},
		"INSERT x ":                    {false, false},
	} {
		ends, always := EndsWithToken(text, 0, UTF8)
		must.Equal(t, [2]bool{ends, always}, want, text)
	}
	ends, _ := EndsWithToken(`INSERT 'a\'`, NoBackslashEscapes, UTF8)
	must.Equal(t, ends, true)
	ends, _ = EndsWithToken("INSERT 'é'", 0, ParseCharset("gbk"))
	must.Equal(t, ends, false)
}
