package rewrite_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/internal/tidb"
	"github.com/shardkey/shardkey/rewrite"
)

// seeds adds the statements of the golden files and of the comparison with AUTO_INCREMENT to f, in
// every mode.
func seeds(f *testing.F, add func(text string)) {
	for _, c := range rewrite.GoldenCases(f) {
		add(c.Text)
	}
	source := must.Get(os.ReadFile("../internal/test/differential/cases_test.go"))(f)
	for _, m := range regexp.MustCompile("q\\((\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`)").FindAllSubmatch(source, -1) {
		if text, err := strconv.Unquote(string(m[1])); err == nil {
			add(text)
		}
	}
}

// Bits of the fuzzer's flags next to the modes.
const (
	fuzzInText = 8 << iota
	fuzzKeep
	fuzzText
	fuzzInvisible
	fuzzStrict
)

// fuzzOptions has a rule for every table.
func fuzzOptions(flags byte) rewrite.Options {
	table := rewrite.Table{Key: "id", Strings: flags&fuzzText != 0, KeepExplicit: flags&fuzzKeep != 0, Columns: []string{"id", "a", "s"}}
	if flags&fuzzInvisible != 0 {
		table.Columns = table.Columns[1:]
	}
	mode := sqltoken.Mode(flags & 7)
	if flags&fuzzStrict != 0 {
		mode |= sqltoken.Strict
	}
	return rewrite.Options{
		SQLMode: mode.String(),
		Table:   func(string, string) *rewrite.Table { return &table },
		// TiDB has no RETURNING, and so it is a name.
		Server:     "mysql",
		ReportKeys: flags&fuzzInText != 0,
	}
}

func FuzzRewrite(f *testing.F) {
	seeds(f, func(text string) {
		for _, flags := range []byte{0, 1, 2, 4, fuzzInText, fuzzKeep, fuzzText, fuzzInvisible | 1, fuzzStrict} {
			f.Add(text, flags)
		}
	})
	f.Fuzz(func(t *testing.T, text string, flags byte) {
		if len(text) > 4096 {
			return
		}
		opts := fuzzOptions(flags)
		plan, err := rewrite.Parse(text, opts)
		if err != nil {
			rewrite.CheckStatementError(t, text, err)
			return
		}
		if plan.Insert == nil {
			must.Get(tidb.Check(text, opts, plan))(t, text, "passes")
			return
		}
		if !sqltoken.Scan(text, true).MustParse() {
			t.Fatalf("%q\nis an insert of class %d", text, sqltoken.Scan(text, true).Class)
		}
		must.Get(checkPlan(text, opts, plan))(t, text, flags)
		for row := range plan.Insert.Rows {
			plan.LiteralKey(row)
		}
	})
}

func FuzzScan(f *testing.F) {
	seeds(f, func(text string) { f.Add(text) })
	for _, text := range []string{"use app", "/* c */ SET @a = 1", "CALL p()", "EXECUTE s", "SELECT 1; SELECT 2", "-- c\nuse x; select 1", "BEGIN"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		class := sqltoken.Scan(text, true).Class
		for _, charset := range []string{"gbk", "sjis", "latin1", "cp866"} {
			opts := fuzzOptions(0)
			opts.Charset = charset
			if plan, err := rewrite.Parse(text, opts); class != sqltoken.ClassMayInsert && (err != nil || plan.Insert != nil) {
				t.Fatalf("%q\nis of class %d, and an insert in %s: %v", text, class, charset, err)
			}
		}
		for mode := range sqltoken.Mode(4) {
			opts := fuzzOptions(byte(mode))
			if plan, err := rewrite.Parse(text, opts); class != sqltoken.ClassMayInsert && (err != nil || plan.Insert != nil) {
				t.Fatalf("%q\nis of class %d, and an insert for mode %d: %v", text, class, mode, err)
			}
			stmts, err := tidb.Parse(text, opts)
			if want := classesOf(stmts); err == nil && want&(1<<class) == 0 {
				t.Fatalf("%q mode %d\nhave: class %d\nwant: a class of %b", text, mode, class, want)
			}
		}
	})
}

// FuzzSplit compares the statements of a string with those of TiDB's parser.
func FuzzSplit(f *testing.F) {
	seeds(f, func(text string) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 || strings.Contains(text, "/*!") || strings.Contains(text, "/*+") || strings.Contains(text, "/*T!") {
			return // TiDB executes other comments than the servers
		}
		opts := fuzzOptions(0)
		stmts, err := tidb.Parse(text, opts)
		if err != nil {
			return
		}
		split := 0
		for rest := text; rest != ""; split++ {
			statement, behind, err := rewrite.Split(rest, opts)
			if err != nil {
				return
			}
			if !strings.HasPrefix(rest, statement) || !strings.HasSuffix(rest, behind) {
				t.Fatalf("%q\nhave: %q and %q\nwant: its parts", rest, statement, behind)
			}
			rest = behind
			if one, err := tidb.Parse(statement, opts); err != nil || len(one) > 1 {
				t.Fatalf("%q\nhave: the statement %q\nwant: one statement", text, statement)
			} else if len(one) == 0 {
				split--
			}
		}
		if split != len(stmts) {
			t.Fatalf("%q\nhave: %d statements\nwant: %d", text, split, len(stmts))
		}
	})
}

