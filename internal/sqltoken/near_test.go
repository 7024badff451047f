package sqltoken

import (
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

func TestNear_cuts(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "the end of the statement",
		" /* c */ ":              "the end of the statement",
		"a, 'x', 1.5":            `"a, ?, ?"`,
		"x 'never ended":         `"x …"`,
		strings.Repeat("a ", 40): `"` + strings.Repeat("a ", 30) + `…"`,
	} {
		if have := Near(text, 0, UTF8); have != want {
			t.Errorf("%q\nhave: %s\nwant: %s", text, have, want)
		}
	}
}

func TestWithoutLiterals_forms(t *testing.T) {
	for _, c := range []struct {
		text, want string
		mode       Mode
	}{
		{text: "INSERT INTO t (a) VALUES (?, 5)", want: "INSERT INTO t (a) VALUES (?, ?)"},
		{text: "INSERT  INTO\n\tt\nVALUES ('it''s', \"x\", -1.5e3, 0xFF, x'ab', b'01', NULL)", want: "INSERT INTO t VALUES (?, ?, -?, ?, x?, b?, NULL)"},
		{text: `INSERT INTO t VALUES ('a\'secret')`, want: "INSERT INTO t VALUES (?)"},
		{text: `INSERT INTO t VALUES ("secret")`, want: `INSERT INTO t VALUES ("secret")`, mode: ParseMode("ANSI_QUOTES")},
		{text: "INSERT /* user=secret */ INTO `t 1` VALUES (_utf8mb4'x', DATE '2026-01-01') -- secret", want: "INSERT INTO `t 1` VALUES (_utf8mb4?, DATE ?)"},
		{text: "INSERT INTO t VALUES ('secret", want: "INSERT INTO t VALUES (…"},
		{text: "/* secret */", want: ""},
		{text: " \n SELECT 1", want: "SELECT ?"},
		{text: "/* c */ SELECT(1)", want: "SELECT(?)"},
		{text: "INSERT INTO t2 (a1) VALUES (1),(2)", want: "INSERT INTO t2 (a1) VALUES (?),(?)"},
	} {
		must.Equal(t, WithoutLiterals(c.text, c.mode, UTF8, 1000), c.want, c.text)
	}
	for most, want := range map[int]string{7: "abc def", 6: "abc …", 3: "abc …", 2: "…"} {
		must.Equal(t, WithoutLiterals("abc def", 0, UTF8, most), want, "at most", most, "bytes")
	}
	long := "INSERT INTO t (a) VALUES " + strings.Repeat("(1),", 1000)
	if have := WithoutLiterals(long, 0, UTF8, 50); len(have) > 60 || !strings.HasSuffix(have, "…") {
		t.Errorf("have: %s\nwant: at most 50 bytes and …", have)
	}
}

func FuzzWithoutLiterals(f *testing.F) {
	f.Add("INSERT INTO t VALUES ('secret', 5)")
	f.Add("/*! 'secret' */ -- '\nx")
	f.Fuzz(func(t *testing.T, text string) {
		if have := WithoutLiterals(text, 0, UTF8, 100); len(have) > 110 {
			t.Errorf("%q: %d bytes", text, len(have))
		}
	})
}
