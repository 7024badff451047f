package rewrite

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzReading reads a text that the servers read as another, simpler one: in a
// character set of two bytes, after SET STATEMENT, in executable comments. Both
// must come to the same, or the first be refused.
func FuzzReading(f *testing.F) {
	for _, c := range GoldenCases(f) {
		for kind := range byte(6) {
			f.Add(c.Text, "a = (SELECT 1 FOR UPDATE), b = SUBSTRING('FOR' FROM 1 FOR 1)", kind)
		}
	}
	for _, text := range []string{"INSERT INTO t (s) VALUES ('\xbf\x5c')", "INSERT INTO t (s, a) VALUES ('\x83\x5c', ', /* ' /* c */)", "INSERT INTO t (id, s) VALUES (NULL, '\xa5\x5c, 5), (NULL, ')"} {
		for kind := range byte(3) {
			f.Add(text, "", kind)
		}
	}
	for _, noise := range []string{"", "a = 1 FOR SET STATEMENT b = (1)", "a = ((1)", "a = 'FOR'", "a = `FOR`", "FOR", "a = 1 FOR"} {
		f.Add("INSERT INTO t (a) VALUES (1)", noise, byte(3))
	}
	for _, noise := range []string{"50000", "99999", "M!100100", "M!", "", "090704", "1000000"} {
		f.Add("INSERT INTO t (a) VALUES (1), (2)", noise, byte(4))
		f.Add("INSERT INTO t (id, a) VALUES (NULL, 1 /*!80000 + 1 */)", noise, byte(5))
	}
	f.Fuzz(func(t *testing.T, text, noise string, kind byte) {
		if len(text)+len(noise) > 4096 {
			return
		}
		switch kind % 6 {
		case 0, 1, 2:
			fuzzWide(t, text, charsetBig5+Charset(kind%6))
		case 3:
			fuzzSetStatement(t, text, noise)
		case 4:
			fuzzVersions(t, text, noise, 0)
		case 5:
			fuzzVersions(t, text, noise, len(text)/2)
		}
	})
}

// fuzzWide puts letters in place of characters of two bytes.
func fuzzWide(t *testing.T, text string, charset Charset) {
	if strings.Contains(text, "_") {
		return // after _latin1 it matters whether a string is ASCII
	}
	letters := []byte(text)
	for i := 0; i < len(text); i++ {
		if i > 0 && text[i-1] == '\\' && text[i] >= 0x80 {
			return // of a character after a backslash only the first byte is escaped
		}
		if charset.charLen(text, i) == 2 {
			letters[i], letters[i+1] = 'x', 'x'
			i++
		} else if text[i] >= 0x80 {
			return
		}
	}
	opts := goldenOptions(0)
	have, haveErr := Parse(string(letters), opts)
	opts.Charset = charset
	want, wantErr := Parse(text, opts)
	if a, b := readAs(have, haveErr), readAs(want, wantErr); a != b {
		t.Fatalf("%q\nhave: %s\nwant: %s", text, b, a)
	}
}

// readAs is what became of a text, without its letters.
func readAs(p *Plan, err error) string {
	if err != nil {
		return "refused"
	}
	var b strings.Builder
	for i := range p.Inserts {
		in := &p.Inserts[i]
		fmt.Fprint(&b, in.Table.KeyColumn, in.start, in.headAt, in.Refused, in.refuseAt, in.Source != nil, in.slots, "; ")
	}
	return b.String()
}

// fuzzSetStatement puts SET STATEMENT before an insert.
func fuzzSetStatement(t *testing.T, text, noise string) {
	plain, err := Parse(text, goldenOptions(0))
	if err != nil || len(plain.Inserts) == 0 || !strings.EqualFold(text[:min(6, len(text))], "INSERT") {
		return
	}
	set := "SET STATEMENT " + noise + " FOR "
	lx := lexer{text: set, engine: engine{all: true}}
	last := ""
	for t := lx.next(); t.kind != tokenEOF; t = lx.next() {
		if t.kind == tokenBad || set[t.start] == ';' {
			return // it swallows the insert, or ends before it
		}
		last = set[t.start:t.end]
	}
	if lx.notes != nil || last != "FOR" {
		return
	}
	if p, err := Parse(set+text, goldenOptions(0)); err == nil && len(p.Inserts) == 0 {
		t.Fatalf("%q\npasses, with an insert", set+text)
	}
}

// fuzzVersions puts a part of an insert into an executable comment.
func fuzzVersions(t *testing.T, text, version string, from int) {
	if strings.Trim(version, "0123456789M!") != "" {
		return
	}
	version = "!" + version
	if strings.HasPrefix(version, "!M!") {
		version = version[1:]
	}
	lx := lexer{text: text, engine: engine{all: true}}
	for lx.pos < from {
		if t := lx.next(); t.kind == tokenEOF || t.kind == tokenBad {
			return
		}
	}
	if lx.inside || lx.pos > len(text) {
		return
	}
	cut := lx.pos
	inner, err := Parse(text, goldenOptions(0))
	if err != nil || len(inner.Inserts) == 0 {
		return
	}
	if cut > inner.Inserts[0].end {
		cut = 0 // the comment holds the whole statement
	}
	whole := text[:cut] + " /*" + version + " " + text[cut:] + "\n*/ /*!99998 , (3) */"
	if p, err := Parse(whole, goldenOptions(0)); err == nil && len(p.Inserts) == 0 && !strings.Contains(text, "*/") {
		t.Fatalf("%q\npasses, with an insert", whole)
	}
}
