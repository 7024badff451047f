package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
)

func mustParse(t testing.TB, text string, opts Options) *Plan {
	t.Helper()
	if opts.Table == nil {
		opts.Table = goldenTables
	}
	return must.Get(Parse(text, opts))(t)
}

// becomes returns what happens to a string: it gets keys, passes, or is refused.
func becomes(query string, opts Options) string {
	plan, err := Parse(query, opts)
	switch {
	case errors.Is(err, ErrUnsupportedStatement):
		return "refused"
	case err != nil:
		return err.Error()
	case plan.Insert != nil:
		return "keys"
	}
	return "passes"
}

// becomeEach is becomes for a string of several statements, one by one.
func becomeEach(query string, opts Options) string {
	if _, err := Parse(query, opts); !errors.Is(err, ErrSeveralStatements) {
		return becomes(query, opts)
	}
	var all []string
	for rest := query; rest != ""; {
		statement, behind, err := Split(rest, opts)
		if err != nil {
			return strings.Join(append(all, "refused"), " ")
		}
		all, rest = append(all, becomes(statement, opts)), behind
	}
	return strings.Join(all, " ")
}

func TestParse_withoutTables(t *testing.T) {
	must.Equal(t, becomes("INSERT INTO t (a) VALUES (1)", Options{}), "passes")
}

// TestPlan_isShared: many goroutines use one plan.
func TestPlan_isShared(t *testing.T) {
	p := mustParse(t, "INSERT INTO t (id, a) VALUES (NULL, ?), (7, ?)", Options{ReportKeys: true})
	want := "INSERT INTO t (id, a) VALUES (LAST_INSERT_ID(?), ?), (7, ?)"
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			must.Equal(t, p.Query(), want)
			p.literal(goldenKeys(p))
			must.Equal(t, p.LiteralKey(1), any(int64(7)))
		})
	}
	wg.Wait()
}

func TestPlan_keys(t *testing.T) {
	ints := Keys{Ints: []int64{5, 6}}
	values := Keys{Values: []any{"a", []byte{1}, uint64(7)}}
	odd := Keys{Values: []any{"a", 1.5}}
	if ints.Len() != 2 || ints.At(1) != int64(6) || !ints.haveLiterals() {
		t.Errorf("%+v", ints)
	}
	if values.Len() != 3 || values.At(0) != "a" || !values.haveLiterals() {
		t.Errorf("%+v", values)
	}
	if odd.haveLiterals() {
		t.Errorf("have: literals for %v\nwant: none", odd.Values)
	}
	p := mustParse(t, "INSERT INTO u (a) VALUES (1), (2), (3)", Options{})
	have := p.literal(&values)
	if want := "INSERT INTO u (a, `uid`) VALUES (1, 'a'), (2, X'01'), (3, 7)"; have != want {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
}

// The query ends in front of RETURNING, also after a locking clause.
func TestQuery_end(t *testing.T) {
	for query, want := range map[string]string{
		"INSERT DELAYED INTO t (a) SELECT b FROM s":                             "SELECT b FROM s",
		"INSERT INTO t (a) SELECT b FROM s FOR UPDATE RETURNING a":              "SELECT b FROM s FOR UPDATE",
		"INSERT INTO t (a) SELECT b FROM s for update nowait returning a":       "SELECT b FROM s for update nowait",
		"INSERT INTO t (a) SELECT b FROM s ON DUPLICATE KEY UPDATE returning=1": "SELECT b FROM s",
	} {
		p := must.Get(Parse(query, Options{
			Table:  func(string, string) *Table { return &Table{Key: "id"} },
			Server: serverMariaDB, ReportKeys: true,
		}))(t, query)
		must.Equal(t, p.Insert.Select, want, query)
	}
}

func TestGiven_values(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string // of each row, of the columns u and v
	}{
		{"INSERT INTO t (u, a, v) VALUES (1, 2, 'x'), (?, ?, ?)", "[1 x] [?0 ?2]"},
		{"INSERT INTO t (a, id, u) VALUES (f(?, 1), ?, (?)), ('(', 2, -5)", "[?2 -] [-5 -]"},
		{"INSERT INTO t (u, id) VALUES (NULL, 1), (DEFAULT, 1), (\\N, 1), (1 + 1, 1), (@u, 1), (?, 1)", "[<nil> -] [- -] [<nil> -] [- -] [- -] [?0 -]"},
		{"INSERT INTO t (U, `V`) VALUES ('a' 'b', 'it''s'), (18446744073709551615, 99999999999999999999999)", "[ab it's] [18446744073709551615 99999999999999999999999]"},
		{"INSERT INTO t (u, v) VALUES (TRUE, 0x41), (x'41', b'1'), (1.5, 1e3), (_latin1'a', DATE'2026-01-01')", "[1 -] [- -] [- -] [a -]"},
		{"INSERT INTO t (u, v) VALUES (" + strings.Repeat("9", 80) + ", -" + strings.Repeat("9", 80) + ")", "[" + strings.Repeat("9", 80) + " -]"},
		{"INSERT INTO t VALUES (1, 2, 3)", "[2 3]"},
		{"INSERT INTO t SET v = ?, a = ?, u = 5 ON DUPLICATE KEY UPDATE v = 1", "[5 ?0]"},
		{"INSERT INTO t (a) VALUES (1)", "[- -]"},
		{"INSERT INTO t () VALUES (), ()", "[- -] [- -]"},
		{"INSERT INTO t (u, a, v) VALUES (1, MATCH b, c AGAINST ('x'), 3), (1, 2, 3)", "[- -] [1 3]"},
		{"INSERT INTO t (u, id) VALUES (1)", ""}, // the server refuses the row
		{"INSERT INTO t (u, v) VALUES (1, 2) /* c */, (-- c\n3, /* c */ 4)", "[1 2] [3 4]"},
	} {
		plan, err := Parse(tt.text, Options{Table: func(_, _ string) *Table {
			return &Table{Key: "id", Recorded: []string{"u", "v"}, Columns: []string{"id", "u", "v"}}
		}})
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		have := ""
		in := plan.Insert
		for row := range in.Rows {
			var cells [2]string
			for i := range cells {
				v := plan.Value(row, i)
				cells[i] = map[KeySource]string{Unknown: "-", Literal: fmt.Sprint(v.Literal), Argument: fmt.Sprint("?", v.Arg)}[v.From]
			}
			if row > 0 {
				have += " "
			}
			have += fmt.Sprint(cells)
		}
		must.Equal(t, have, tt.want, tt.text)
	}
}

