package basesuite

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	// The dependencies of the suite. They make go test run it again when they change.
	_ "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

const base = "github.com/go-sql-driver/mysql"

// Results of go-sql-driver 1.10.1's suite on each server. Update them with a new version. A
// separate check makes sure that all tests that pass directly also pass through the wrapper.
const (
	wantPassed  = 166
	wantSkipped = 0
)

// leftOut are tests that can't run through any wrapper. needNetwork is left out of both runs.
// timed are tests that fail, or skip themselves, when a step takes longer than a tenth of a second,
// a half or one. On a busy machine they run again.
var (
	leftOut = []string{
		"TestPing",                 // asserts the private connection type behind sql.Conn.Raw
		"TestQueryMultipleResults", // as TestPing
	}
	needNetwork = []string{
		"TestConnectorReturnsTimeout", // needs an address that drops packets
	}
	timed = []string{
		"TestContextCancelExec", "TestContextCancelQuery", "TestContextCancelQueryRow", "TestContextCancelStmtExec",
		"TestContextCancelStmtQuery", "TestContextCancelBegin", "TestStaleConnectionChecks", "TestConnectorTimeoutsDuringOpen",
	}
)

// suiteDir is the directory of the suite's build, shared by all servers.
var suiteDir string

func TestBaseSuite(t *testing.T) {
	if suiteDir == "" {
		suiteDir = t.TempDir()
		t.Cleanup(func() { suiteDir = "" })
	}
	if testserver.Each(t, TestBaseSuite) {
		return
	}
	server := testserver.StartSQL(t, "--performance-schema=1", "--max-connections=100", "--back-log=200",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--skip-log-bin") // fast, not durable
	must.Get(must.Open(t, "mysql", server.DSN()).Exec("CREATE DATABASE gotest"))(t) // the suite's default database
	binary := buildSuite(t, suiteDir)
	env := []string{"MYSQL_TEST_USER=root", "MYSQL_TEST_PASS=", "MYSQL_TEST_PROT=tcp", "MYSQL_TEST_ADDR=" + server.Addr(),
		"MYSQL_TEST_DBNAME=gotest", "MYSQL_TEST_CONCURRENT=1"}

	plain := runSuite(t, binary, needNetwork, timed, append(env, "BASESUITE_MYSQL=plain")...)
	if len(plain.passed) != wantPassed || len(plain.skipped) != wantSkipped {
		t.Errorf("the base alone\nhave: %d passed, %d skipped %v\nwant: %d, %d",
			len(plain.passed), len(plain.skipped), plain.skipped, wantPassed, wantSkipped)
	}
	ours := runSuite(t, binary, slices.Concat(needNetwork, leftOut), timed, append(env, "BASESUITE_MYSQL=shardkey")...)
	want := slices.DeleteFunc(plain.passed, func(name string) bool { return slices.Contains(leftOut, name) })
	must.EqualSlices(t, ours.passed, want, "passed")
}

// buildSuite copies the underlying driver's package to a new module in dir, and builds its tests
// if that hasn't been done.
func buildSuite(t *testing.T, dir string) (binary string) {
	t.Helper()
	binary = filepath.Join(dir, "suite.test")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	copyFiles(t, dir, goList(t, base), "*.go")
	hook := must.Get(os.ReadFile(filepath.Join("testdata", "hook.go.txt")))(t)
	write(t, filepath.Join(dir, "shardkey_hook_test.go"), hook)
	writeModule(t, dir)

	// Without flags for the compiler, the build uses the parser's packages from Go's build cache.
	run(t, dir, "test", "-c", "-vet=off", "-o", binary, "-ldflags",
		"-X "+base+".driverName= -X "+copied+".driverName=mysql-plain -X "+copied+".driverNameTest=mysql")
	return binary
}

// copied is the module path of the underlying driver's copy.
const copied = "basesuite.test/mysql"

// writeModule writes a go.mod for the copy, with the versions of this module.
func writeModule(t *testing.T, dir string) {
	t.Helper()
	const module = "github.com/shardkey/shardkey"
	root := goList(t, module)
	text := must.Get(os.ReadFile(filepath.Join(root, "go.mod")))(t)
	mod := strings.Replace(string(text), "module "+module, "module "+copied, 1) +
		"\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n"
	write(t, filepath.Join(dir, "go.mod"), []byte(mod))
	copyFiles(t, dir, root, "go.sum")
}

func copyFiles(t *testing.T, dir, from, pattern string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(from, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, from, err)
	}
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		write(t, filepath.Join(dir, filepath.Base(file)), text)
	}
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(file, text, 0o600))
}

// goList returns the directory of a module.
func goList(t *testing.T, module string) string {
	t.Helper()
	return strings.TrimSpace(run(t, ".", "list", "-m", "-f", "{{.Dir}}", module))
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	if dir != "." { // the copy's go.mod lists more modules than the copy imports
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

// results are the top-level tests of a run, sorted.
type results struct{ passed, skipped []string }

// runSuite runs the tests of a suite except some, and then those that are timed. The test fails if
// one of them fails.
func runSuite(t *testing.T, binary string, skip, timed []string, env ...string) results {
	t.Helper()
	all, out, err := runTests(binary, "^Test", slices.Concat(skip, timed), env)
	must.Do(t, err, env, out)
	for _, name := range timed {
		for range 20 {
			var one results
			if one, out, err = runTests(binary, "^"+name+"$", nil, env); err == nil && len(one.skipped) == 0 {
				all.passed = append(all.passed, one.passed...)
				break
			}
		}
		must.Do(t, err, env, out)
	}
	slices.Sort(all.passed)
	return all
}

// runTests runs the tests of a suite whose names match a pattern, except some.
func runTests(binary, pattern string, skip, env []string) (results, string, error) {
	cmd := exec.Command(binary, "-test.v", "-test.run="+pattern, "-test.timeout=30m", "-test.skip=^("+strings.Join(skip, "|")+")$")
	cmd.Dir = filepath.Dir(binary)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	found := map[string][]string{}
	for _, m := range outcome.FindAllSubmatch(out, -1) {
		found[string(m[1])] = append(found[string(m[1])], string(m[2]))
	}
	return results{found["PASS"], found["SKIP"]}, string(out), err
}

// outcome matches the result of a top-level test. Results of subtests are indented. Output of a
// parallel test may precede a result on its line.
var outcome = regexp.MustCompile(`(?m)^--- (PASS|SKIP): (\w+) `)
