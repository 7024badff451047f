package basesuite

import (
	"bufio"
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	// What the suite is built with: go test must not keep the result of another
	// driver's run.
	_ "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/testserver"
)

const base = "github.com/go-sql-driver/mysql"

// What the suite of go-sql-driver 1.10.1 gives on each server. A new version of
// either may need other numbers; that nothing is lost through the wrapper is
// asserted apart.
const (
	wantPassed  = 166
	wantSkipped = 0
)

// leftOut are the tests that cannot run through any wrapper, and needNetwork the
// one that is left out of both runs.
var (
	leftOut = []string{
		"TestPing",                 // asserts the private type of the connection that Raw shows
		"TestQueryMultipleResults", // the same
	}
	needNetwork = []string{
		"TestConnectorReturnsTimeout", // dials an address that must swallow packets
	}
)

// suiteDir is where the suite is built, once for all servers.
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
		"--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--skip-log-bin") // quick rather than durable
	createDatabase(t, server.DSN())
	binary := buildSuite(t, suiteDir)

	plain := runSuite(t, binary, server.Addr(), "plain", needNetwork)
	if have := len(plain.failed); have > 0 {
		t.Fatalf("the base fails its own tests %v:\n%s", plain.failed, plain.output)
	}
	if len(plain.passed) != wantPassed || len(plain.skipped) != wantSkipped {
		t.Errorf("the base alone\nhave: %d passed, %d skipped %v\nwant: %d, %d",
			len(plain.passed), len(plain.skipped), plain.skipped, wantPassed, wantSkipped)
	}

	ours := runSuite(t, binary, server.Addr(), "shardkey", slices.Concat(needNetwork, leftOut))
	if len(ours.failed) > 0 {
		t.Errorf("through the wrapper fail %v:\n%s", ours.failed, ours.output)
	}
	want := slices.DeleteFunc(slices.Clone(plain.passed), func(name string) bool { return slices.Contains(leftOut, name) })
	if !slices.Equal(ours.passed, want) {
		t.Errorf("passed\nhave: %d %v\nwant: %d %v", len(ours.passed), ours.passed, len(want), want)
	}
	testserver.Ran(t, "go-sql-driver's own tests, through shardkey", fmt.Sprintf("%d of %d", len(ours.passed), len(want)))
	t.Logf("%d of %d tests pass through the wrapper, %d skip; left out: %v",
		len(ours.passed), len(plain.passed), len(ours.skipped), leftOut)
}

// createDatabase makes the database that the suite uses by default.
func createDatabase(t *testing.T, dsn string) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE DATABASE gotest"); err != nil {
		t.Fatal(err)
	}
}

// buildSuite copies the base's package into a module of its own in dir and builds its
// tests, unless that is done.
func buildSuite(t *testing.T, dir string) (binary string) {
	t.Helper()
	binary = filepath.Join(dir, "suite.test")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	copyFiles(t, dir, goList(t, base), "*.go")
	hook, err := os.ReadFile(filepath.Join("testdata", "hook.go.txt"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "shardkey_hook_test.go"), hook)
	writeModule(t, dir)

	// Without flags that change how dependencies are compiled, the parser's packages are in
	// Go's build cache from other tests.
	run(t, dir, "test", "-c", "-vet=off", "-o", binary, "-ldflags",
		"-X "+base+".driverName= -X "+copied+".driverName=mysql-plain -X "+copied+".driverNameTest=mysql")
	return binary
}

// copied is the path of the module that the base is copied into.
const copied = "basesuite.test/mysql"

// writeModule makes the copy a module with the versions of this one.
func writeModule(t *testing.T, dir string) {
	t.Helper()
	const module = "github.com/shardkey/shardkey"
	root := goList(t, module)
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
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
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, filepath.Base(file)), text)
	}
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// goList is the directory of a module.
func goList(t *testing.T, module string) string {
	t.Helper()
	return strings.TrimSpace(run(t, ".", "list", "-m", "-f", "{{.Dir}}", module))
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	if dir != "." { // the copy's go.mod lists more than the copy imports
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
type results struct {
	passed, skipped, failed []string
	output                  []byte
}

// runSuite runs the tests with "mysql" being what the kind says.
func runSuite(t *testing.T, binary, addr, kind string, skip []string) (r results) {
	t.Helper()
	cmd := exec.Command(binary, "-test.v", "-test.run=^Test", "-test.timeout=5m",
		"-test.skip=^("+strings.Join(skip, "|")+")$")
	cmd.Dir = filepath.Dir(binary)
	cmd.Env = append(os.Environ(), "BASESUITE_MYSQL="+kind,
		"MYSQL_TEST_USER=root", "MYSQL_TEST_PASS=", "MYSQL_TEST_PROT=tcp", "MYSQL_TEST_ADDR="+addr,
		"MYSQL_TEST_DBNAME=gotest", "MYSQL_TEST_CONCURRENT=1")
	out, err := cmd.CombinedOutput()
	r = parse(out)
	if err != nil && len(r.failed) == 0 {
		t.Fatalf("%s: %v\n%s", kind, err, out)
	}
	return r
}

// outcome is the line of a top-level test; those of subtests are indented. Other
// output of a parallel test may stand before it on the line.
var outcome = regexp.MustCompile(`^--- (PASS|SKIP|FAIL): (\w+) `)

func parse(out []byte) (r results) {
	r.output = out
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		m := outcome.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		switch m[1] {
		case "PASS":
			r.passed = append(r.passed, m[2])
		case "SKIP":
			r.skipped = append(r.skipped, m[2])
		case "FAIL":
			r.failed = append(r.failed, m[2])
		}
	}
	for _, names := range [][]string{r.passed, r.skipped, r.failed} {
		slices.Sort(names)
	}
	return r
}
