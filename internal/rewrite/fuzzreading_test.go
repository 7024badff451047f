package rewrite

import (
	"strings"
	"testing"
)

// FuzzReading reads a text with SET STATEMENT before it, which runs the same
// statement: it does not pass through with an insert.
func FuzzReading(f *testing.F) {
	for _, c := range GoldenCases(f) {
		f.Add(c.Text, "a = (SELECT 1 FOR UPDATE), b = SUBSTRING('FOR' FROM 1 FOR 1)")
	}
	for _, noise := range []string{"", "a = 1 FOR SET STATEMENT b = (1)", "a = ((1)", "a = 'FOR'", "a = `FOR`", "FOR", "a = 1 FOR"} {
		f.Add("INSERT INTO t (a) VALUES (1)", noise)
	}
	f.Fuzz(func(t *testing.T, text, noise string) {
		if len(text)+len(noise) <= 4096 {
			fuzzSetStatement(t, text, noise)
		}
	})
}

// fuzzSetStatement puts SET STATEMENT before an insert.
func fuzzSetStatement(t *testing.T, text, noise string) {
	plain, err := Parse(text, goldenOptions(0))
	if err != nil || len(plain.Inserts) == 0 || !strings.EqualFold(text[:min(6, len(text))], "INSERT") {
		return
	}
	set := "SET STATEMENT " + noise + " FOR "
	lx := lexer{text: set}
	last := ""
	for t := lx.next(); t.kind != tokenEOF; t = lx.next() {
		if t.kind == tokenBad || set[t.start] == ';' {
			return // it swallows the insert, or ends before it
		}
		last = set[t.start:t.end]
	}
	if lx.unsure != "" || last != "FOR" {
		return
	}
	if p, err := Parse(set+text, goldenOptions(0)); err == nil && len(p.Inserts) == 0 {
		t.Fatalf("%q\npasses, with an insert", set+text)
	}
}
