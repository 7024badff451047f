package rewrite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// seeds gives f the texts of the golden files and of the driver's differential
// test, in every mode.
func seeds(f *testing.F, add func(text string)) {
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		for _, c := range readGolden(f, file) {
			add(c.text)
		}
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

// Bits of the fuzzer's flags beside the modes.
const (
	fuzzInText = 8 << iota
	fuzzKeep
	fuzzText
	fuzzInvisible
)

// fuzzOptions has a rule for every table.
func fuzzOptions(flags byte) Options {
	table := Table{KeyColumn: "id", Kind: KindInteger, KeepExplicit: flags&fuzzKeep != 0, Columns: []string{"id", "a", "s"}}
	if flags&fuzzText != 0 {
		table.Kind = KindText
	}
	if flags&fuzzInvisible != 0 {
		table.Columns = table.Columns[1:]
	}
	return Options{
		Mode:   Mode(flags & 7),
		Tables: func(string, string) *Table { return &table },
	}
}

func FuzzRewrite(f *testing.F) {
	seeds(f, func(text string) {
		for _, flags := range []byte{0, 1, 2, 4, fuzzInText, fuzzKeep, fuzzText, fuzzInvisible | 1} {
			f.Add(text, flags)
		}
	})
	o := newOracle()
	f.Fuzz(func(t *testing.T, text string, flags byte) {
		if len(text) > 4096 {
			return
		}
		opts := fuzzOptions(flags)
		plan, err := Parse(text, opts)
		if err != nil {
			checkStatementError(t, text, err)
			return
		}
		if flags&fuzzInText != 0 {
			plan.Report()
		}
		if len(plan.Inserts) == 0 {
			if stmts, err := o.parse(text, opts.Mode); err == nil && comparable(text, opts.Mode) && len(inserts(stmts)) > 0 {
				t.Fatalf("%q\npasses, and is an insert", text)
			}
			return
		}
		if Classify(text) != ClassMayInsert {
			t.Fatalf("%q\nis an insert of class %d", text, Classify(text))
		}
		if err := o.checkPlan(text, opts.Mode, plan, fuzzKeys(plan)); err != nil {
			t.Fatalf("%q %v\n%v", text, flags, err)
		}
		for i := range plan.Inserts {
			in := &plan.Inserts[i]
			for row := range in.Rows() {
				plan.Kept(in, row, opts.Mode)
			}
		}
	})
}

func fuzzKeys(p *Plan) []Keys {
	keys := make([]Keys, len(p.Inserts))
	for i := range p.Inserts {
		in := &p.Inserts[i]
		for n := range in.slots.fills() {
			if in.Table.Kind == KindText {
				keys[i].Values = append(keys[i].Values, fmt.Sprintf("it's \\%d", n))
			} else {
				keys[i].Ints = append(keys[i].Ints, int64(n+1))
			}
		}
	}
	return keys
}

func checkStatementError(t *testing.T, text string, err error) {
	t.Helper()
	var failed *StatementError
	switch {
	case !errors.As(err, &failed), !errors.Is(err, ErrUnsupportedStatement):
		t.Fatalf("%q\nhave: %#v\nwant: *StatementError", text, err)
	case failed.Offset < 0, failed.Offset > len(text), failed.Line < 1, failed.Column < 1, failed.Near == "", failed.Reason == "":
		t.Fatalf("%q\n%#v", text, failed)
	}
}

func FuzzClassify(f *testing.F) {
	seeds(f, func(text string) { f.Add(text) })
	for _, text := range []string{"use app", "/* c */ SET @a = 1", "CALL p()", "EXECUTE s", "SELECT 1; SELECT 2", "-- c\nuse x; select 1", "BEGIN"} {
		f.Add(text)
	}
	o := newOracle()
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		class := Classify(text)
		for mode := range Mode(4) {
			if plan, err := Parse(text, fuzzOptions(byte(mode))); class != ClassMayInsert && (err != nil || len(plan.Inserts) > 0) {
				t.Fatalf("%q\nis of class %d, and an insert for mode %d: %v", text, class, mode, err)
			}
			if !comparable(text, mode) {
				continue
			}
			stmts, err := o.parse(text, mode)
			if want := classesOf(stmts); err == nil && want&(1<<class) == 0 {
				t.Fatalf("%q mode %d\nhave: class %d\nwant: a class of %b", text, mode, class, want)
			}
		}
	})
}

// classesOf are the classes that fit statements, a bit each.
func classesOf(stmts []ast.StmtNode) (classes uint) {
	const any = 1<<ClassSeveral | 1<<ClassMayInsert
	for _, s := range stmts {
		if e, ok := s.(*ast.ExplainStmt); ok && e.Analyze {
			s = e.Stmt
		}
		if _, ok := s.(*ast.InsertStmt); ok {
			return 1 << ClassMayInsert
		}
	}
	if len(stmts) != 1 {
		if len(stmts) == 0 {
			return any | 1<<ClassPass
		}
		return any
	}
	switch stmts[0].(type) {
	case *ast.SetStmt:
		return any | 1<<ClassSet
	case *ast.UseStmt:
		return any | 1<<ClassUse
	case *ast.CallStmt, *ast.ExecuteStmt:
		return any | 1<<ClassCall
	case *ast.SetPwdStmt, *ast.SetRoleStmt, *ast.SetDefaultRoleStmt, *ast.SetConfigStmt, *ast.SetResourceGroupStmt, *ast.SetSessionStatesStmt:
		return any | 1<<ClassSet | 1<<ClassPass
	}
	return any | 1<<ClassPass
}
