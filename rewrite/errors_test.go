package rewrite

import (
	"errors"
	"strings"
	"testing"
)

func TestStatementError_text(t *testing.T) {
	_, err := Parse("INSERT INTO t\n  (a) VALUES (1) x 'secret'", Options{Tables: goldenTables})
	var have *StatementError
	if !errors.As(err, &have) || !errors.Is(err, ErrUnsupportedStatement) {
		t.Fatalf("have: %#v\nwant: *StatementError", err)
	}
	want := StatementError{"`t`", "expected ON DUPLICATE KEY UPDATE, RETURNING or the end of the statement", 31, 2, 18, `"x ?"`}
	if *have != want {
		t.Errorf("have: %+v\nwant: %+v", *have, want)
	}
	text := "shardkey: cannot add keys to the statement: table `t`: line 2, column 18 near \"x ?\": expected ON DUPLICATE KEY UPDATE, RETURNING or the end of the statement"
	if have.Error() != text {
		t.Errorf("have: %s\nwant: %s", have, text)
	}
}

// TestErrors_showNoLiterals truncates statements everywhere: no error contains a literal's content.
func TestErrors_showNoLiterals(t *testing.T) {
	texts := []string{
		"INSERT INTO t (a, s) VALUES ('secret', 1), (\"secret's\", 4711), (X'4711', 4711.0) ON DUPLICATE KEY UPDATE a = 'secret'",
		"INSERT INTO t SET a = 'secret', s = 4711, id = N'secret'",
		"/*!40000 INSERT INTO t (a) VALUES ('secret', 4711) */",
		"INSERT INTO t (a) SELECT 'secret' FROM x WHERE b = 4711; SELECT 'secret'",
	}
	refused := 0
	for _, text := range texts {
		for end := range len(text) {
			for _, cut := range []string{text[:end], text[:end] + ")" + text[end:], text[:end] + "'" + text[end:]} {
				_, err := Parse(cut, Options{Tables: goldenTables})
				if err == nil {
					continue
				}
				refused++
				// A literal that lost its quotes is none.
				if msg := err.Error(); strings.Contains(msg, "4711") || strings.Contains(msg, "secret") && cut == text[:end] {
					t.Errorf("%s\n%s", cut, msg)
				}
			}
		}
	}
	if refused < 300 {
		t.Errorf("only %d refusals", refused)
	}
}

func TestExcerpt_cuts(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "the end of the statement",
		" /* c */ ":              "the end of the statement",
		"a, 'x', 1.5":            `"a, ?, ?"`,
		"x 'never ended":         `"x …"`,
		strings.Repeat("a ", 40): `"` + strings.Repeat("a ", 30) + `…"`,
	} {
		if have := excerpt(text, Options{}); have != want {
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
		if have := WithoutLiterals(c.text, Options{Mode: c.mode}, 1000); have != c.want {
			t.Errorf("%s\nhave: %s\nwant: %s", c.text, have, c.want)
		}
	}
	for most, want := range map[int]string{7: "abc def", 6: "abc …", 3: "abc …", 2: "…"} {
		if have := WithoutLiterals("abc def", Options{}, most); have != want {
			t.Errorf("at most %d bytes\nhave: %s\nwant: %s", most, have, want)
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
