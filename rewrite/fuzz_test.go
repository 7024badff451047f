package rewrite_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/tidb"
	"github.com/shardkey/shardkey/rewrite"
)

// seeds adds the statements of the golden files and of the driver's differential test to f, in
// every mode.
func seeds(f *testing.F, add func(text string)) {
	for _, c := range rewrite.GoldenCases(f) {
		add(c.Text)
	}
	source, err := os.ReadFile("../driver/differential_cases_test.go")
	if err != nil {
		f.Fatal(err)
	}
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
		if len(plan.Inserts) == 0 {
			if _, err := tidb.Check(text, opts, plan); err != nil {
				t.Fatalf("%q\npasses: %v", text, err)
			}
			return
		}
		if !sqltoken.Classify(text).MustParse() {
			t.Fatalf("%q\nis an insert of class %d", text, sqltoken.Classify(text))
		}
		if _, err := checkPlan(text, opts, plan); err != nil {
			t.Fatalf("%q %v\n%v", text, flags, err)
		}
		for i := range plan.Inserts {
			in := &plan.Inserts[i]
			for row := range in.Rows {
				plan.LiteralKey(in, row)
			}
		}
	})
}

func FuzzClassify(f *testing.F) {
	seeds(f, func(text string) { f.Add(text) })
	for _, text := range []string{"use app", "/* c */ SET @a = 1", "CALL p()", "EXECUTE s", "SELECT 1; SELECT 2", "-- c\nuse x; select 1", "BEGIN"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		class := sqltoken.Classify(text)
		for _, charset := range []string{"gbk", "sjis", "latin1", "cp866"} {
			opts := fuzzOptions(0)
			opts.Charset = charset
			if plan, err := rewrite.Parse(text, opts); !class.MustParse() && (err != nil || len(plan.Inserts) > 0) {
				t.Fatalf("%q\nis of class %d, and an insert in %s: %v", text, class, charset, err)
			}
		}
		for mode := range sqltoken.Mode(4) {
			opts := fuzzOptions(byte(mode))
			if plan, err := rewrite.Parse(text, opts); !class.MustParse() && (err != nil || len(plan.Inserts) > 0) {
				t.Fatalf("%q\nis of class %d, and an insert for mode %d: %v", text, class, mode, err)
			}
			stmts, err := tidb.Parse(text, opts)
			if want := classesOf(stmts); err == nil && want&(1<<class) == 0 {
				t.Fatalf("%q mode %d\nhave: class %d\nwant: a class of %b", text, mode, class, want)
			}
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
		return any | 1<<sqltoken.ClassLoad
	case ast.DDLNode:
		return any | 1<<sqltoken.ClassDDL | 1<<sqltoken.ClassPass // CREATE USER, OPTIMIZE TABLE
	case *ast.CallStmt, *ast.ExecuteStmt:
		return any | 1<<sqltoken.ClassCall
	case *ast.SetPwdStmt, *ast.SetRoleStmt, *ast.SetDefaultRoleStmt, *ast.SetConfigStmt, *ast.SetResourceGroupStmt, *ast.SetSessionStatesStmt:
		return any | 1<<sqltoken.ClassSet | 1<<sqltoken.ClassPass
	}
	return any | 1<<sqltoken.ClassPass
}
