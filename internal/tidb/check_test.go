package tidb_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/internal/tidb"
	"github.com/shardkey/shardkey/rewrite"
)

// options have a rule for table t with the columns id, a and s.
func options(mode sqltoken.Mode) rewrite.Options {
	table := &rewrite.Table{Key: "id", Columns: []string{"id", "a", "s"}}
	return rewrite.Options{ReportKeys: true, SQLMode: mode.String(), Table: func(_, name string) *rewrite.Table {
		if name == "t" {
			return table
		}
		return nil
	}}
}

func parsed(t testing.TB, text string, opts rewrite.Options) *rewrite.Plan {
	t.Helper()
	return must.Get(rewrite.Parse(text, opts))(t)
}

// rowsText is an INSERT of n literal rows of about 60 bytes.
func rowsText(n int) string {
	var b strings.Builder
	b.WriteString("INSERT INTO t (a, s) VALUES ")
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(%d, 'a row of some sixty bytes, it''s no. %08d')", i, i)
	}
	return b.String()
}

func TestCheck_outcomes(t *testing.T) {
	for _, c := range []struct {
		name, text string
		mode       sqltoken.Mode
		known      bool
	}{
		{"bound", "INSERT INTO t (a) VALUES (?)", 0, true},
		{"literal", "INSERT INTO t (a) VALUES (1)", 0, true},
		{"another table", "INSERT INTO free (a) VALUES (1)", 0, true},
		{"no INSERT", "SELECT 1", 0, true},
		{"ANSI_QUOTES", `INSERT INTO "t" ("a") VALUES (?)`, sqltoken.ANSIQuotes, true},
		{"NO_BACKSLASH_ESCAPES", `INSERT INTO t (a) VALUES ('\')`, sqltoken.NoBackslashEscapes, true},
		{"long", rowsText(500), 0, true},
		{"too long", rowsText(10_000), 0, false},
		{"VALUES ROW", "INSERT INTO t (a) VALUES ROW(?), ROW(2)", 0, true},
		{"SET", "INSERT INTO t SET a = ?, id = NULL ON DUPLICATE KEY UPDATE a = 1", 0, true},
		{"a query", "INSERT INTO t (a) SELECT a FROM t WHERE a > ? LIMIT 5", 0, true},
		{"a LIMIT that is an argument", "INSERT INTO t (a) SELECT a FROM t WHERE a > ? LIMIT ? OFFSET ?", 0, true},
		{"a LIMIT that is an argument, in a row", "INSERT INTO t (a, id) VALUES (?, ?), ((SELECT a FROM t LIMIT ?), ?)", 0, true},
		{"a frame that is an argument", "INSERT INTO t (a) SELECT SUM(a) OVER (ORDER BY a ROWS ? PRECEDING) + ? FROM t", 0, true},
		{"an offset that is an argument", "INSERT INTO t (a) SELECT LAG(a, ?, ?) OVER (ORDER BY a) FROM t WHERE a > ?", 0, true},
		{"row alias", "INSERT INTO t (a) VALUES (1) AS new ON DUPLICATE KEY UPDATE a = new.a", 0, false},
		{"RETURNING", "INSERT INTO t (a) VALUES (1) RETURNING id", 0, false},
		{"VALUES ROW in brackets", "INSERT INTO t (a) (VALUES ROW(3), ROW(4))", 0, true},
		{"an expression that ends in a dot", "INSERT INTO t (a, id) VALUES (1, 7/1.)", 0, true},
		{"a key before a word", "INSERT INTO t SET a = '1'ON DUPLICATE KEY UPDATE a = 2", 0, true},
		{"a key in brackets before a word", "INSERT INTO t SET a = ?, id = (NULL)ON DUPLICATE KEY UPDATE a = 2", 0, true},
		{"a string that is no integer", "INSERT INTO t (id, a) VALUES ('abc', 1), ('', 2), ('7x', 3)", 0, true},
		{"no UTF-8", "INSERT INTO t (a) VALUES ('\xff')", 0, false},
		{"too deep to be walked", "INSERT INTO t (a) VALUES (1" + strings.Repeat("+1", 1<<20) + ")", 0, false},
		{"deep", "INSERT INTO t (a) VALUES (" + strings.Repeat("(", 30_000) + "1" + strings.Repeat(")", 30_000) + ")", 0, true},
		{"many digits", "INSERT INTO t (id) VALUES (" + strings.Repeat("9", 1000) + "." + strings.Repeat("9", 1000) + ")", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := options(c.mode)
			must.Equal(t, must.Get(tidb.Check(c.text, opts, parsed(t, c.text, opts)))(t), c.known)
		})
	}
}

