package gormshardkey_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// suiteDir names a checkout of GORM, of the version that suiteRecord names. GORM's tests are in
// a module of their own, gorm.io/gorm/tests, which has no releases, so no module can require it:
//
//	make gorm-suite SHARDKEY_GORM_DIR=…/gorm
//
// On each server the suite runs by itself first, from which the test learns the tables, and
// then through the plugin. With SHARDKEY_SOAK it runs in the other modes too.
const suiteDir = "SHARDKEY_GORM_DIR"

// assertDialector are the tests that assert the type of the dialector.
var assertDialector = []string{"TestGenericsPreloads", "TestGenericsNestedPreloads"}

// suiteEdits have the tests open their databases through the functions of
// testdata/suitehook.go.txt. Each must change something.
var suiteEdits = []struct {
	file    string
	pattern *regexp.Regexp
	with    string
}{
	{"tests_test.go", regexp.MustCompile(`gorm\.Open\(mysql\.Open\(dbDSN\), `), "openMySQL(mysql.Open(dbDSN), "},
	{"connpool_test.go", regexp.MustCompile(`sql\.Open\("mysql", dbDSN\)`), "openNative(dbDSN)"},
}

// suiteModes are the ways to run the suite; only the first is run, unless
// SHARDKEY_SOAK is set.
var suiteModes = []mode{
	{form: "option", auto: true, returning: true},
	{form: "option", auto: false, returning: false},
	{form: "use", auto: true, returning: false},
	{form: "use", auto: false, returning: true},
	{form: "dialector", auto: true, returning: false},
	{form: "dialector", auto: true, returning: true},
}

// TestGORMSuite runs GORM's tests with keys at intervals of 7.
func TestGORMSuite(t *testing.T) {
	checkout := os.Getenv(suiteDir)
	if checkout == "" {
		t.Skipf("GORM's own tests are in no module that can be required: name a checkout of GORM in %s", suiteDir)
	}
	if !strings.Contains(t.Name(), "/") {
		buildSuite(t, checkout)
	}
	if testserver.Each(t, TestGORMSuite) {
		return
	}
	s := &suite{server: testserver.StartSQL(t, "--general-log=1", "--log-output=TABLE"), reasons: readSuiteReasons(t)}
	s.rule = filepath.Join(t.TempDir(), "rule.yaml")
	plain := s.run(t, mode{form: "plain", auto: true, returning: true}, nil)
	s.writeRule(t)
	modes := suiteModes
	if os.Getenv("SHARDKEY_SOAK") == "" {
		modes = modes[:1]
	}
	for _, m := range modes {
		t.Run(fmt.Sprintf("%s,auto=%t,returning=%t", m.form, m.auto, m.returning), func(t *testing.T) {
			want := slices.Clone(plain.passed)
			var skip []string
			if m.form == "dialector" {
				skip = assertDialector
			}
			ours := s.run(t, m, skip)
			passed := 0
			for _, name := range want {
				switch {
				case slices.Contains(ours.passed, name):
					passed++
				case s.reasons["fails "+name] == "" && !slices.Contains(skip, name):
					t.Errorf("%s does not pass:\n%s", name, ours.of(name))
				}
			}
			t.Logf("%d of %d tests pass; failed: %v", passed, len(want), ours.failed)
		})
	}
}

// suiteBinary is the test binary of GORM's tests.
var suiteBinary string

// buildSuite copies the checkout and builds its tests with the hook.
func buildSuite(t *testing.T, checkout string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "gorm")
	must.Do(t, os.CopyFS(dir, os.DirFS(checkout)))
	tests := filepath.Join(dir, "tests")
	for _, edit := range suiteEdits {
		file := filepath.Join(tests, edit.file)
		text := must.Get(os.ReadFile(file))(t)
		edited := edit.pattern.ReplaceAll(text, []byte(edit.with))
		if bytes.Equal(edited, text) {
			t.Fatalf("%s has no %s", file, edit.pattern)
		}
		must.Do(t, os.WriteFile(file, edited, 0o600))
	}
	hook := must.Get(os.ReadFile("testdata/suitehook.go.txt"))(t)
	must.Do(t, os.WriteFile(filepath.Join(tests, "shardkey_hook_test.go"), hook, 0o600))
	here := must.Get(os.Getwd())(t)
	edit := []string{"mod", "edit", "-go=1.26.0"}
	for module, path := range map[string]string{"github.com/shardkey/shardkey": filepath.Dir(here), "github.com/shardkey/shardkey/gormshardkey": here} {
		edit = append(edit, "-require="+module+"@v0.0.0", "-replace="+module+"="+path)
	}
	runGo(t, tests, edit...)
	runGo(t, tests, "mod", "tidy")
	suiteBinary = filepath.Join(tests, "suite.test")
	runGo(t, tests, "test", "-c", "-vet=off", "-o", suiteBinary, ".")
}

