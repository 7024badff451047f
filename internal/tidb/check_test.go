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
	return rewrite.Options{SQLMode: mode.String(), Table: func(_, name string) *rewrite.Table {
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
		want       tidb.Outcome
	}{
		{"bound", "INSERT INTO t (a) VALUES (?)", 0, tidb.OutcomeAgreed},
		{"literal", "INSERT INTO t (a) VALUES (1)", 0, tidb.OutcomeAgreed},
		{"another table", "INSERT INTO free (a) VALUES (1)", 0, tidb.OutcomeAgreed},
		{"no INSERT", "SELECT 1", 0, tidb.OutcomeAgreed},
		{"ANSI_QUOTES", `INSERT INTO "t" ("a") VALUES (?)`, sqltoken.ANSIQuotes, tidb.OutcomeAgreed},
		{"NO_BACKSLASH_ESCAPES", `INSERT INTO t (a) VALUES ('\')`, sqltoken.NoBackslashEscapes, tidb.OutcomeAgreed},
		{"long", rowsText(500), 0, tidb.OutcomeAgreed},
		{"too long", rowsText(10_000), 0, tidb.OutcomeUnknown},
		{"VALUES ROW", "INSERT INTO t (a) VALUES ROW(?), ROW(2)", 0, tidb.OutcomeAgreed},
		{"SET", "INSERT INTO t SET a = ?, id = NULL ON DUPLICATE KEY UPDATE a = 1", 0, tidb.OutcomeAgreed},
		{"several statements", "BEGIN; INSERT INTO t (a) VALUES (1); COMMIT; INSERT INTO t (a) VALUES (2)", 0, tidb.OutcomeAgreed},
		{"a query", "INSERT INTO t (a) SELECT a FROM t WHERE a > ? LIMIT 5", 0, tidb.OutcomeAgreed},
		{"row alias", "INSERT INTO t (a) VALUES (1) AS new ON DUPLICATE KEY UPDATE a = new.a", 0, tidb.OutcomeUnknown},
		{"RETURNING", "INSERT INTO t (a) VALUES (1) RETURNING id", 0, tidb.OutcomeUnknown},
		{"VALUES ROW in brackets", "INSERT INTO t (a) (VALUES ROW(3), ROW(4))", 0, tidb.OutcomeAgreed},
		{"an expression that ends in a dot", "INSERT INTO t (a, id) VALUES (1, 7/1.)", 0, tidb.OutcomeAgreed},
		{"a key before a word", "INSERT INTO t SET a = '1'ON DUPLICATE KEY UPDATE a = 2", 0, tidb.OutcomeAgreed},
		{"a key in brackets before a word", "INSERT INTO t SET a = ?, id = (NULL)ON DUPLICATE KEY UPDATE a = 2", 0, tidb.OutcomeAgreed},
		{"a string that is no integer", "INSERT INTO t (id, a) VALUES ('abc', 1), ('', 2), ('7x', 3)", 0, tidb.OutcomeAgreed},
		{"no UTF-8", "INSERT INTO t (a) VALUES ('\xff')", 0, tidb.OutcomeUnknown},
		{"too deep to be walked", "INSERT INTO t (a) VALUES (1" + strings.Repeat("+1", 1<<20) + ")", 0, tidb.OutcomeUnknown},
		{"deep", "INSERT INTO t (a) VALUES (" + strings.Repeat("(", 30_000) + "1" + strings.Repeat(")", 30_000) + ")", 0, tidb.OutcomeAgreed},
		{"many digits", "INSERT INTO t (id) VALUES (" + strings.Repeat("9", 1000) + "." + strings.Repeat("9", 1000) + ")", 0, tidb.OutcomeAgreed},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := options(c.mode)
			must.Equal(t, must.Get(tidb.Check(c.text, opts, parsed(t, c.text, opts)))(t), c.want)
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
		if !errors.As(err, new(*tidb.DisagreementError)) || !errors.Is(err, rewrite.ErrUnsupportedStatement) {
			t.Errorf("%s\nhave: %v\nwant: *DisagreementError", text, err)
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
				if outcome, err := tidb.Check(text, opts, p); outcome != tidb.OutcomeAgreed {
					t.Errorf("%s\nhave: %d, %v\nwant: agreed", text, outcome, err)
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
		{"1000 literal rows", rowsText(1000)},
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
				if outcome, err := tidb.Check(c.text, opts, p); outcome != tidb.OutcomeAgreed {
					b.Fatal(outcome, err)
				}
			}
		})
	}
}

// BenchmarkParse is TiDB's parser alone, the peer of package rewrite's.
func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"one row", "INSERT INTO t (user_id, amount, note) VALUES (?, ?, ?)"},
		{"1000 rows", rowsText(1000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tidb.Parse(c.text, options(0)); err != nil {
					b.Fatal(err)
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
	const checked = "right plan: true <nil>\nwrong plan: false\n"
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