// The servers showed which values are zero, with an AUTO_INCREMENT column.
func TestIsZero_literals(t *testing.T) {
	for _, c := range []struct {
		literal literal
		want    bool
	}{
		{literal{"0", true}, true}, {literal{"-0", true}, true}, {literal{"00.00", true}, true}, {literal{".0", true}, true},
		{literal{"0.", true}, true}, {literal{"0e9", true}, true}, {literal{"0x00", true}, true}, {literal{"0b0", true}, true},
		{literal{"0.49", true}, true}, {literal{"-0.4", true}, true}, {literal{"1e-9", true}, true},
		{literal{"0.5", true}, false}, {literal{"1", true}, false}, {literal{"0x1", true}, false}, {literal{"0b01", true}, false},
		{literal{"0", false}, true}, {literal{" 0 ", false}, true}, {literal{"+0", false}, true}, {literal{"0.4", false}, true},
		{literal{"0e5", false}, true}, {literal{"0x0", false}, true}, {literal{"0b0", false}, true}, {literal{"", false}, true},
		{literal{" ", false}, true}, {literal{"--0", false}, true}, {literal{"0abc", false}, true}, {literal{"NaN", false}, true},
		{literal{"Inf", false}, true}, {literal{"0_0", false}, true}, {literal{"0-0", false}, true}, {literal{"5-0", false}, false},
		{literal{"0.49999999999999999999", true}, true}, {literal{"4999999999999999999e-19", false}, true}, {literal{"5e-1", false}, false},
		{literal{"0.5", false}, false}, {literal{"5e-1", true}, true},
		{literal{"1e-99999999999999999999", false}, true}, {literal{"1e99999999999999999999", false}, false},
		{literal{"-1e0", true}, false}, {literal{"1e0", true}, false}, {literal{"-5e-1", true}, true}, {literal{"-6e-1", true}, false}, {literal{"1e-99999999999", false}, true}, {literal{"1e99999999999", false}, false},
		{literal{"0x0000000000000000", true}, true}, {literal{"0x000000000000000000", true}, false}, {literal{"0b", true}, true},
	} {
		must.Equal(t, storing(c.literal, false, false) == storesZero, c.want, c.literal)
	}
}