// classesOf are the classes that fit statements, a bit each.
func classesOf(stmts []ast.StmtNode) (classes uint) {
	const any = 1<<sqltoken.ClassSeveral | 1<<sqltoken.ClassMayInsert
	for _, s := range stmts {
		if _, traced := s.(*ast.TraceStmt); !traced && tidb.Runs(s) != nil {
			return 1 << sqltoken.ClassMayInsert
		}
	}
	if len(stmts) != 1 {
		if len(stmts) == 0 {
			return any | 1<<sqltoken.ClassPass
		}
		return any
	}
	switch stmts[0].(type) {
	case *ast.SetStmt:
		return any | 1<<sqltoken.ClassSet
	case *ast.UseStmt:
		return any | 1<<sqltoken.ClassUse
	case *ast.LoadDataStmt:
		return any
	case ast.DDLNode:
		return any | 1<<sqltoken.ClassDDL | 1<<sqltoken.ClassPass // CREATE USER, OPTIMIZE TABLE
	case *ast.CallStmt, *ast.ExecuteStmt:
		return any | 1<<sqltoken.ClassCall
	case *ast.SetPwdStmt, *ast.SetRoleStmt, *ast.SetDefaultRoleStmt, *ast.SetConfigStmt, *ast.SetResourceGroupStmt, *ast.SetSessionStatesStmt:
		return any | 1<<sqltoken.ClassSet | 1<<sqltoken.ClassPass
	}
	return any | 1<<sqltoken.ClassPass
}

// checkPlan compares a plan with the second parser, with placeholders and with literals. It
// compares the facts that the second parser can't see with the statement.
func checkPlan(text string, opts rewrite.Options, p *rewrite.Plan) (known bool, err error) {
	if err := checkSplices(p); err != nil {
		return false, err
	}
	if have, want := rewrite.CountPlaceholders(p.Query(), opts), rewrite.CountPlaceholders(text, opts)+p.NumKeys; have != want {
		return false, fmt.Errorf("placeholders of the bind text\nhave: %d\nwant: %d", have, want)
	}
	if have := rewrite.CountPlaceholders(text, opts); have != p.NumArgs {
		return false, fmt.Errorf("placeholders of the text\nhave: %d\nwant: %d", p.NumArgs, have)
	}
	if _, err := tidb.CheckKeys(text, opts, p, keysFor(p)); err != nil {
		return false, fmt.Errorf("with literals: %w", err)
	}
	return tidb.CheckKeys(text, opts, p, nil)
}

// keysFor returns keys for a plan, with unusual strings for string keys.
func keysFor(p *rewrite.Plan) *rewrite.Keys {
	k := new(rewrite.Keys)
	for s := range p.Splices() {
		if s.HasKey && p.Insert.Table.Strings {
			k.Values = append(k.Values, fmt.Sprintf("it's \\%d", k.Len()))
		} else if s.HasKey {
			k.Ints = append(k.Ints, int64(k.Len()+1))
		}
	}
	return k
}

// around matches the SQL around an expression that is the key, and the changes of an INSERT … SELECT.
var around = regexp.MustCompile(`^(CAST\(~\(~IFNULL\(CAST\(\(|~\(~IFNULL\(CAST\(GREATEST\(|COALESCE\(CAST\(\(|\) AS (SIGNED|DECIMAL\(20\))\), )|` +
	`^(, )?CASE LAST_INSERT_ID\(\) .* END$|^\?$|^WITH shardkey_rows \(|\) SELECT .*c1.* FROM shardkey_rows$|^$`)

// checkSplices checks that a plan changes its statement only by the known forms of keys and
// columns.
func checkSplices(p *rewrite.Plan) error {
	for s := range p.Splices() {
		column := regexp.QuoteMeta(sqltoken.QuoteIdentifier(p.Insert.Table.Key))
		form := "^(, " + column + "| ?\\(?(`([^`]|``)+`(, )?)+\\)?|, `shardkey_key`|(~0 \\+ 1(, )?)+| LIMIT 9223372036854775807 |, .*" + column + " = IF\\(.*)$"
		if s.HasKey {
			form = "^(, )?(" + column + " = )?(LAST_INSERT_ID\\(\\?\\)|\\? ?)$"
		}
		if s.At == s.End && s.Before == "" && !s.HasKey {
			return fmt.Errorf("an empty splice at %d", s.At)
		}
		if !s.HasKey && around.MatchString(s.Before) {
			continue
		}
		text := s.Before + strings.Repeat("?", map[bool]int{true: 1}[s.HasKey]) + s.After
		if !regexp.MustCompile(form).MatchString(text) {
			return fmt.Errorf("splice\nhave: %q\nwant: %s", text, form)
		}
	}
	return nil
}

// TestGolden_secondReader checks the plans of all golden files, and that the
// second parser knows most of them.
func TestGolden_secondReader(t *testing.T) {
	seen := map[bool]int{}
	for _, c := range rewrite.GoldenCases(t) {
		for _, report := range []bool{false, true} {
			c.Options.ReportKeys = report
			plan, err := rewrite.Parse(c.Text, c.Options)
			if err != nil {
				continue
			}
			known, err := checkPlan(c.Text, c.Options, plan)
			if err != nil {
				t.Errorf("%s\n%s\n%v", c.Title, c.Text, err)
			}
			if plan.Insert != nil {
				seen[known]++
			}
		}
	}
	if agreed, unknown := seen[true], seen[false]; agreed < 2*unknown {
		t.Errorf("have: %d agreed, %d unknown\nwant: most are known", agreed, unknown)
	}
}
