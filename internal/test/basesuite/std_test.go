package basesuite

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// The number of tests in Go 1.26's suite. Update it with a new version. A separate check makes
// sure that all tests that pass directly also pass through the wrapper.
const wantStandard = 113

// stdEdits are changes to package database/sql, so that it builds outside of the standard library
// and its tests find their connection inside a wrapped one. Each must change something.
var stdEdits = []struct {
	file    string
	pattern *regexp.Regexp
	with    string
}{
	{"convert_test.go", regexp.MustCompile(`(?m)^\s*"internal/asan"\n`), ""},
	{"convert_test.go", regexp.MustCompile(`asan\.Enabled`), "false"},
	{"sql_test.go", regexp.MustCompile(`(?m)^\s*"internal/(race|testenv)"\n`), ""},
	{"sql_test.go", regexp.MustCompile(`(?m)^\s*testenv\.SkipIfOptimizationOff\(t\)\n`), ""},
	{"sql_test.go", regexp.MustCompile(`race\.Enabled`), fmt.Sprint(must.Race())},
	{"sql_test.go", regexp.MustCompile(`if _, ok := dc\.\(\*fakeConn\); !ok`), "if baseConn(dc) == nil"},
	{"sql_test.go", regexp.MustCompile(`([\w.\[\]]+)\.\(\*fakeConn\)`), "baseConn($1)"},
	{"sql_test.go", regexp.MustCompile(`db\.Driver\(\)\.\(\*fakeDriver\)`), "baseDriver(db.Driver())"},
	{"sql_test.go", regexp.MustCompile(`OpenDB\(fc\)`), "OpenDB(wrapConnector(fc))"},
	{"fakedb_test.go", regexp.MustCompile(`Register\("test", fdriver\)`), `Register("test", wrapDriver(fdriver))`},
}

// TestStandardSuite runs the tests of database/sql twice: with their own fake driver, and with
// that driver wrapped.
func TestStandardSuite(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it builds the standard library's tests")
	}
	binary := buildStandard(t)
	plain := runSuite(t, binary, nil, nil)
	skips := 0
	if must.Race() {
		skips = 1 // this test counts allocations
	}
	if len(plain.passed)+skips != wantStandard || len(plain.skipped) != skips {
		t.Errorf("database/sql alone, %s\nhave: %d passed, skipped %v\nwant: %d", runtime.Version(), len(plain.passed), plain.skipped, wantStandard)
	}
	ours := runSuite(t, binary, nil, nil, "BASESUITE_WRAP=1")
	must.EqualSlices(t, ours.passed, plain.passed, "passed")
}

// TestPage_numbers compares the page about the servers with the numbers of tests that must pass.
func TestPage_numbers(t *testing.T) {
	page := must.Get(os.ReadFile("../../../docs/understand/tests.md"))(t)
	base := wantPassed - len(leftOut)
	for _, want := range []string{
		fmt.Sprintf("\n%d of %d of database/sql's own tests ", wantStandard, wantStandard),
		fmt.Sprintf("through shardkey |%s\n", strings.Repeat(fmt.Sprintf(" %d of %d |", base, base), 3)),
	} {
		if !strings.Contains(string(page), want[:len(want)-1]) {
			t.Errorf("have: no %q", want)
		}
	}
}

func buildStandard(t *testing.T) (binary string) {
	t.Helper()
	dir := t.TempDir()
	copyFiles(t, dir, filepath.Join(strings.TrimSpace(run(t, ".", "env", "GOROOT")), "src/database/sql"), "*.go")
	examples, _ := filepath.Glob(filepath.Join(dir, "example*"))
	for _, file := range examples {
		must.Do(t, os.Remove(file))
	}
	for _, edit := range stdEdits {
		file := filepath.Join(dir, edit.file)
		text := must.Get(os.ReadFile(file))(t)
		edited := edit.pattern.ReplaceAll(text, []byte(edit.with))
		if string(edited) == string(text) {
			t.Fatalf("%s of %s has no %s", edit.file, runtime.Version(), edit.pattern)
		}
		write(t, file, edited)
	}
	hook := must.Get(os.ReadFile(filepath.Join("testdata", "stdhook.go.txt")))(t)
	write(t, filepath.Join(dir, "shardkey_hook_test.go"), hook)
	writeModule(t, dir)

	binary = filepath.Join(dir, "suite.test")
	args := []string{"test", "-c", "-vet=off", "-o", binary}
	if must.Race() {
		args = append(args, "-race")
	}
	run(t, dir, args...)
	return binary
}
