package rewrite

import (
	"slices"
	"sync"
	"testing"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

func mustParse(t testing.TB, text string, opts Options) *Plan {
	t.Helper()
	if opts.Table == nil {
		opts.Table = goldenTables
	}
	p, err := Parse(text, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParse_withoutTables(t *testing.T) {
	p, err := Parse("INSERT INTO t (a) VALUES (1)", Options{})
	if err != nil || len(p.Inserts) != 0 {
		t.Errorf("have: %v, %v\nwant: nothing to fill", p, err)
	}
}

// TestMerge_order compares the order of merged arguments with the placeholders of the query.
func TestMerge_order(t *testing.T) {
	for _, text := range []string{
		"INSERT INTO t (a, s) VALUES (?, 1), (2, ?), (?, ?), (3, 4), (?, 5)",
		"INSERT INTO t (id, a) VALUES (NULL, ?), (?, ?), (5, ?), (0, ?), (CAST(@x AS SIGNED), ?), (DEFAULT, ?)",
		"INSERT INTO t (a) VALUES (1); INSERT INTO x (a) VALUES (?); INSERT INTO t (id, a) VALUES (?, NULL), (NULL, ?)",
		"INSERT INTO t (a) VALUES (?, ?); INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = ?",
		"INSERT INTO t SET a = ?, s = ? ON DUPLICATE KEY UPDATE a = ?",
	} {
		p := mustParse(t, text, Options{})
		args := make([]bool, p.NumArgs)
		have := Merge(p, nil, args, true, func(int, int) bool { return false }, func(int, int) bool { return true })
		if want := placeholdersOfOurs(text, p); !slices.Equal(have, want) {
			t.Errorf("%s\nhave: %v\nwant: %v", text, have, want)
		}
	}
}

// placeholdersOfOurs reports for each placeholder of the bind text whether it was added. Added ones
// are missing in the statement with literals.
func placeholdersOfOurs(text string, p *Plan) (ours []bool) {
	literal, _ := p.Literal(goldenKeys(p))
	bind := sqltoken.Lexer{Text: p.Query()}
	other := sqltoken.Lexer{Text: literal}
	for {
		b, l := bind.Next(), other.Next()
		if b.Kind == sqltoken.EOF {
			return ours
		}
		if b.Kind == sqltoken.Param {
			ours = append(ours, l.Kind != sqltoken.Param)
		}
	}
}

// TestPlan_isShared: many goroutines use one plan.
func TestPlan_isShared(t *testing.T) {
	p := mustParse(t, "INSERT INTO t (id, a) VALUES (NULL, ?), (7, ?)", Options{ReportKeys: true})
	want := "INSERT INTO t (id, a) VALUES (LAST_INSERT_ID(?), ?), (7, ?)"
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if have := p.Query(); have != want {
				t.Errorf("have: %s\nwant: %s", have, want)
			}
			p.Literal(goldenKeys(p))
			if have := p.LiteralKey(&p.Inserts[0], 1); have != int64(7) {
				t.Errorf("have: %v\nwant: 7", have)
			}
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
	have, _ := p.Literal([]Keys{values})
	if want := "INSERT INTO u (a, `uid`) VALUES (1, 'a'), (2, X'01'), (3, 7)"; have != want {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
}

// The query ends in front of RETURNING, also after a locking clause, and DELAYED, which the servers
// ignore there, isn't sent with the rows.
func TestSource_text(t *testing.T) {
	for query, want := range map[string]string{
		"INSERT DELAYED INTO t (a) SELECT b FROM s":                             "INSERT  INTO t (`a`, `id`) VALUES (1, 2) ",
		"INSERT /* x */ delayed IGNORE t (a) SELECT b FROM s":                   "INSERT /* x */  IGNORE t (`a`, `id`) VALUES (1, 2) ",
		"INSERT LOW_PRIORITY t (a) SELECT b FROM s":                             "INSERT LOW_PRIORITY t (`a`, `id`) VALUES (1, 2) ",
		"INSERT INTO t (a) SELECT b FROM s FOR UPDATE RETURNING a":              "INSERT INTO t (`a`, `id`) VALUES (1, 2) RETURNING a",
		"INSERT INTO t (a) SELECT b FROM s for update nowait returning a":       "INSERT INTO t (`a`, `id`) VALUES (1, 2) returning a",
		"INSERT INTO t (a) SELECT b FROM s ON DUPLICATE KEY UPDATE returning=1": "INSERT INTO t (`a`, `id`) VALUES (1, 2) ON DUPLICATE KEY UPDATE returning=1",
	} {
		p, err := Parse(query, Options{
			Table:  func(string, string) *Table { return &Table{Key: "id"} },
			Server: serverMariaDB,
		})
		if err != nil {
			t.Errorf("%s: %v", query, err)
		} else if have := p.Inserts[0].WithQuery("VALUES (1, 2)"); have != want {
			t.Errorf("%s\nhave: %s\nwant: %s", query, have, want)
		}
	}
}

func TestSource_formOfTheQuery(t *testing.T) {
	for query, want := range map[string][2]bool{ // lockable, unlimited
		"SELECT a FROM s": {true, false},
		"select a from s where a in (select b from x) -- c": {true, false},
		"SELECT a FROM s ORDER BY a":                        {true, true},
		"SELECT a FROM s ORDER BY a LIMIT 5":                {true, false},
		"SELECT a FROM (SELECT a FROM s ORDER BY a) AS d":   {true, false},
		"WITH w AS (SELECT 1 AS a) SELECT a FROM w":         {true, false},
		"SELECT 1":                                  {false, false},
		"SELECT 1 ORDER BY 1":                       {false, true},
		"SELECT (SELECT a FROM s LIMIT 1)":          {false, false},
		"SELECT a FROM s UNION SELECT 2":            {false, false},
		"SELECT a FROM s UNION SELECT 2 ORDER BY 1": {false, false},
		"SELECT a FROM s EXCEPT SELECT 2":           {false, false},
		"(SELECT a FROM s)":                         {false, false},
		"TABLE s":                                   {false, false},
		"SELECT a FROM s FOR UPDATE":                {false, false},
		"SELECT a FROM s FOR SHARE":                 {false, false},
		"SELECT a FROM s LOCK IN SHARE MODE":        {false, false},
		"SELECT `for`, s.lock FROM s":               {true, false},
		"SELECT a FROM s ON DUPLICATE KEY UPDATE a = (SELECT 1 FROM x UNION SELECT 2 LIMIT 1)": {true, false},
	} {
		p, err := Parse("INSERT INTO t (a) "+query, Options{Table: func(string, string) *Table { return &Table{Key: "id"} }})
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if have := [2]bool{p.Inserts[0].Source.Lockable, p.Inserts[0].Source.Unlimited}; have != want {
			t.Errorf("%s\nhave: %v\nwant: %v", query, have, want)
		}
	}
}