func runGo(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// suite is a server on which the tests run, in the database gorm, whose name they
// use.
type suite struct {
	server  *testserver.Server
	rule    string
	reasons map[string]string // see readSuiteReasons
}

func (s *suite) exec(t *testing.T, texts ...string) {
	t.Helper()
	db := must.Open(t, "mysql", s.server.DSN())
	for _, text := range texts {
		must.Get(db.Exec(text))(t, text)
	}
}

// writeRule writes a rule for each table in which the tests have made a column
// AUTO_INCREMENT.
func (s *suite) writeRule(t *testing.T) {
	t.Helper()
	const created = "SELECT argument FROM mysql.general_log WHERE argument LIKE 'CREATE TABLE%AUTO_INCREMENT%'"
	rows := must.Get(must.Open(t, "mysql", s.server.DSN()).Query(created))(t)
	defer rows.Close()
	columns := map[string]string{}
	for rows.Next() {
		var text string
		must.Do(t, rows.Scan(&text))
		if m := autoColumn.FindStringSubmatch(text); m != nil {
			columns[m[1]] = m[2]
		}
	}
	must.Do(t, rows.Err())
	var rule strings.Builder
	rule.WriteString("rules:\n- !SHARDING\n  keyGenerators: {gap: {type: GAPPED}}\n  tables:\n")
	for table, column := range columns {
		fmt.Fprintf(&rule, "    %q: {keyGenerateStrategy: {column: %q, keyGeneratorName: gap}, unlisted: pass}\n", table, column)
	}
	if len(columns) == 0 {
		t.Fatal("the tests have made no table with AUTO_INCREMENT")
	}
	t.Logf("%d tables with AUTO_INCREMENT", len(columns))
	must.Do(t, os.WriteFile(s.rule, []byte(rule.String()), 0o600))
}

var autoColumn = regexp.MustCompile("(?s)^CREATE TABLE (?:`gorm`\\.)?`([^`]+)`.*?[(,]`([^`]+)` [^,]*AUTO_INCREMENT")

// outcomes are the top-level tests of a run.
type outcomes struct {
	passed, failed []string
	output         []byte
}

// run runs the tests in an empty database, and those that fail again alone: some
// compare times of the same millisecond.
func (s *suite) run(t *testing.T, m mode, skip []string) *outcomes {
	t.Helper()
	s.exec(t, "DROP DATABASE IF EXISTS gorm", "CREATE DATABASE gorm")
	o := s.runOnce(t, m, "^Test", skip)
	for _, name := range slices.Clone(o.failed) {
		for range 3 {
			if s.reasons["fails "+name] != "" {
				break
			}
			if again := s.runOnce(t, m, "^"+name+"$", nil); slices.Contains(again.passed, name) {
				o.passed = append(o.passed, name)
				o.failed = slices.DeleteFunc(o.failed, func(failed string) bool { return failed == name })
				break
			}
		}
	}
	return o
}

func (s *suite) runOnce(t *testing.T, m mode, pattern string, skip []string) *outcomes {
	t.Helper()
	args := []string{"-test.v", "-test.run=" + pattern, "-test.timeout=10m"}
	skip = slices.Clone(skip)
	for test := range s.reasons {
		if name, ok := strings.CutPrefix(test, "skipped "); ok {
			skip = append(skip, name)
		}
	}
	args = append(args, "-test.skip=^("+strings.Join(skip, "|")+")$")
	cmd := exec.CommandContext(t.Context(), suiteBinary, args...)
	cmd.Dir = filepath.Dir(suiteBinary)
	cmd.Env = append(os.Environ(), "GORM_DIALECT=mysql", "DEBUG=false", "GORMSUITE_FORM="+m.form, "GORMSUITE_RULE="+s.rule,
		"GORM_DSN=root@tcp("+s.server.Addr()+")/gorm?charset=utf8mb4&parseTime=True&loc=Local",
		"GORMSUITE_AUTO="+word(m.auto), "GORMSUITE_RETURNING="+word(m.returning))
	out, err := cmd.CombinedOutput()
	o := &outcomes{output: out}
	for _, match := range outcomeLine.FindAllStringSubmatch(string(out), -1) {
		if match[1] == "PASS" {
			o.passed = append(o.passed, match[2])
		} else {
			o.failed = append(o.failed, match[2])
		}
	}
	if err != nil && (len(o.failed) == 0 || bytes.Contains(out, []byte("\npanic: "))) {
		t.Fatalf("%s: %v\n%s", m.form, err, tail(out))
	}
	return o
}

// word is a value of an environment variable, which is empty for false.
func word(b bool) string {
	if b {
		return "1"
	}
	return ""
}

// outcomeLine matches the line of a top-level test; lines of subtests are indented.
var outcomeLine = regexp.MustCompile(`(?m)^--- (PASS|FAIL): (\w+) `)

// of returns the output of one test in a run.
func (o *outcomes) of(name string) string {
	_, text, _ := bytes.Cut(o.output, []byte("=== RUN   "+name+"\n"))
	text, _, _ = bytes.Cut(text, []byte("\n=== RUN   "))
	return tail(text)
}

func tail(text []byte) string { return string(text[max(0, len(text)-4000):]) }

const suiteRecord = "testdata/gormsuite.txt"

// readSuiteReasons returns why tests of the suite fail or are skipped, by "fails TestName" or
// "skipped TestName".
func readSuiteReasons(t *testing.T) map[string]string {
	t.Helper()
	text := must.Get(os.ReadFile(suiteRecord))(t)
	reasons := map[string]string{}
	for _, m := range suiteReason.FindAllStringSubmatch(string(text), -1) {
		reasons[m[1]+" "+m[2]] = m[3]
	}
	return reasons
}

var suiteReason = regexp.MustCompile(`(?m)^(fails|skipped) +(\w+) +(.+)$`)

// The record is of the version of GORM that gormshardkey requires.
func TestSuiteRecord(t *testing.T) {
	text := must.Get(os.ReadFile(suiteRecord))(t)
	mod := must.Get(os.ReadFile("go.mod"))(t)
	required := regexp.MustCompile(`gorm\.io/gorm (\S+)`).FindSubmatch(mod)
	if required == nil || !strings.Contains(string(text), "the tests of GORM "+string(required[1])+" ") {
		t.Errorf("%s is not of GORM %s: run make gorm-suite", suiteRecord, required)
	}
	if len(readSuiteReasons(t)) < 2 {
		t.Errorf("%s has no reasons", suiteRecord)
	}
}