// FuzzAppendLiteral holds that a key's literal is one value in every mode, and
// that plain ones read back as they were.
func FuzzAppendLiteral(f *testing.F) {
	for _, key := range []string{"", "a", "it's", `"`, `\`, "\x00\n", "日本", "--", "/*", "?"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		for _, k := range []any{key, []byte(key)} {
			literal, _ := sqltoken.AppendLiteral([]byte("("), k)
			literal = append(literal, ')')
			for mode := range sqltoken.Mode(8) {
				r := &parser{Lexer: sqltoken.Lexer{Text: string(literal), Mode: mode}, plan: &Plan{}}
				r.Next()
				v := r.expression(inRow)
				if end := r.Next(); !r.IsPunct(end, ')') || end.End != len(literal) || r.Consulted != 0 {
					t.Fatalf("%q in mode %d is no value: %s", key, mode, literal)
				}
				if l, ok := r.literal(r.inner(&v)); ok && l.text != key {
					t.Fatalf("have: %q\nwant: %q", l.text, key)
				}
			}
			if bytes.ContainsAny(literal, "?\\\"") && literal[1] != '\'' {
				t.Fatalf("%s", literal)
			}
		}
	})
}

func TestStatementError_text(t *testing.T) {
	_, err := Parse("INSERT INTO t\n  (a) VALUES (1) x 'secret'", Options{Table: goldenTables})
	var have *StatementError
	if !errors.As(err, &have) || !errors.Is(err, ErrUnsupportedStatement) {
		t.Fatalf("have: %#v\nwant: *StatementError", err)
	}
	want := StatementError{Reason: "unsupported", Sentinel: ErrUnsupportedStatement, Table: "t", Line: 2, Char: 18, Near: `"x ?"`,
		Message: "expected ON DUPLICATE KEY UPDATE, RETURNING or the end of the statement"}
	must.Equal(t, *have, want)
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

func TestGivenNumbers_statements(t *testing.T) {
	long := []string{"[] false", "INSERT INTO t VALUES ('" + strings.Repeat("x", maxExplicit) + "')"}
	for _, c := range append(cases.Read(t, "testdata/numbers.txt", 2), long) {
		want, text := c[0], c[1]
		numbers, plain := mustParse(t, strings.Replace(text, " t ", " free ", 1), Options{}).ExplicitNumbers()
		if numbers == nil || !plain && len(numbers) > 0 && !strings.Contains(text, "/*!") {
			numbers = []float64{}
		}
		if have := fmt.Sprintf("%v %v", numbers, plain); have != want {
			t.Errorf("%.80s\nhave: %s\nwant: %s", text, have, want)
		}
	}
}

func TestReport_plain(t *testing.T) {
	p := mustParse(t, "INSERT INTO t (a) VALUES (?)", Options{ReportKeys: true})
	must.Equal(t, p.Query(), "INSERT INTO t (a, `id`) VALUES (?, LAST_INSERT_ID(?))")
	must.Equal(t, p.withoutReport().Query(), "INSERT INTO t (a, `id`) VALUES (?, ?)")
	unguarded := Options{Table: func(string, string) *Table { return &Table{Key: "id", NoReport: true} }, ReportKeys: true}
	p = mustParse(t, "INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = 2", unguarded)
	must.Equal(t, p.Query(), "INSERT INTO t (a, `id`) VALUES (?, ?) ON DUPLICATE KEY UPDATE a = 2")
}

// updateOptions read upserts of the tables t and s, whose columns u and v are fixed.
func updateOptions() Options {
	tables := func(_, name string) *Table {
		if !strings.EqualFold(name, "t") && !strings.EqualFold(name, "s") {
			return nil
		}
		return &Table{Key: "id", Fixed: []string{"u", "v"}, Columns: []string{"id", "u", "v"}}
	}
	return Options{Table: tables}
}

// shownUpdates shows the assignments to fixed columns: - for an unchanged column, ! for an
// expression, and # for a literal that only the server understands.
func shownUpdates(p *Plan) string {
	u := p.Insert
	if u == nil || !u.UpdatesFixed {
		return ""
	}
	have := sqltoken.TableName(u.Schema, u.Name)
	for c := range u.Table.Fixed {
		v, ok := p.Assigned(c)
		if !ok {
			have += " -"
			continue
		}
		have += " " + map[KeySource]string{Unknown: "#", Literal: fmt.Sprint(v.Literal), Argument: fmt.Sprint("?", v.Arg), Expression: "!"}[v.From]
	}
	return have
}

func TestUpdates_read(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/updates.txt", 2) {
		want, text := c[0], c[1]
		plan := must.Get(Parse(text, updateOptions()))(t, text)
		must.Equal(t, shownUpdates(plan), want, text)
	}
}

// Random upserts, right and wrong, are read to their end.
func TestUpdates_randomTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 4))
	words := strings.Fields("t s x app . `t` SET u v a = = := ? ? 1 -1 'x' NULL , ; ( ) AS o /*c*/ -- VALUES LAST_INSERT_ID SELECT INSERT INTO DEFAULT `")
	read := 0
	for range 20_000 {
		text := "INSERT INTO t (u) VALUES (1) ON DUPLICATE KEY UPDATE u ="
		for range r.IntN(14) {
			text += " " + words[r.IntN(len(words))]
		}
		if plan, err := Parse(text, updateOptions()); err == nil {
			if shownUpdates(plan) != "" {
				read++
			}
		}
	}
	if read < 1000 {
		t.Errorf("have: %d upserts read\nwant: more", read)
	}
}

// The statements of a string get keys, are passed through, or are refused, each as if it were alone. t
// is sharded, x and y aren't.
func TestSplit_eachStatement(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/scripts.txt", 2) {
		want, query := c[0], c[1]
		have := becomeEach(query, Options{
			Table: func(_, name string) *Table {
				if !strings.EqualFold(name, "t") {
					return nil
				}
				return &Table{Key: "id", Columns: []string{"id", "a"}}
			},
		})
		must.Equal(t, have, want, query)
		if class := sqltoken.Scan(query, true).Class; want != "passes" && class != sqltoken.ClassMayInsert {
			t.Errorf("%s\nhave: class %d, which is not parsed", query, class)
		}
	}
}

