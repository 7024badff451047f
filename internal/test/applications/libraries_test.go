package applications

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// TestLibraries runs TestWrappers of examples/otherorms with libraries that would add dozens of
// modules to the examples' go.mod.
func TestLibraries(t *testing.T) {
	skipUnlessSet(t)
	t.Run("dd-trace-go", func(t *testing.T) {
		testWrappers(t, "ddtrace", []string{"dd-trace-go", "dd-trace-go_with_comments"},
			"github.com/DataDog/dd-trace-go/contrib/database/sql/v2@v2.3.0",
			"go.opentelemetry.io/contrib/bridges/otelzap@v0.21.0") // as new as the examples' OpenTelemetry
	})
	t.Run("go-zero", func(t *testing.T) {
		testWrappers(t, "gozero", []string{"go-zero", "dbr"},
			"github.com/zeromicro/go-zero@v1.10.3", "github.com/gocraft/dbr/v2@v2.7.7")
	})
}

// testWrappers adds a file of testdata to the tests of examples/otherorms, with the modules that it
// requires, and runs the tests that it adds.
func testWrappers(t *testing.T, file string, tests []string, require ...string) {
	if !regexp.MustCompile(*only).MatchString(t.Name()) {
		t.Skipf("-programs %s selects other tests", *only)
	}
	examples := must.Get(filepath.Abs(filepath.Join(root, "examples")))(t)
	source := must.Get(filepath.Abs("testdata/" + file + ".go.txt"))(t)
	temp := t.TempDir()
	mod, overlay := filepath.Join(temp, "go.mod"), filepath.Join(temp, "overlay.json")
	replaced := must.Get(json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(examples, "otherorms", file+"_test.go"): source}}))(t)
	write(t, overlay, string(replaced))
	for _, name := range []string{"go.mod", "go.sum"} {
		write(t, filepath.Join(temp, name), read(t, filepath.Join(examples, name)))
	}
	edit := []string{"mod", "edit"}
	for _, module := range require {
		edit = append(edit, "-require="+module)
	}
	ours := runWith(t, os.Environ(), root, "go", "list", "-m", "-f", "-replace={{.Path}}={{.Dir}}") // in go.work
	run(t, temp, "go", append(append(edit, strings.Fields(ours)...), mod)...)
	out := run(t, examples, "nice", "-n", "5", "go", "test", "-vet=off", "-count=1", "-v",
		"-modfile="+mod, "-overlay="+overlay, "-run=TestWrappers$", "./otherorms")
	for _, name := range tests {
		if !strings.Contains(out, "--- PASS: TestWrappers/mysql/"+name+" ") {
			t.Errorf("%s\nhave: %s\nwant: a passed test", name, out)
		}
	}
}

// TestLibraries_page checks that the code for go-zero and dbr in docs/guides/libraries.md is tested.
func TestLibraries_page(t *testing.T) {
	page, tested := read(t, filepath.Join(root, "docs/guides/libraries.md")), read(t, "testdata/gozero.go.txt")
	_, block, ok := strings.Cut(page, "```text\n")
	block, _, _ = strings.Cut(block, "```")
	lines := append(strings.Split(strings.TrimSpace(block), "\n"), regexp.MustCompile("`(&dbr.Connection{[^`…]*)`").FindStringSubmatch(page)[1:]...)
	if !ok || len(lines) != 5 {
		t.Fatalf("have: %q\nwant: five lines", lines)
	}
	for _, line := range lines {
		must.Contain(t, tested, strings.TrimSpace(line))
	}
}
