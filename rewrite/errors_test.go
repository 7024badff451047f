package rewrite

import (
	"errors"
	"strings"
	"testing"
)

func TestStatementError_text(t *testing.T) {
	_, err := Parse("INSERT INTO t\n  (a) VALUES (1) x 'secret'", Options{Table: goldenTables})
	var have *StatementError
	if !errors.As(err, &have) || !errors.Is(err, ErrUnsupportedStatement) {
		t.Fatalf("have: %#v\nwant: *StatementError", err)
	}
	want := StatementError{Reason: "unsupported", Sentinel: ErrUnsupportedStatement, Table: "t", Line: 2, Char: 18, Near: `"x ?"`,
		Message: "expected ON DUPLICATE KEY UPDATE, RETURNING or the end of the statement"}
	if *have != want {
		t.Errorf("have: %+v\nwant: %+v", *have, want)
	}
	text := "shardkey: cannot add keys to the statement: table t: line 2, column 18 near \"x ?\": expected ON DUPLICATE KEY UPDATE, RETURNING or the end of the statement"
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
				_, err := Parse(cut, Options{Table: goldenTables})
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