// TestCheck_seesPassedInsert: an INSERT into a sharded table that the scanner misread is refused.
func TestCheck_seesPassedInsert(t *testing.T) {
	nothing := parsed(t, "SELECT 1", options(0))
	for _, text := range []string{
		"INSERT INTO t (a) VALUES (1)", "SELECT 1; REPLACE t SELECT * FROM s", "TRACE INSERT INTO t (a) VALUES (1)",
		"EXPLAIN ANALYZE INSERT INTO t (a) VALUES (1)",
	} {
		_, err := tidb.Check(text, options(0), nothing)
		if e, ok := errors.AsType[*rewrite.StatementError](err); !ok || e.Reason != "unverified" || !errors.Is(err, rewrite.ErrUnsupportedStatement) {
			t.Errorf("%s\nhave: %v\nwant: unverified", text, err)
		}
	}
}

// TestCheck_concurrently is for the race detector. A parser keeps pointers into its trees, and
// checks in other goroutines must not write through them.
func TestCheck_concurrently(t *testing.T) {
	opts := options(0)
	texts := []string{"INSERT INTO t (a) VALUES (?)", "INSERT INTO t (id, a) VALUES (?, 1)", "INSERT INTO t (a) SELECT 1", "INSERT INTO t SET a = ?"}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 200 {
				text := texts[(i+n)%len(texts)]
				p, err := rewrite.Parse(text, opts)
				if err != nil {
					t.Error(err)
					return
				}
				if known, err := tidb.Check(text, opts, p); !known || err != nil {
					t.Errorf("%s\nhave: known %v, %v\nwant: agreed", text, known, err)
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkCheck measures the second parser's cost for a statement that isn't cached. Parse
// measures the scanner's.
func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"one row", "INSERT INTO t (user_id, amount, note) VALUES (?, ?, ?)"},
		{"upsert", "INSERT INTO t (id, a, s) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE a = VALUES(a), s = ?"},
		{"500 rows with placeholders", "INSERT INTO t (a, s) VALUES " + strings.Repeat("(?, ?), ", 499) + "(?, ?)"},
		{"750 literal rows", rowsText(750)},
		{"another table", "INSERT INTO free (user_id, amount, note) VALUES (?, ?, ?)"},
	} {
		opts := options(0)
		b.Run(c.name+"/Parse", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				parsed(b, c.text, opts)
			}
		})
		b.Run(c.name+"/Check", func(b *testing.B) {
			p := parsed(b, c.text, opts)
			b.ReportAllocs()
			for b.Loop() {
				if known, err := tidb.Check(c.text, opts, p); !known || err != nil {
					b.Fatal(known, err)
				}
			}
		})
	}
}

// TestCheck_besideAnotherDriver runs applications that have TiDB's parser and a value driver: set
// before the second parser's first use, after it, or not at all. Both parsers work, and the
// application gets its values.
func TestCheck_besideAnotherDriver(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no programs are built")
	}
	const checked = "right plan: true <nil>\nwrong plan: false\nplaceholder of LIMIT: <nil>\n"
	first := "*test_driver.ValueExpr of int64\n*test_driver.ValueExpr of *test_driver.MyDecimal\n" +
		strings.Repeat("*test_driver.ValueExpr of test_driver.BinaryLiteral\n", 2) + "*test_driver.ParamMarkerExpr of <nil>\n"
	last := "*main.value of int64\n*main.value of main.decimal\n*main.value of main.hexadecimal\n" +
		"*main.value of main.bit\n*main.marker of <nil>\n"
	for tag, want := range map[string]string{
		"driverfirst": first + checked + first,
		"driverlast":  checked + last + checked + last,
		"nodriver":    checked,
	} {
		t.Run(tag, func(t *testing.T) {
			out, err := exec.Command("go", "run", "-tags", tag, "./testdata/app").CombinedOutput()
			if have := string(out); err != nil || have != want {
				t.Errorf("%v\nhave:\n%s\nwant:\n%s", err, have, want)
			}
		})
	}
}

// TestPages_sqlParses parses the SQL in the docs.
func TestPages_sqlParses(t *testing.T) {
	pages := must.Get(filepath.Glob("../../docs/*/*.md"))(t)
	blocks := 0
	for _, page := range pages {
		text := must.Get(os.ReadFile(page))(t)
		for _, m := range regexp.MustCompile("(?ms)^ *```sql\n(.*?)^ *```").FindAllStringSubmatch(string(text), -1) {
			blocks++
			if stmts, err := tidb.Parse(m[1], rewrite.Options{}); err != nil || len(stmts) == 0 {
				t.Errorf("%s: %v\n%s", page, err, m[1])
			}
		}
	}
	if blocks < 4 {
		t.Errorf("have: %d blocks\nwant: more", blocks)
	}
}
