package rewrite

import (
	"strings"
	"testing"
)

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
		{text: "INSERT INTO t2 (a1) VALUES (1),(2)", want: "INSERT INTO t2 (a1) VALUES (?),(?)"},
	} {
		if have := WithoutLiterals(c.text, Options{Mode: c.mode}, 1000); have != c.want {
			t.Errorf("%s\nhave: %s\nwant: %s", c.text, have, c.want)
		}
	}
	long := "INSERT INTO t (a) VALUES " + strings.Repeat("(1),", 1000)
	if have := WithoutLiterals(long, Options{}, 50); len(have) > 60 || !strings.HasSuffix(have, "…") {
		t.Errorf("have: %s\nwant: at most 50 bytes and …", have)
	}
}

func FuzzWithoutLiterals(f *testing.F) {
	f.Add("INSERT INTO t VALUES ('secret', 5)")
	f.Add("/*! 'secret' */ -- '\nx")
	f.Fuzz(func(t *testing.T, text string) {
		if have := WithoutLiterals(text, Options{}, 100); len(have) > 110 {
			t.Errorf("%q: %d bytes", text, len(have))
		}
	})
}
