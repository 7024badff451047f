package rewrite

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
)

// Strings of several statements get keys, are passed through, or are refused before any query. t is
// sharded, x and y aren't.
func TestStrings_whichGetKeys(t *testing.T) {
	const keys, passes, refused = "keys", "passes", "refused"
	for _, c := range cases.Read(t, "testdata/scripts.txt", 2) {
		want, query := c[0], c[1]
		plan, err := Parse(query, Options{
			Table: func(_, name string) *Table {
				if !strings.EqualFold(name, "t") {
					return nil
				}
				return &Table{Key: "id"}
			},
			AskColumns: func(*Insert) ([]string, error) {
				if want == refused {
					t.Errorf("%s\nhave: the table's columns are asked for\nwant: refused before that", query)
				}
				return []string{"id", "a"}, nil
			},
		})
		have := passes
		switch {
		case errors.Is(err, ErrUnsupportedStatement):
			have = refused
		case err != nil:
			t.Errorf("%s: %v", query, err)
		case len(plan.Inserts) > 0:
			have = keys
		}
		must.Equal(t, have, want, query, err)
		if class := sqltoken.Classify(query); want != passes && !class.MustParse() {
			t.Errorf("%s\nhave: class %d, which is not parsed", query, class)
		}
	}
}

// FuzzReading parses a statement with SET STATEMENT in front, which executes the same statement: it
// must not be passed through with an INSERT.
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
	lx := sqltoken.Lexer{Text: set}
	last := ""
	for t := lx.Next(); t.Kind != sqltoken.EOF; t = lx.Next() {
		if t.Kind == sqltoken.Bad || set[t.Start] == ';' {
			return // it swallows the insert, or ends before it
		}
		last = set[t.Start:t.End]
	}
	if lx.Unsure != "" || last != "FOR" {
		return
	}
	if p, err := Parse(set+text, goldenOptions(0)); err == nil && len(p.Inserts) == 0 {
		t.Fatalf("%q\npasses, with an insert", set+text)
	}
}

// What servers read differently is refused, if it is or may be in an INSERT into a sharded table. t
// is sharded by a, free isn't sharded.
func TestParse_whatServersReadDifferently(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/servers.txt", 2) {
		want, query := c[0], c[1]
		tables := func(_, name string) *Table {
			switch strings.ToLower(name) {
			case "t":
				return &Table{Key: "id", Recorded: []string{"a"}}
			case "ikt":
				return &Table{Key: "id"}
			case "kt":
				return &Table{Key: "id", Recorded: []string{"user"}, Fixed: []string{"user"}}
			}
			return nil
		}
		p, err := Parse(query, Options{Table: tables})
		have := "passes"
		switch {
		case errors.Is(err, ErrUnsupportedStatement):
			have = "refused"
		case err != nil:
			have = err.Error()
		case len(p.Inserts) > 0:
			have = "keys"
		}
		must.Equal(t, have, want, query, err)
	}
}