// SET STATEMENT in front of an INSERT doesn't hide it, whatever its values contain.
func TestParse_setStatement(t *testing.T) {
	for _, c := range GoldenCases(t) {
		if !strings.HasPrefix(c.Text, "INSERT") || becomes(c.Text, goldenOptions()) != "keys" {
			continue
		}
		for _, set := range []string{"a = (SELECT 1 FOR UPDATE), b = SUBSTRING('FOR' FROM 1 FOR 1)", "a = 1 FOR SET STATEMENT b = (1)", "a = 'FOR'", "a = `FOR`"} {
			if text := "SET STATEMENT " + set + " FOR " + c.Text; becomes(text, goldenOptions()) == "passes" {
				t.Errorf("%s\nhave: passes", text)
			}
		}
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
		must.Equal(t, becomes(query, Options{Table: tables}), want, query)
	}
}

func TestPlan_assignsArgs(t *testing.T) {
	for query, want := range map[string]bool{
		"INSERT INTO t (a, b) VALUES (?, ?), (1, ?)":                                          true,
		"INSERT INTO t (a, b) VALUE ROW(?, NOW()), ROW ( ? , JSON_ARRAY(1, 2))":               true,
		"INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = ?, b = VALUES(b)":           true,
		"INSERT INTO t (a) VALUES (?) AS new(x) ON DUPLICATE KEY UPDATE t.a = ?":              true,
		"REPLACE t SET a = ?, `b` = ?, c = 5":                                                 true,
		"INSERT INTO t VALUES (NULL, ?) RETURNING id":                                         true,
		"INSERT INTO t (a) VALUES (5)":                                                        true,
		"INSERT INTO t (a) VALUES (? + 1)":                                                    false,
		"INSERT INTO t (a) VALUES (-?)":                                                       false,
		"INSERT INTO t (a, b) VALUES (1, COALESCE(?, 1))":                                     false,
		"INSERT INTO t (a, b) VALUES ((?), 1)":                                                false,
		"INSERT INTO t (a) VALUES (? COLLATE utf8mb4_bin)":                                    false,
		"INSERT INTO t SET a = b = ?":                                                         false,
		"INSERT INTO t SET a = IF(?, 1, 2)":                                                   false,
		"INSERT INTO t SET a = ? OR b":                                                        false,
		"INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = a + ?":                      false,
		"INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = IF(b, ?, 1)":                false,
		"INSERT INTO t (a) SELECT ?":                                                          false,
		"INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = (SELECT ? FROM u)":          false,
		"INSERT INTO t (a, b) VALUES (?, '?'), (?, \"?\" /* ? */)":                            true,
		"INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = (VALUES(a) = ?), b = a = ?": false,
	} {
		table := func(string, string) *Table { return &Table{Key: "id", Columns: []string{"id", "a"}} }
		must.Equal(t, mustParse(t, query, Options{ReportKeys: true, Table: table}).AssignsArgs(), want, query)
	}
}

// Rewrite leaves the arguments of a table that keeps explicit keys.
func TestRewrite_keepsExplicit(t *testing.T) {
	for keep, want := range map[bool]string{true: "[0 1 <nil> 2]", false: "[100 1 101 2]"} {
		p := mustParse(t, "INSERT INTO t (id, a) VALUES (?, ?), (?, ?)",
			Options{Table: func(string, string) *Table { return &Table{Key: "id", KeepExplicit: keep} }})
		_, args, err := p.Rewrite([]any{0, 1, nil, 2}, func(_ *Insert, n int) (keys []any, err error) {
			for i := range n {
				keys = append(keys, 100+i)
			}
			return keys, nil
		})
		must.Do(t, err)
		must.Equal(t, fmt.Sprint(args), want, keep)
	}
}
